"""The chunks of a completion, turned into deltas. Every provider's liberties with the format are taken here, and so is what no
provider should send: nothing in a chunk is trusted to have its type."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from kit.llm.endpoint.streaming.calls import CallAssembly
from kit.llm.endpoint.streaming.markup import MarkupSplitter, Part
from kit.llm.endpoint.streaming.unicode import SurrogateJoiner
from kit.llm.messages import Delta, FinishReason, ReasoningDelta, Retraction, TextDelta, TokenUsage

_REASONS = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "recitation": FinishReason.CONTENT_FILTER,
    "prohibited_content": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.CONTENT_FILTER,
}
"""What providers say; any other word is an end that we cannot call whole."""
_MOST_TOKENS = 20_000_000
"""Of one completion. No context is as long, and a hundred such counts still fit the messages that carry them."""


class Decoder:
    """The state of one completion."""

    def __init__(self, *, with_tools: bool, starts_thinking: bool, new_id: Callable[[], str]) -> None:
        self._markup = MarkupSplitter(with_calls=with_tools, starts_thinking=starts_thinking)
        self._calls = CallAssembly(new_id)
        self._surrogates = SurrogateJoiner()
        self._said_reason: FinishReason | None = None
        self._refused = False
        self.usage: TokenUsage | None = None
        """As the endpoint counted, once it has said."""

    @property
    def closed_unopened(self) -> bool:
        """Whether the text began inside a block of thinking."""
        return self._markup.closed_unopened

    @property
    def has_ended(self) -> bool:
        """Whether the endpoint has said why it ended: nothing of the answer follows, but perhaps its usage."""
        return self._said_reason is not None

    @property
    def reason(self) -> FinishReason:
        """Why it ended; INCOMPLETE as long as the endpoint has not said."""
        if self._said_reason is None:
            return FinishReason.INCOMPLETE
        if self._refused:
            return FinishReason.CONTENT_FILTER
        # Gemini, Ollama and vLLM's named calls say "stop" of an answer that consists of calls.
        if self._said_reason is FinishReason.STOP and self._calls.count:
            return FinishReason.TOOL_CALLS
        return self._said_reason

    def feed(self, chunk: Any) -> Iterator[Delta]:
        """The deltas of one chunk, often none."""
        if not isinstance(chunk, dict):
            return
        self._note_usage(chunk.get("usage"))
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta")
        if isinstance(delta, dict):
            yield from self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._said_reason = _REASONS.get(reason.lower(), FinishReason.INCOMPLETE)

    def finish(self) -> Iterator[Delta]:
        """What was held back for what might have followed."""
        yield from self._split(self._surrogates.finish(Part.TEXT))
        for part, text in self._markup.finish(is_whole=self.reason.is_whole):
            yield from self._part(part, text)
        yield from self._calls.finish(is_whole=self.reason.is_whole)

    def _delta(self, delta: dict[str, Any]) -> Iterator[Delta]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            yield from self._reasoning(thought)
        content = delta.get("content")
        for kind, text in _pieces(content):
            yield from self._reasoning(text) if kind is Part.REASONING else self._text(text)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refused = True
            yield from self._text(refusal)
        if isinstance(call := delta.get("function_call"), dict):  # of the time before there were tools
            yield from self._calls.feed({"function": call})
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                yield from self._calls.feed(call)

    def _text(self, text: str) -> Iterator[Delta]:
        yield from self._split(self._surrogates.feed(Part.TEXT, text))

    def _split(self, text: str) -> Iterator[Delta]:
        if text:
            for part, piece in self._markup.feed(text):
                yield from self._part(part, piece)

    def _reasoning(self, text: str) -> Iterator[Delta]:
        if whole := self._surrogates.feed(Part.REASONING, text):
            yield ReasoningDelta(whole)

    def _part(self, part: Part, text: str) -> Iterator[Delta]:
        match part:
            case Part.TEXT:
                yield TextDelta(text)
            case Part.REASONING:
                yield ReasoningDelta(text)
            case Part.RETRACTION:
                yield Retraction()
            case Part.TOOL_CALL:
                self._calls.feed_written(text)
            case Part.TOOL_CALL_END:
                yield from self._calls.end_written()

    def _note_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            prompt, completion, total = (
                _count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total")
            )
            if prompt or completion:
                # Gemini and Grok leave what was thought out of completion_tokens, but not out of the total, nor of the bill.
                self.usage = TokenUsage(prompt, max(completion, total - prompt))


def error_of(chunk: Any) -> Any:
    """The error that a chunk carries instead of a piece of the answer; None if it does not."""
    if isinstance(chunk, list) and chunk:  # Gemini
        chunk = chunk[0]
    return chunk.get("error") if isinstance(chunk, dict) else None


def parsed(text: str) -> Any:
    """The JSON value. Raises ValueError, also for what is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _pieces(content: Any) -> Iterator[tuple[Part, str]]:
    """Content is text; Mistral's thinking models send a list of parts."""
    if isinstance(content, str):
        if content:
            yield Part.TEXT, content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(text := part.get("text"), str):
                yield Part.TEXT, text
            elif isinstance(part, dict) and isinstance(thought := part.get("thinking"), str | list):
                yield Part.REASONING, "".join(text for _, text in _pieces(thought))


def _count(value: Any) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 < value <= _MOST_TOKENS else 0
