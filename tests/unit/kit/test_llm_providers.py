"""What the settings say of providers and operations, and what a wrong one is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from kit.llm import Finish, FinishReason, Operation, TokenUsage
from kit.llm.providers import Catalog, Choice, UnknownModel, make_catalog, parse_providers

PROVIDERS = {
    "openai": {"preset": "openai", "api_key": "sk-1", "models": {"mini": {"prompt_usd": 0.5, "completion_usd": 2.0}}},
    "gpu": {"base_url": "http://vllm:8000/v1", "models": {"Qwen/Qwen3": {"context_tokens": 32768}}},
}


def parsed(providers: Any = PROVIDERS, operations: Any = None) -> Catalog:
    return make_catalog(parse_providers(json.dumps(providers)), json.dumps(operations) if operations else "")


def test_each_operation_has_its_chain_and_the_others_the_default() -> None:
    found = parsed(operations={"answer": ["openai/mini", "gpu/Qwen/Qwen3"], "default": "gpu/Qwen/Qwen3"})
    mini, qwen = Choice("openai", "mini"), Choice("gpu", "Qwen/Qwen3")
    assert found.chains[Operation.ANSWER] == (mini, qwen)
    assert {found.chains[each] for each in Operation if each is not Operation.ANSWER} == {(qwen,)}


def test_without_operations_the_first_models_of_all_providers_stand_in_for_each_other() -> None:
    assert parsed().chains[Operation.FACTS] == (Choice("openai", "mini"), Choice("gpu", "Qwen/Qwen3"))


def test_a_preset_knows_its_address_and_a_key_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-2\n")
    found = parsed({"openai": {"preset": "openai", "api_key_file": str(tmp_path / "key"), "models": {"mini": {}}}})
    assert found.providers["openai"].url == "https://api.openai.com/v1"
    assert found.providers["openai"].key().get_secret_value() == "sk-2"


def test_no_key_is_shown_by_what_prints_a_provider() -> None:
    assert "sk-1" not in repr(parsed())


def test_tokens_cost_what_the_table_says_and_an_unknown_model_nothing() -> None:
    prices = parsed().prices()
    usage = TokenUsage(1_000_000, 500_000)
    assert prices.cost_usd(Finish(FinishReason.STOP, usage, "openai", "mini")) == pytest.approx(1.5)
    assert prices.cost_usd(Finish(FinishReason.STOP, usage, "yours", "mini")) == 0.0


@pytest.mark.parametrize(
    ("providers", "operations", "told"),
    [
        ({}, None, "it names no provider"),
        ({"Open AI": {"preset": "openai"}}, None, "provider 'Open AI'"),
        ({"a": 1}, None, "provider 'a': Input should be a valid dictionary"),
        ({"a": {"preset": "gpt"}}, None, "provider 'a', preset: it must be one of openai, anthropic"),
        ({"a": {}}, None, "provider 'a': it needs a preset or a base_url"),
        ({"a": {"base_url": "vllm:8000"}}, None, "provider 'a': base_url must be an http:// or https:// URL"),
        (
            {"a": {"base_url": "http://vllm:8000/v1?key=k"}},
            None,
            "provider 'a': base_url must be an http:// or https:// URL without ?",
        ),
        ({"a": {"preset": "openai", "modles": {}}}, None, "provider 'a', modles: Extra inputs are not permitted"),
        (
            {"a": {"preset": "openai", "max_concurrent": 0}},
            None,
            "provider 'a', max_concurrent: Input should be greater",
        ),
        ({"a": {"preset": "openai", "models": {"m": {"prompt_usd": -1}}}}, None, "provider 'a', models.m.prompt_usd"),
        ({"a": {"preset": "openai", "api_key": "k", "api_key_file": "f"}}, None, "both set; set one of the two"),
        ({"a": {"preset": "openai", "api_key_file": "/nowhere"}}, None, "/nowhere cannot be read (No such file"),
        ({"a": {"preset": "openai"}}, None, "no provider lists a model"),
        (PROVIDERS, {"think": "openai/mini"}, "there is no operation 'think'; there are plan, answer"),
        (PROVIDERS, {"plan": "mini"}, "'mini' is not a model; write provider/model"),
        (PROVIDERS, {"plan": "open/mini"}, "there is no provider 'open'; there are openai, gpu"),
        (PROVIDERS, {"plan": ["openai/maxi"]}, "openai has no model 'maxi'; it has mini"),
        (PROVIDERS, {"plan": []}, "operation 'plan' must be a model, or a list of models"),
    ],
)
def test_a_wrong_setting_is_told_in_a_sentence(providers: Any, operations: Any, told: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        parsed(providers, operations)
    assert told in str(caught.value)


def test_what_is_not_json_is_told_without_the_text_which_may_be_a_key() -> None:
    with pytest.raises(ValueError, match="the providers are not JSON") as caught:
        parse_providers('{"a": {"api_key": "sk-secret"')
    assert "sk-secret" not in str(caught.value)
    with pytest.raises(ValueError, match="provider 'a'") as caught:
        parsed({"a": {"api_key": ["sk-secret"], "preset": "openai"}})
    assert "sk-secret" not in str(caught.value)


def test_a_name_without_a_provider_is_refused() -> None:
    for text in ("", "openai", "/mini", "openai/"):
        with pytest.raises(UnknownModel):
            Choice.parse(text)
