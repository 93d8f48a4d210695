"""Nothing that an endpoint sends breaks the reader."""

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.llm import Delta, FinishReason, ReasoningDelta, Retraction, TextDelta, TokenUsage
from kit.llm.endpoint.endpoint import env_setting
from kit.llm.endpoint.failures import Failures, refused_field, retry_after_s
from kit.llm.endpoint.streaming.decoding import Decoder, error_of
from kit.llm.endpoint.streaming.sse import LineReader

NAMES = [
    "choices", "delta", "content", "reasoning", "tool_calls", "index", "id", "function", "name", "arguments", "usage",
    "finish_reason", "prompt_tokens", "total_tokens", "text", "thinking", "refusal", "extra_content", "google", "error",
    "message", "code",
]  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["stop", "<think>", "\ud83d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=15,
)


def decoder() -> Decoder:
    ids = map(str, count())
    return Decoder(with_tools=True, starts_thinking=False, new_id=lambda: next(ids))


def all_of(reader: Decoder, chunks: list[Any]) -> list[Delta]:
    return [delta for chunk in chunks for delta in reader.feed(chunk)] + list(reader.finish())


@given(st.lists(VALUES, max_size=4))
def test_chunks_of_any_shape_are_read(chunks: list[Any]) -> None:
    shaped = [{"choices": [{"delta": chunk, "finish_reason": chunk}], "usage": chunk} for chunk in chunks]
    for delta in all_of(decoder(), [*chunks, *shaped]):
        json.dumps(str(delta)).encode()


@given(VALUES, st.integers(400, 599), st.text())
def test_errors_of_any_shape_are_named(value: Any, status: int, header: str) -> None:
    failures = Failures("m", env_setting, "secret-key")
    body = json.dumps(value)
    failures.of_status(status, body, header).message.encode()
    failures.of_error_in_stream(error_of(value)).message.encode()
    refused_field(status, body, {"temperature": 0})
    assert retry_after_s(header) is None or (retry_after_s(header) or 0) >= 0


@given(st.binary(), st.integers(1, 7))
def test_bytes_are_cut_into_the_same_lines_however_they_come(data: bytes, step: int) -> None:
    whole, pieces = LineReader(), LineReader()
    at_once = [*whole.feed(data), *whole.finish()]
    cut = [data[start : start + step] for start in range(0, len(data), step)]
    assert [line for block in cut for line in pieces.feed(block)] + list(pieces.finish()) == at_once


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "ink>", "a", " ", "[", "1]", "</", "<tool_call>"])))
def test_text_splits_the_same_however_it_comes(pieces: list[str]) -> None:
    def chunk(text: str) -> Any:
        return {"choices": [{"delta": {"content": text}}]}

    def told(deltas: list[Delta]) -> tuple[str, str, int]:
        text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
        return text, thought, sum(isinstance(delta, Retraction) for delta in deltas)

    by_piece = told(all_of(decoder(), [chunk(piece) for piece in pieces]))
    at_once = told(all_of(decoder(), [chunk("".join(pieces))]))
    assert by_piece == at_once


@pytest.mark.parametrize("count", [-5, 10**9, 10**30, True, "7", 1.5, None])
def test_usage_that_cannot_be_true_is_not_said(count: Any) -> None:
    reader = decoder()
    all_of(reader, [{"usage": {"prompt_tokens": 100, "completion_tokens": count, "total_tokens": count}}])
    assert reader.usage == TokenUsage(100, 0)


def test_end_that_nobody_stated_is_incomplete() -> None:
    assert decoder().reason is FinishReason.INCOMPLETE
