"""Work that is bound to local models asks no other, whatever the operation."""

import pytest
from pydantic import SecretStr

from kit.llm import ModelRejected, ModelUnavailable, Operation
from kit.llm.brought import BroughtModel, use_brought_model
from kit.network.local_models import is_bound_to_local_models, is_local_url, use_local_models
from tests.unit.kit.llm_fakes import Script, catalog, collect, models_of, provider, says

OUTSIDE = provider(base_url="https://api.example.com/v1")
HERE = provider(base_url="http://127.0.0.1:8000/v1")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/v1",
        "http://[::1]:8000",
        "http://localhost:11434/v1",
        "http://vllm:8000/v1",
        "http://vllm.models.svc/v1",
        "http://vllm.models.svc.cluster.local.:8000/v1",
    ],
)
def test_addresses_of_this_machine_and_this_cluster_are_local(url: str) -> None:
    assert is_local_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://10.0.0.7:8000/v1",
        "http://localhost.example.com/v1",
        "http://svc.example.com/v1",
        "http://8.8.8.8/v1",
        "",
    ],
)
def test_all_other_addresses_are_outside(url: str) -> None:
    assert not is_local_url(url)


def test_settings_overrule_the_address() -> None:
    assert not provider(base_url="http://localhost:4000/v1", local=False).is_local
    assert provider(base_url="http://10.0.0.7/v1", local=True).is_local
    assert not provider(base_url="", preset="openai").is_local


def test_bound_work_stays_bound() -> None:
    assert not is_bound_to_local_models()
    with use_local_models(only=True), use_local_models(only=False):
        assert is_bound_to_local_models()
    assert not is_bound_to_local_models()


@pytest.mark.parametrize("operation", Operation)
async def test_bound_operation_asks_local_models_alone(operation: Operation) -> None:
    script = Script({"outside/m": [says("outside")], "here/m": [says("here")]})
    both = catalog("outside/m", "here/m", providers={"outside": OUTSIDE, "here": HERE})
    async with models_of(script, both) as models:
        with use_local_models(only=True):
            await collect(models, operation)
            assert models.info(operation).provider == "here"
        assert script.asked == ["here/m"]
        await collect(models, operation)
    assert script.asked == ["here/m", "outside/m"]


@pytest.mark.parametrize("operation", Operation)
async def test_bound_operation_without_a_local_model_fails_and_asks_nobody(operation: Operation) -> None:
    script = Script({"outside/m": [says("outside")]})
    async with models_of(script, catalog("outside/m", providers={"outside": OUTSIDE})) as models:
        with use_local_models(only=True):
            with pytest.raises(ModelUnavailable, match="no local model") as refused:
                await collect(models, operation)
            assert models.info(operation).model == ""
            await models.count_tokens(["abc"], operation)
    assert (refused.value.reason, refused.value.retryable, script.asked) == ("LOCAL_MODELS_ONLY", False, [])


async def test_bound_work_does_not_ask_the_model_that_a_user_brings() -> None:
    script = Script({"yours/mine": [says("yours")]})
    brought = BroughtModel("https://api.example.com/v1", SecretStr("key"), "mine")
    async with models_of(script, catalog("here/m", providers={"here": HERE})) as models:
        with use_local_models(only=True), use_brought_model(brought), pytest.raises(ModelRejected) as refused:
            await collect(models)
    assert (refused.value.reason, script.asked) == ("LOCAL_MODELS_ONLY", [])
