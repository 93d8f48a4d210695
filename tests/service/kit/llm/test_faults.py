"""Everything that an endpoint can do wrong, over real HTTP."""

import asyncio
import json
from dataclasses import dataclass, replace

import pytest

from kit.errors import GroundworkError
from kit.llm import (
    ChatMessage,
    CredentialsRefused,
    FinishReason,
    Meter,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
    Retraction,
    WrongEndpoint,
)
from kit.testing.openai import Reply
from tests.service.kit.llm.asking import (
    QUESTION,
    TOOL_QUESTION,
    answer,
    answer_to,
    asked,
    calls_of,
    finish_of,
    text_of,
    thought_of,
)


def error_body(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


CALL = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "search", "arguments": "{}"}}]}


@dataclass(frozen=True)
class Refusal:
    """What a server says instead of an answer, and what it means."""

    name: str
    reply: Reply
    error: type[GroundworkError]
    says: str


REFUSALS = [
    Refusal("wrong key", Reply(status=401), CredentialsRefused, "_API_KEY"),
    Refusal("key that may not", Reply(status=403), CredentialsRefused, "_API_KEY"),
    Refusal(
        "no such path", Reply(status=404, body="<html>Not Found</html>", content_type="text/html"), WrongEndpoint, "/v1"
    ),
    Refusal("no such method", Reply(status=405, body=""), WrongEndpoint, "_BASE_URL"),
    Refusal(
        "no such model",
        Reply(status=404, body=error_body("The model `m` does not exist.", type="NotFoundError", code=404)),
        ModelRejected,
        "_MODEL",
    ),
    Refusal("server is broken", Reply(status=500), ModelUnavailable, "HTTP 500"),
    Refusal("gateway is broken", Reply(status=502, body="<html>", content_type="text/html"), ModelUnavailable, "502"),
    Refusal("no money", Reply(status=429, body=error_body("x", code="insufficient_quota")), ModelRejected, "quota"),
    Refusal("a redirect", Reply(status=307, body="", headers={"location": "http://x/"}), WrongEndpoint, "redirect"),
    Refusal("a web page", Reply(body="<!doctype html><p>Hi", content_type="text/html"), WrongEndpoint, "a web page"),
    Refusal("plain JSON", Reply(body='{"choices": []}'), WrongEndpoint, "plain JSON"),
    Refusal("text", Reply(body="OK", content_type="text/plain"), WrongEndpoint, "text/plain"),
    Refusal("nothing", Reply(body="", content_type="text/event-stream"), ModelUnavailable, "before it had begun"),
    Refusal("no answer", Reply([]), ModelUnavailable, "finished without an answer"),
    Refusal("blanks", Reply([" ", "\n"]), ModelUnavailable, "finished without an answer"),
    Refusal("thoughts alone", Reply([{"reasoning_content": "Hm."}]), ModelUnavailable, "finished without an answer"),
    Refusal("thoughts that never close", Reply(["<think>Hm."]), ModelUnavailable, "finished without an answer"),
    Refusal(
        "unasked call",
        Reply([CALL], finish_reason="tool_calls"),
        ModelUnavailable,
        "finished without an answer",
    ),
    Refusal("broken JSON", Reply([b"data: {nonsense\n\n"]), ModelUnavailable, "not a completion"),
    Refusal("deep JSON", Reply([b"data: " + b"[" * 100_000 + b"\n\n"]), ModelUnavailable, "not a completion"),
    Refusal(
        "an error in the stream",
        Reply(["a", f"data: {error_body('out of memory', code=500)}\n\n".encode()]),
        ModelUnavailable,
        "out of memory",
    ),
    Refusal("an error field", Reply([b'error: {"message": "no slot"}\n\n']), ModelUnavailable, "no slot"),
    Refusal("it breaks off", Reply(["a", "b", "c"], break_after=1), ModelUnavailable, "_BASE_URL"),
    # How each server says that the prompt is too long.
    Refusal(
        "openai: too long",
        Reply(status=400, body=error_body("maximum context length is 8192 tokens", code="context_length_exceeded")),
        PromptTooLong,
        "8192",
    ),
    Refusal(
        "anthropic: too long",
        Reply(status=400, body=error_body("prompt is too long: 208310 tokens > 200000 maximum")),
        PromptTooLong,
        "208310",
    ),
    Refusal(
        "gemini: too long",
        Reply(
            status=400,
            body=f"[{error_body('The input token count (1048577) exceeds the maximum number of tokens allowed')}]",
        ),
        PromptTooLong,
        "1048577",
    ),
    Refusal(
        "grok: too long",
        Reply(
            status=400, body='{"code": "x", "error": "This model\'s maximum prompt length is 131072 but the request"}'
        ),
        PromptTooLong,
        "131072",
    ),
    Refusal(
        "vllm: too long",
        Reply(
            status=400,
            body=error_body(
                "This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input "
                "tokens, which exceeds this limit even without any output tokens.",
                type="BadRequestError",
                param="input_tokens",
                code=400,
            ),
        ),
        PromptTooLong,
        "2048",
    ),
    Refusal(
        "vllm: answer too long",
        Reply(
            status=400,
            body=error_body(
                "max_tokens=4000 cannot be greater than max_model_len=2048. Please request fewer output tokens.",
                param="max_tokens",
            ),
        ),
        PromptTooLong,
        "2048",
    ),
    Refusal(
        "llama.cpp: too long",
        Reply(
            status=400,
            body=error_body(
                "request (18031 tokens) exceeds the available context size (8192 tokens), try increasing it",
                type="exceed_context_size_error",
                n_ctx=8192,
            ),
        ),
        PromptTooLong,
        "8192",
    ),
    Refusal(
        "ollama: too long",
        Reply(status=400, body=error_body("the input length exceeds the context length")),
        PromptTooLong,
        "context",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
async def test_refusal_says_what_to_look_at(refusal: Refusal) -> None:
    with pytest.raises(GroundworkError) as caught:
        await answer_to(refusal.reply)
    assert type(caught.value) is refusal.error
    assert refusal.says in caught.value.message
    assert ("_API_KEY" in caught.value.message) == (refusal.error is CredentialsRefused)


async def test_server_that_is_not_there() -> None:
    with pytest.raises(ModelUnavailable, match="_BASE_URL"):
        await answer_to(Reply(), base_url="http://127.0.0.1:9/v1")


async def test_key_is_in_no_message() -> None:
    with pytest.raises(ModelRejected) as caught:
        await answer_to(Reply(status=400, body=error_body("who is secret-key?")))
    assert "secret-key" not in caught.value.message


async def test_busy_server_says_when_to_come_again() -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await answer_to(Reply(status=429, headers={"retry-after": "7"}))
    assert caught.value.retry_after_s == 7.0


async def test_server_that_falls_silent_is_given_up() -> None:
    with pytest.raises(ModelUnavailable) as caught:
        await answer_to(Reply(["a", "b"], gate=asyncio.Event(), gate_at=1), stall_timeout_s=0.2)
    assert caught.value.reason == "LLM_TIMEOUT"


async def test_model_that_thinks_in_silence_is_waited_for_as_long_as_there_is_time() -> None:
    reply = Reply(["a"], gate=asyncio.Event())
    settings = {"stall_timeout_s": 0.1, "completion_timeout_s": 2.0, "preset": "openai"}
    with pytest.raises(ModelUnavailable, match="fell silent"):
        await answer_to(reply, model="gpt-4.1-mini", **settings)
    with pytest.raises(ModelUnavailable, match="did not answer within"):
        await answer_to(reply, model="o3-mini", **settings)


KEEP_ALIVE = Reply([b": still here\n\n"], endless=True, pause_s=0.01)
EMPTY_DELTAS = Reply([{}], endless=True, pause_s=0.01)
BYTE_BY_BYTE = Reply([bytes([byte]) for byte in b'data: {"choices": []}\n\n'], endless=True, pause_s=0.01)


@pytest.mark.parametrize(
    "reply", [KEEP_ALIVE, EMPTY_DELTAS, BYTE_BY_BYTE], ids=("keep-alive", "empty deltas", "byte by byte")
)
async def test_stream_that_says_nothing_is_bounded_by_total_time(reply: Reply) -> None:
    meter = Meter()
    with pytest.raises(ModelUnavailable) as caught:
        await answer_to(reply, request=replace(QUESTION, meter=meter), completion_timeout_s=0.3)
    assert caught.value.reason == "LLM_TIMEOUT"
    assert meter.total.prompt_tokens > 0


async def test_fast_stream_that_says_nothing_is_bounded_too() -> None:
    empty = b'data: {"choices": [{"index": 0, "delta": {}}]}\n\n' * 1000
    deltas = await answer_to(Reply([empty], endless=True))
    assert finish_of(deltas).reason is FinishReason.CUT_OFF


async def test_slow_answer_is_cut_off_with_what_came() -> None:
    deltas = await answer_to(Reply(["word "], endless=True, pause_s=0.02), completion_timeout_s=2.0)
    assert text_of(deltas).startswith("word ")
    assert finish_of(deltas).reason is FinishReason.CUT_OFF
    assert finish_of(deltas).usage.estimated


async def test_endless_answer_is_bounded_by_tokens() -> None:
    deltas = await answer_to(Reply(["and so on "], endless=True))
    assert finish_of(deltas).reason is FinishReason.CUT_OFF
    assert len(text_of(deltas)) < 16 * 100


@pytest.mark.parametrize("size", [1_500_000, 65_536])
async def test_huge_delta_is_cut_to_what_was_asked_for(size: int) -> None:
    deltas = await answer_to(Reply(["x" * size], endless=True))
    assert finish_of(deltas).reason is FinishReason.CUT_OFF
    assert 0 < len(text_of(deltas)) < 1000


async def test_huge_delta_that_was_asked_for_is_taken() -> None:
    text = "word " * 300_000
    deltas = await answer_to(Reply([text]), request=replace(QUESTION, max_tokens=300_000))
    assert text_of(deltas) == text
    assert finish_of(deltas).reason is FinishReason.STOP


async def test_line_without_end_is_given_up() -> None:
    with pytest.raises(ModelUnavailable, match="line without end"):
        await answer_to(Reply([b"data: " + b"x" * 100_000] + [b"x" * 100_000] * 100))


async def test_emoji_in_two_halves_is_whole_and_a_lone_half_is_replaced() -> None:
    halves = [
        rb'data: {"choices": [{"delta": {"content": "a \ud83d"}}]}' + b"\n\n",
        rb'data: {"choices": [{"delta": {"content": "\ude80 b \ud83d"}}]}' + b"\n\n",
        rb'data: {"choices": [{"delta": {"content": " c \ude80"}}]}' + b"\n\n",
    ]
    assert text_of(await answer_to(Reply(halves))) == "a 🚀 b \ufffd c \ufffd"


async def test_lone_half_at_the_end_is_replaced() -> None:
    half = rb'data: {"choices": [{"delta": {"content": "a \ud83d"}}]}' + b"\n\n"
    assert text_of(await answer_to(Reply([half]))) == "a \ufffd"


async def test_bytes_of_a_character_in_two_packets() -> None:
    event = 'data: {"choices": [{"delta": {"content": "🚀"}}]}\n\n'.encode()
    middle = event.index("🚀".encode()) + 2
    assert text_of(await answer_to(Reply([event[:middle], event[middle:]], pause_s=0.02))) == "🚀"


async def test_half_a_character_in_the_prompt_is_not_sent() -> None:
    async with asked(Reply(["a"])) as (script, endpoint):
        await answer(endpoint, replace(QUESTION, messages=[ChatMessage("user", "hi \ud83d")]))
    assert script.requests[0]["messages"][0]["content"] == "hi \ufffd"


@dataclass(frozen=True)
class Thinking:
    """Pieces of text, and what of them is answer and thought."""

    name: str
    pieces: tuple[str, ...]
    text: str
    thought: str


THINKING = [
    Thinking("one piece", ("<think>Hm.</think>\n\nYes.",), "Yes.", "Hm."),
    Thinking("split tags", ("<th", "ink>H", "m.</", "thi", "nk>", "\n\n", "Yes."), "Yes.", "Hm."),
    Thinking("letter by letter", tuple("<think>Hm.</think>Yes."), "Yes.", "Hm."),
    Thinking("in the middle", ("Yes. <thinking>Hm.</thinking>", "No."), "Yes. No.", "Hm."),
    Thinking("other names", ("[THINK]Hm.[/THINK]", "<thought>So.</thought>Yes."), "Yes.", "Hm.So."),
    Thinking("no tag at all", ("a < b and b <", "t> [", "1]"), "a < b and b <t> [1]", ""),
]


async def test_thinking_that_used_up_the_tokens_is_no_answer() -> None:
    deltas = await answer_to(Reply(["<think>Hm. ", "And so on"], finish_reason="length"))
    assert (text_of(deltas), thought_of(deltas)) == ("", "Hm. And so on")
    assert finish_of(deltas).reason is FinishReason.LENGTH


@pytest.mark.parametrize("case", THINKING, ids=lambda case: case.name)
async def test_thinking_in_tags_is_no_part_of_the_answer(case: Thinking) -> None:
    deltas = await answer_to(Reply(case.pieces))
    assert (text_of(deltas), thought_of(deltas)) == (case.text, case.thought)


async def test_thinking_without_an_opening_tag_is_taken_back_and_known_from_then_on() -> None:
    pieces = ["Hm. ", "So.", "</think>", "Yes."]
    async with asked(Reply(pieces), Reply(pieces), Reply(["No tag."]), Reply(pieces)) as (_, endpoint):
        first = await answer(endpoint)
        taken_back = first.index(Retraction())
        assert text_of(first[taken_back:]) == "Yes."
        second = await answer(endpoint)
        assert (text_of(second), thought_of(second)) == ("Yes.", "Hm. So.")
        assert Retraction() not in second
        assert text_of(await answer(endpoint)) == "No tag."
        assert Retraction() in await answer(endpoint)


@pytest.mark.parametrize(
    "chunk",
    [
        "[]",
        "7",
        '"text"',
        '{"choices": null}',
        '{"choices": [null]}',
        '{"choices": [{"delta": null}]}',
        '{"choices": [{"delta": {"content": 7, "tool_calls": 7, "reasoning": []}, "finish_reason": 7}], "usage": 7}',
        '{"choices": [{"delta": {"tool_calls": [null, {"index": {}, "function": 7}]}}]}',
        '{"usage": {"prompt_tokens": -1, "completion_tokens": "7", "total_tokens": true}, "choices": {}}',
    ],
)
async def test_chunk_of_another_shape_is_passed_over(chunk: str) -> None:
    deltas = await answer_to(Reply([f"data: {chunk}\n\n".encode(), "Yes."]))
    assert text_of(deltas) == "Yes."


async def test_forced_call_that_ran_out_of_tokens_has_no_text() -> None:
    # What vLLM streams; without streaming the same comes as the text below.
    deltas = await answer_to(Reply([{"content": ""}], finish_reason="length"), request=TOOL_QUESTION)
    assert (text_of(deltas), finish_of(deltas).reason) == ("", FinishReason.LENGTH)
    written = Reply(['<tool_call>\n{"name":'], finish_reason="length")
    deltas = await answer_to(written, request=TOOL_QUESTION)
    assert (text_of(deltas), calls_of(deltas), finish_of(deltas).reason) == ("", [], FinishReason.LENGTH)


async def test_call_written_as_text_is_a_call() -> None:
    pieces = ["I search. <tool", '_call>{"name": "search", "argu', 'ments": {"query": "cats"}}</tool_call>']
    async with asked(Reply(pieces)) as (_, endpoint):
        deltas = await answer(endpoint, TOOL_QUESTION)
        assert text_of(deltas) == "I search. "
        assert [call[1:] for call in calls_of(deltas)] == [("search", '{"query": "cats"}')]
        assert finish_of(deltas).reason is FinishReason.TOOL_CALLS
        assert "<tool_call>" in text_of(await answer(endpoint)), "without tools it is text as any other"
