"""The tool loop against a server over real HTTP that has every habit that real ones have."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.llm import ModelRejected, ModelUnavailable
from kit.llm.endpoint.endpoint import EndpointConfig, open_endpoint
from kit.testing.openai import Reply, ScriptedModel, scripted_model
from kit.testing.tool_habits import HABITS, as_specified, legacy_function_call
from services.orchestrator.log.events import Budgets
from services.orchestrator.models import Tool
from services.orchestrator.toolloop.loop import LoopEnd, NoFirstWord, ToolsNotSupported
from tests.unit.orchestrator.fakes import EVIDENCE, FakeTools
from tests.unit.orchestrator.toolloop.scripting import Scene, found

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "top_k": {"type": "integer"}}}
TOOLS = [Tool("search", "Searches.", SCHEMA), Tool("time_now", "The time.", {"type": "object", "properties": {}})]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "tower"}),
    ("time_now", {}),
    ("search", {"query": 'the "bridge" – it\'s', "top_k": 3}),
]
ANSWER = Reply(["It was built ", "in 1889 [1]."])


@asynccontextmanager
async def scene_with(*replies: Reply, **fields: Any) -> AsyncIterator[tuple[ScriptedModel, Scene]]:
    async with scripted_model(*replies) as script:
        config = EndpointConfig(base_url=script.base_url, model="m", context_tokens=8192)
        async with open_endpoint(config) as endpoint:
            yield script, Scene(endpoint, FakeTools(TOOLS, lambda *_: found(*EVIDENCE)), **fields)


def sent_calls(script: ScriptedModel) -> Sequence[Any]:
    """As they were shown to the model when it was asked again."""
    return next(message["tool_calls"] for message in script.requests[-1]["messages"] if message.get("tool_calls"))


@pytest.mark.parametrize("habit", HABITS.values(), ids=HABITS)
async def test_calls_are_made_whichever_way_they_are_streamed(habit: Any) -> None:
    async with scene_with(habit(CALLS), ANSWER) as (script, scene):
        result = await scene.run()
    assert sorted(map(repr, scene.tools.made)) == sorted(map(repr, CALLS))
    assert result.text == scene.shown == "It was built in 1889 [1]."
    assert result.end is LoopEnd.ANSWERED
    sent = sent_calls(script)
    assert [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in sent] == CALLS
    ids = [each["id"] for each in sent]
    assert len(set(ids)) == len(CALLS)
    assert [each["tool_call_id"] for each in script.requests[-1]["messages"] if each["role"] == "tool"] == ids


async def test_legacy_function_call_is_made() -> None:
    async with scene_with(legacy_function_call(CALLS), ANSWER) as (_, scene):
        await scene.run()
    assert scene.tools.made == CALLS[:1]


async def test_no_tools_are_sent_when_an_answer_is_forced() -> None:
    budgets = Budgets(reasoning_steps=1)
    async with scene_with(as_specified(CALLS), ANSWER, budgets=budgets) as (script, scene):
        result = await scene.run()
    assert (result.end, result.reason) == (LoopEnd.FORCED, "reasoning_steps")
    assert ["tools" in request for request in script.requests] == [True, False]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (500, "tools param requires --jinja flag"),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, "`tool calling` is not supported with this model"),
        (404, "No endpoints found that support tool use."),
        (400, "Function calling is not enabled: tools are not supported by model m"),
    ],
)
async def test_server_without_support_for_tools_is_told_from_one_that_fails(status: int, message: str) -> None:
    refusal = Reply(status=status, body=json.dumps({"error": {"message": message}}))
    async with scene_with(refusal) as (_, scene):
        with pytest.raises(ToolsNotSupported):
            await scene.run()


@pytest.mark.parametrize("reply", [Reply(status=503), Reply(status=400), Reply(["It w"], break_after=0)])
async def test_server_that_fails_at_once_is_told_as_that(reply: Reply) -> None:
    async with scene_with(reply) as (_, scene):
        with pytest.raises(NoFirstWord) as raised:
            await scene.run()
    assert raised.value.reason in (ModelUnavailable.reason, ModelRejected.reason)


async def test_server_that_refuses_the_roles_of_tools_is_asked_in_plain_text() -> None:
    refusal = Reply(status=400, body=json.dumps({"error": {"message": "roles must alternate user/assistant"}}))
    async with scene_with(as_specified(CALLS), refusal, ANSWER) as (script, scene):
        result = await scene.run()
    assert (result.text, result.end) == ("It was built in 1889 [1].", LoopEnd.FORCED)
    assert [message["role"] for message in script.requests[-1]["messages"]] == ["system", "user"]


async def test_stream_that_breaks_off_in_the_middle_of_a_call_leaves_an_answer() -> None:
    broken = as_specified(CALLS)
    broken.break_after = 3
    async with scene_with(as_specified(CALLS[:1]), broken) as (_, scene):
        result = await scene.run()
    assert result.end is LoopEnd.FALLBACK
    assert "The tower was built in 1889" in result.text
    assert scene.tools.made == CALLS[:1]
