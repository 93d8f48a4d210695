"""The model client against a scripted endpoint over real HTTP."""

import asyncio
from contextlib import aclosing

import pytest
from opentelemetry import trace

from kit.errors import GroundworkError
from kit.llm import ChatMessage, ChatModel, ModelRejected, ModelUnavailable, TokenUsage, open_chat_model
from kit.testing.openai import Reply, scripted_model
from kit.testing.telemetry import recorded_spans

QUESTION = [ChatMessage("user", "hello")]


async def collect(model: ChatModel) -> list[str | TokenUsage]:
    return [piece async for piece in model.stream(QUESTION, max_tokens=16)]


async def test_pieces_come_in_order_then_usage() -> None:
    async with scripted_model(Reply(["Hel", "lo"])) as script, open_chat_model(script.base_url, "k", "m") as model:
        assert await collect(model) == ["Hel", "lo", TokenUsage(10, 2)]
    assert script.requests[0]["messages"] == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("reply", "expected", "reason"),
    [
        (Reply(status=401), ModelRejected, "LLM_REJECTED"),
        (Reply(status=404), ModelRejected, "LLM_REJECTED"),
        (Reply(status=500), ModelUnavailable, "LLM_UNAVAILABLE"),
        (Reply(["a", "b", "c"], break_after=1), ModelUnavailable, "LLM_UNAVAILABLE"),
    ],
)
async def test_failures_are_told_apart(reply: Reply, expected: type[GroundworkError], reason: str) -> None:
    async with scripted_model(reply) as script, open_chat_model(script.base_url, "k", "m") as model:
        with pytest.raises(expected) as caught:
            await collect(model)
    assert caught.value.reason == reason


async def test_stalled_model_is_given_up() -> None:
    reply = Reply(["a", "b"], gate=asyncio.Event(), gate_at=1)
    async with (
        scripted_model(reply) as script,
        open_chat_model(script.base_url, "k", "m", stall_timeout_s=0.2) as model,
    ):
        with pytest.raises(ModelUnavailable) as caught:
            await collect(model)
    assert caught.value.reason == "LLM_TIMEOUT"


async def test_closing_the_stream_hangs_up_on_the_endpoint() -> None:
    reply = Reply(["a", "b"], gate=asyncio.Event(), gate_at=1)
    async with scripted_model(reply) as script, open_chat_model(script.base_url, "k", "m") as model:
        async with aclosing(model.stream(QUESTION, max_tokens=16)) as pieces:  # type: ignore[type-var]
            assert await anext(pieces) == "a"
        async with asyncio.timeout(30):
            await script.hung_up.wait()


async def test_call_is_a_span_of_whoever_makes_it() -> None:
    with recorded_spans() as spans:
        async with scripted_model(Reply(["Hel", "lo"])) as script, open_chat_model(script.base_url, "k", "m") as model:
            with trace.get_tracer("test").start_as_current_span("run") as run:
                await collect(model)
        async with scripted_model(Reply(status=401)) as script, open_chat_model(script.base_url, "k", "m") as model:
            with pytest.raises(ModelRejected):
                await collect(model)
    answered, refused = [span for span in spans.get_finished_spans() if span.name == "chat m"]
    assert answered.parent == run.get_span_context()
    assert answered.attributes is not None
    assert (answered.attributes["gen_ai.usage.input_tokens"], answered.attributes["gen_ai.usage.output_tokens"]) == (
        10,
        2,
    )
    assert refused.status.description == "LLM_REJECTED"
