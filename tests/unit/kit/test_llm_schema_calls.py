"""Tool calls by a schema, over a model that says what it is told to."""

import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    Meter,
    ModelInfo,
    Operation,
    ReasoningDelta,
    Request,
    Restart,
    Spent,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
)
from kit.llm.schema_calls import SchemaCalls

SEARCH = ToolSpec("search", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}})
CLOCK = ToolSpec("time_now", "Tells the time.", {"type": "object", "properties": {}})
ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "When was it built?")]
USED = TokenUsage(10, 5)


class _Model:
    """Answers each request with the next script."""

    def __init__(self, *scripts: Sequence[Delta]) -> None:
        self.requests: list[Request] = []
        self._scripts = list(scripts)

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("p", operation.value, 100)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [len(text) for text in texts]

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        if request.meter is not None:
            request.meter.add(Spent("p", "m", USED))
        for delta in self._scripts.pop(0):
            yield delta


def _says(*texts: str) -> list[Delta]:
    return [*(TextDelta(text) for text in texts), Finish(FinishReason.STOP, USED, "p", "m")]


async def _asked(model: _Model, **changes: Any) -> list[Delta]:
    request = Request(ASKED, 1000, tools=(SEARCH, CLOCK), **changes)
    return [delta async for delta in SchemaCalls(model, lambda: "id").complete(request)]


async def test_choice_of_a_tool_is_a_call() -> None:
    model = _Model(_says('{"tool": "search", "argum', 'ents": {"query": "töwer"}}'))
    call, finish = await _asked(model)
    assert call == ToolCallDelta(0, '{"query": "töwer"}', "id", "search")
    assert finish == Finish(FinishReason.TOOL_CALLS, USED, "p", "m")
    (request,) = model.requests
    assert (request.tools, request.tool_choice) == ((), "auto")
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "Searches." in request.messages[0].content
    assert "Be kind." in request.messages[0].content


async def test_choice_of_no_tool_is_answered_in_words_and_counted_with_its_choice() -> None:
    meter = Meter()
    deltas = await _asked(_Model(_says('{"tool": "none"}'), _says("In ", "1889.")), meter=meter)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["In ", "1889."]
    assert deltas[-1] == Finish(FinishReason.STOP, USED + USED, "p", "m")
    assert meter.total == USED + USED


@pytest.mark.parametrize("said", ["", "[]", '"search"', '{"tool": "none of these"}', '{"tool": ["search"]}', "Hello."])
async def test_what_is_no_choice_is_answered_in_words(said: str) -> None:
    deltas = await _asked(_Model(_says(said), _says("Yes.")))
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["Yes."]


@pytest.mark.parametrize(
    ("tool_choice", "offered"),
    [("auto", ["search", "time_now", "none"]), ("required", ["search", "time_now"]), ("time_now", ["time_now"])],
)
async def test_schema_offers_what_may_be_chosen(tool_choice: str, offered: list[str]) -> None:
    model = _Model(_says('{"tool": "time_now", "arguments": {}}'))
    await _asked(model, tool_choice=tool_choice)
    schema = json.loads(json.dumps(model.requests[0].schema))
    kinds = schema.get("anyOf", [schema])
    assert [kind["properties"]["tool"]["const"] for kind in kinds] == offered


async def test_nothing_is_chosen_where_no_tool_may_be_used() -> None:
    model = _Model(_says("Hello."))
    await _asked(model, tool_choice="none")
    assert [request.schema for request in model.requests] == [None]


async def test_model_that_fails_while_it_chooses_is_heard_and_its_half_choice_forgotten() -> None:
    restart = Restart("p", "m", "LLM_TIMEOUT", "It was silent.")
    thought = ReasoningDelta("Hm.")
    script = [TextDelta('{"tool": "time'), restart, thought, *_says('{"tool": "search", "arguments": {}}')]
    deltas = await _asked(_Model(script))
    assert deltas[:2] == [restart, thought]
    assert [delta.name for delta in deltas if isinstance(delta, ToolCallDelta)] == ["search"]


async def test_calls_and_results_are_told_in_words_and_roles_take_turns() -> None:
    model = _Model(_says("Hello."))
    call = ToolCall("c1", "search", '{"query": "tower"}')
    messages = [
        *ASKED,
        ChatMessage("assistant", "", (call,)),
        ChatMessage("tool", "Built in 1889.", tool_call_id="c1"),
        ChatMessage("user", "Answer now."),
    ]
    _ = [delta async for delta in SchemaCalls(model).complete(Request(messages, 100))]
    told = model.requests[0].messages
    assert [message.role for message in told] == ["system", "user", "assistant", "user"]
    assert told[2].content == 'I use search with {"query": "tower"}'
    assert told[3].content == "Result of search:\nBuilt in 1889.\n\nAnswer now."
