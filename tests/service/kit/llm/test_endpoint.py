"""One endpoint that does what it should, over real HTTP."""

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest
from opentelemetry import trace

from kit.llm import (
    ChatMessage,
    Finish,
    FinishReason,
    Meter,
    ModelRejected,
    ModelUnavailable,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallDelta,
)
from kit.testing.openai import Reply
from kit.testing.telemetry import recorded_spans
from tests.service.kit.llm.asking import QUESTION, TOOL_QUESTION, answer, answer_to, asked, finish_of, text_of


async def test_pieces_come_in_order_then_why_and_what_it_cost() -> None:
    async with asked(Reply(["Hel", "lo"])) as (script, endpoint):
        assert await answer(endpoint) == [
            TextDelta("Hel"),
            TextDelta("lo"),
            Finish(FinishReason.STOP, TokenUsage(10, 2), "openai-compatible", "m"),
        ]
    (request,) = script.requests
    assert request["messages"] == [{"role": "user", "content": "hello"}]
    assert (request["max_tokens"], request["stream_options"]) == (16, {"include_usage": True})
    assert script.headers[0]["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("tool_calls", FinishReason.TOOL_CALLS),
        ("insufficient_system_resource", FinishReason.INCOMPLETE),
        (None, FinishReason.INCOMPLETE),
    ],
)
async def test_why_it_ended_is_told(said: str | None, reason: FinishReason) -> None:
    assert finish_of(await answer_to(Reply(["a"], finish_reason=said))).reason is reason


async def test_end_without_reason_and_without_done_is_no_whole_answer() -> None:
    deltas = await answer_to(Reply(["The tow"], finish_reason=None, usage={}, done=False))
    assert (text_of(deltas), finish_of(deltas).reason) == ("The tow", FinishReason.INCOMPLETE)


async def test_reason_counts_where_only_the_done_is_missing() -> None:
    deltas = await answer_to(Reply(["The tower."], done=False))
    assert finish_of(deltas).reason is FinishReason.STOP


@pytest.mark.parametrize("breaks", [True, False], ids=("breaks off", "falls silent"))
async def test_what_happens_behind_the_end_takes_nothing_from_the_answer(breaks: bool) -> None:
    end = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    reply = Reply(["The tower.", end, "x"])
    reply = replace(reply, break_after=2) if breaks else replace(reply, gate=asyncio.Event(), gate_at=2)
    deltas = await answer_to(reply, stall_timeout_s=5.0)
    assert (text_of(deltas), finish_of(deltas).reason) == ("The tower.", FinishReason.STOP)
    assert finish_of(deltas).usage.estimated


async def test_calls_come_in_pieces_with_id_and_name_first() -> None:
    pieces = [
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "search", "arguments": '{"query":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "cats"}'}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "search", "arguments": "{}"}}]},
    ]
    deltas = await answer_to(Reply(pieces, finish_reason="tool_calls"), request=TOOL_QUESTION)
    assert deltas[:-1] == [
        ToolCallDelta(0, '{"query":', "a", "search"),
        ToolCallDelta(0, ' "cats"}'),
        ToolCallDelta(1, "{}", "b", "search"),
    ]
    assert finish_of(deltas).reason is FinishReason.TOOL_CALLS


async def test_tools_schema_and_earlier_calls_are_sent() -> None:
    messages = [
        ChatMessage("user", "cats?"),
        ChatMessage("assistant", "", (ToolCall("a", "search", '{"query": "cats"}'),)),
        ChatMessage("tool", "Cats purr.", tool_call_id="a"),
    ]
    schema = {
        "type": "object",
        "properties": {"x": {"type": "string"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    async with asked(Reply(["{}"])) as (script, endpoint):
        await answer(endpoint, replace(TOOL_QUESTION, messages=messages, tool_choice="search", schema=schema))
    (request,) = script.requests
    assert request["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"query": "cats"}'}}
            ],
        },
        {"role": "tool", "content": "Cats purr.", "tool_call_id": "a"},
    ]
    assert request["tool_choice"] == {"type": "function", "function": {"name": "search"}}
    assert request["tools"][0]["function"]["name"] == "search"
    sent = request["response_format"]["json_schema"]
    assert (sent["schema"], sent["strict"]) == (schema, True)


async def test_strict_is_not_asked_for_a_schema_with_optional_fields() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}
    async with asked(Reply(["{}"])) as (script, endpoint):
        await answer(endpoint, replace(QUESTION, schema=schema))
    assert script.requests[0]["response_format"]["json_schema"]["strict"] is False


async def test_closing_the_stream_hangs_up_and_what_was_written_is_counted() -> None:
    meter = Meter()
    reply = Reply(["a beginning ", "b"], gate=asyncio.Event(), gate_at=1)
    async with asked(reply) as (script, endpoint):
        async with aclosing(endpoint.complete(replace(QUESTION, meter=meter))) as deltas:
            assert await anext(deltas) == TextDelta("a beginning ")
        async with asyncio.timeout(60):
            await script.hung_up.wait()
    assert meter.total.estimated
    assert meter.total.prompt_tokens > 0
    assert meter.total.completion_tokens > 0


async def test_cancelled_while_the_model_is_silent_what_was_sent_is_counted() -> None:
    meter = Meter()
    async with asked(Reply(["a"], gate=asyncio.Event())) as (script, endpoint):
        task = asyncio.create_task(answer(endpoint, replace(QUESTION, meter=meter)))
        async with asyncio.timeout(60):
            while not script.requests:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert meter.total.prompt_tokens > 0
    assert meter.total.completion_tokens == 0


async def test_refused_request_costs_nothing_and_a_broken_answer_what_came() -> None:
    refused, broken = Meter(), Meter()
    async with asked(Reply(status=500), Reply(["a beginning ", "b"], break_after=1)) as (_, endpoint):
        with pytest.raises(ModelUnavailable):
            await answer(endpoint, replace(QUESTION, meter=refused))
        with pytest.raises(ModelUnavailable):
            await answer(endpoint, replace(QUESTION, meter=broken))
    assert refused.total == TokenUsage()
    assert broken.total.completion_tokens > 0


async def test_tokens_thought_are_counted_where_the_total_alone_has_them() -> None:
    usage = {"prompt_tokens": 138, "completion_tokens": 24, "total_tokens": 448}
    assert finish_of(await answer_to(Reply(["a"], usage=usage))).usage == TokenUsage(138, 310)


async def test_usage_is_estimated_where_the_endpoint_does_not_say() -> None:
    usage = finish_of(await answer_to(Reply(["a few words"], usage={}))).usage
    assert usage.estimated
    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0


async def test_reasoning_is_no_part_of_the_answer() -> None:
    for name in ("reasoning_content", "reasoning"):
        deltas = await answer_to(Reply([{name: "Let me see."}, {"content": "Yes."}]))
        assert deltas[:-1] == [ReasoningDelta("Let me see."), TextDelta("Yes.")]


async def test_connection_is_used_again() -> None:
    async with asked(Reply(["a"])) as (script, endpoint):
        await answer(endpoint)
        await answer(endpoint)
        await answer(endpoint)
        pool = endpoint._client._transport._pool  # type: ignore[attr-defined]
        assert len(pool.connections) == 1
    assert len(script.requests) == 3


async def test_key_with_a_line_end_is_named() -> None:
    with pytest.raises(ModelRejected, match="_API_KEY"):
        await answer_to(Reply(["a"]), api_key="sk-ключ")


async def test_address_of_the_method_itself_is_taken_as_well() -> None:
    async with asked(Reply(["a"])) as (script, _):
        url = f"{script.base_url}/chat/completions/"
        assert text_of(await answer_to(Reply(["b"]), base_url=url)) == "a"


async def test_call_is_a_span_of_whoever_makes_it() -> None:
    with recorded_spans() as spans, trace.get_tracer("test").start_as_current_span("run") as run:
        await answer_to(Reply(["Hel", "lo"]))
        with pytest.raises(ModelRejected):
            await answer_to(Reply(status=401))
    answered, refused = [span for span in spans.get_finished_spans() if span.name == "chat m"]
    assert answered.parent == run.get_span_context()
    assert answered.attributes is not None
    assert (answered.attributes["gen_ai.usage.input_tokens"], answered.attributes["gen_ai.usage.output_tokens"]) == (
        10,
        2,
    )
    assert refused.status.description == "LLM_CREDENTIALS_REFUSED"
