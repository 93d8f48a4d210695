"""Operators are told of a language model that does not answer, also when nobody asks it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from kit.llm import CredentialsRefused, ModelRejected, ModelUnavailable, PromptTooLong
from kit.llm.models import Models
from kit.llm.provider_watch import ProviderWatch
from kit.llm.providers import Provider
from tests.unit.kit.llm_fakes import Script, catalog, collect, models_of, provider, says

VLLM = {"data": [{"id": "m", "owned_by": "vllm"}]}


@dataclass
class Watched:
    """A watch over the provider `a`, whose models `a/m` all operations ask."""

    watch: ProviderWatch
    models: Models
    script: Script
    client: httpx.AsyncClient

    async def messages(self) -> list[str]:
        await self.watch.look(self.client)
        shown = [(each.part, each.kind, each.stops_service) for each in self.watch.troubles()]
        assert set(shown) <= {("language model a", "language_model", False)}
        return [each.message for each in self.watch.troubles()]


Answer = Callable[[httpx.Request], httpx.Response]


@asynccontextmanager
async def watched(answer: Answer, settings: Provider | None = None) -> AsyncIterator[Watched]:
    script = Script({"a/m": [says("hello")]})
    providers: Mapping[str, Provider] = {"a": settings or provider()}
    transport = httpx.MockTransport(answer)
    async with (
        models_of(script, catalog("a/m", providers=providers)) as models,
        httpx.AsyncClient(transport=transport) as client,
    ):
        yield Watched(ProviderWatch(models), models, script, client)


def _refuses(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def _says(status: int, body: Any = None) -> Answer:
    return lambda _: httpx.Response(status, json=body)


@dataclass(frozen=True)
class Case:
    answer: Answer
    said: str
    preset: str = "openai-compatible"


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case(_says(200, {"data": []}), ""), id="it answers"),
        pytest.param(
            Case(_refuses, "127.0.0.1:1 cannot be reached (ConnectError); check GROUNDWORK_LLM"), id="nobody listens"
        ),
        pytest.param(Case(_says(503), "answers with HTTP 503"), id="it is loading"),
        pytest.param(Case(_says(401), "refuses the key (HTTP 401)"), id="the key is wrong"),
        pytest.param(Case(_says(401), "", "anthropic"), id="its list wants other credentials"),
        pytest.param(Case(_says(404), ""), id="it lists no models"),
        pytest.param(Case(_says(404), "has no API there", "vllm"), id="vLLM's address lacks /v1"),
        pytest.param(Case(_says(200, VLLM), ""), id="vLLM serves what is asked for"),
        pytest.param(
            Case(_says(200, {"data": [{"id": "n", "owned_by": "vllm"}]}), "it serves n and not m"),
            id="it serves another",
        ),
        pytest.param(Case(_says(200, {"data": [{"id": "models/m"}]}), ""), id="it lists its models under other names"),
        pytest.param(Case(_says(200, "nonsense"), ""), id="nonsense"),
    ],
)
async def test_a_provider_that_does_not_answer_as_it_should_is_told(case: Case) -> None:
    async with watched(case.answer, provider(preset=case.preset)) as seen:
        messages = await seen.messages()
    assert len(messages) == bool(case.said)
    assert all(case.said in message for message in messages)


async def test_a_provider_that_is_back_is_not_told_any_more() -> None:
    answers = [httpx.Response(503), httpx.Response(200, json={"data": []})]
    async with watched(lambda _: answers.pop(0)) as seen:
        assert await seen.messages()
        assert not await seen.messages()


@pytest.mark.parametrize(
    ("failure", "is_told"),
    [
        pytest.param(ModelUnavailable("model a/m answered with HTTP 500"), True, id="it fails"),
        pytest.param(CredentialsRefused("model a/m was refused with HTTP 403"), True, id="it refuses the key"),
        pytest.param(ModelRejected("model a/m refused with HTTP 404"), True, id="it has no such model"),
        pytest.param(PromptTooLong("the prompt does not fit"), False, id="the prompt was too long"),
    ],
)
async def test_what_a_run_has_met_is_told_until_a_request_succeeds(failure: Exception, is_told: bool) -> None:
    async with watched(_says(404)) as seen:
        seen.script.replies["a/m"] = [[failure]]
        with pytest.raises(type(failure)):
            await collect(seen.models)
        assert bool(await seen.messages()) is is_told
        seen.script.replies["a/m"] = [says("hello")]
        await collect(seen.models)
        assert not await seen.messages()


async def test_the_key_is_shown_to_the_provider_and_to_nobody_else() -> None:
    shown: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        shown.append(request.headers["authorization"])
        return httpx.Response(401)

    async with watched(answer, provider(base_url="http://host/v1", api_key="sk-secret")) as seen:
        (message,) = await seen.messages()
    assert shown == ["Bearer sk-secret"]
    assert "secret" not in message


async def test_a_password_in_an_address_is_not_told() -> None:
    async with watched(_refuses, provider(base_url="http://user:word@host/v1")) as seen:
        (message,) = await seen.messages()
    assert message.startswith("host cannot be reached")
