"""A chain of models at real endpoints: what the reader of a run sees when the first fails."""

import json
from collections.abc import Awaitable, Callable

import pytest

from kit.llm.models import open_models
from kit.llm.opening import endpoint_opener
from kit.llm.providers import make_catalog, parse_providers
from kit.network.egress import EgressGuard
from kit.testing.openai import Reply, ScriptedModel, scripted_model
from services.orchestrator.log.events import Answer, RunEvent, Thinking, Token, Usage
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect

GOOD = ["The tower was ", "built in 1889 ", "[1]."]


def catalog_of(first: ScriptedModel, second: ScriptedModel) -> str:
    return json.dumps(
        {
            "first": {"base_url": first.base_url, "models": {"m": {}}, "retries": 0},
            "second": {"base_url": second.base_url, "models": {"n": {}}},
        }
    )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=500), "LLM_UNAVAILABLE"),
        (Reply(status=401), "LLM_CREDENTIALS_REFUSED"),
        (Reply(["The bridge ", "was opened "], break_after=1), "LLM_UNAVAILABLE"),
    ],
    ids=("away", "refused", "broken in the middle"),
)
async def test_the_next_model_answers_and_that_is_said(
    reply: Reply, reason: str, start_orchestrator: Callable[..., Awaitable[Orchestrator]]
) -> None:
    opener = endpoint_opener(EgressGuard(), stall_timeout_s=60.0, completion_timeout_s=60.0)
    async with scripted_model(reply) as first, scripted_model(Reply(GOOD)) as second:
        catalog = make_catalog(parse_providers(catalog_of(first, second)))
        async with open_models(catalog, opener) as models:
            orchestrator = await start_orchestrator(models)
            _, stream = await orchestrator.runs.start(ANN, QUESTION)
            events = await collect(stream)
    assert shown(events) == "".join(GOOD)
    answer = next(event.payload for event in events if isinstance(event.payload, Answer))
    assert (answer.text, answer.method) == ("".join(GOOD), "model")
    said = [event.payload for event in events if isinstance(event.payload, Thinking) and event.payload.degraded]
    (note,) = [each.degraded for each in said if each.degraded]
    assert note.reason == reason
    assert "first/m" in note.message
    assert ("GROUNDWORK_LLM_PROVIDERS[first].api_key" in note.message) == (reason == "LLM_CREDENTIALS_REFUSED")
    usage = next(event.payload for event in events if isinstance(event.payload, Usage))
    assert usage.completion_tokens >= len(GOOD)
    assert usage.model == "n"


def shown(events: list[RunEvent]) -> str:
    text = ""
    for event in events:
        if isinstance(event.payload, Token):
            text = text[: event.payload.offset] + event.payload.text
    return text
