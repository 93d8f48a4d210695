"""How long one completion may take, how much it may say, and what it has used."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from kit import deadline
from kit.llm.endpoint.tokens.estimate import CHARS_OF_LONGEST_TOKENS, estimate_tokens, fewest_tokens
from kit.llm.messages import Delta, ReasoningDelta, Request, Retraction, TextDelta, TokenUsage, ToolCallDelta

_SHARE_OF_RUN = 0.85
"""Of the time that the run has left, what a model may use: the rest is for the fallback."""
_TOKENS_OF_GRACE = 64
_TOKENS_OF_A_PIECE = 0.2
"""At least: a piece is a token, or a byte of one, or one letter where a server sends letters."""
_MOST_EMPTY_CHUNKS = 20_000
"""In a row. A model whose thoughts are hidden sends one per token of them."""

T = TypeVar("T")


class OutOfTime(Exception):
    """The completion has used up its time, or nothing has come for too long."""

    def __init__(self, *, stalled: bool) -> None:
        super().__init__()
        self.stalled = stalled


class Clock:
    """Bounds each wait of one completion, and all of them together."""

    def __init__(self, *, total_s: float, stall_s: float, now: Callable[[], float] = time.monotonic) -> None:
        left_s = deadline.remaining_s()
        self.total_s = total_s if left_s is None else min(total_s, left_s * _SHARE_OF_RUN)
        self._now = now
        self._ends_at = now() + self.total_s
        self._stall_s = stall_s

    async def wait_for(self, awaitable: Awaitable[T], *, patient: bool = False, at_most_s: float = float("inf")) -> T:
        """What `awaitable` gives. `patient` allows silence for as long as there is time. Raises OutOfTime."""
        left_s = self._ends_at - self._now()
        silence_s = min(float("inf") if patient else self._stall_s, at_most_s)
        stalls_first = silence_s < left_s
        try:
            async with asyncio.timeout(max(0.0, min(silence_s, left_s))):
                return await awaitable
        except TimeoutError as error:
            raise OutOfTime(stalled=stalls_first) from error


class Account:
    """What one completion has sent and received."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._allowed_tokens = request.max_tokens * 5 / 4 + _TOKENS_OF_GRACE
        self._received: list[str] = []
        self._fewest_tokens = 0.0
        self._empty_chunks = 0
        self.has_answered = False
        """Whether anything came that stands: words of an answer, or a call. Thoughts are neither."""
        self.was_sent = False
        self.said: TokenUsage | None = None
        """As the endpoint counted."""

    @property
    def has_received(self) -> bool:
        return bool(self._received)

    @property
    def is_overdrawn(self) -> bool:
        """Whether the model has written more than it may, or goes on sending nothing."""
        return self._fewest_tokens > self._allowed_tokens or self._empty_chunks > _MOST_EMPTY_CHUNKS

    def admit(self, delta: Delta) -> Delta:
        """Notes the delta; of one that is longer than what the model may still write, the part that it may."""
        if isinstance(delta, Retraction):
            self.has_answered = False
        elif _is_answer(delta, with_tools=bool(self._request.tools)):
            self.has_answered = True
        text = _text_of(delta)
        if not text:
            return delta
        left = self._allowed_tokens - self._fewest_tokens
        cost = max(fewest_tokens(text), _TOKENS_OF_A_PIECE)
        self._fewest_tokens += cost
        if cost > left and len(text) > 1:
            delta = _cut(delta, int(max(left, 0.0) * CHARS_OF_LONGEST_TOKENS))
        self._received.append(_text_of(delta))
        return delta

    def note_chunk(self, *, is_empty: bool) -> None:
        self._empty_chunks = self._empty_chunks + 1 if is_empty else 0

    @property
    def usage(self) -> TokenUsage:
        """As the endpoint counted, else an estimate of what went over the wire."""
        if self.said is not None:
            return self.said
        if not self.was_sent:
            return TokenUsage()
        prompt = sum(estimate_tokens(message.content) for message in self._request.messages)
        return TokenUsage(prompt, estimate_tokens("".join(self._received)), estimated=True)


def _is_answer(delta: Delta, *, with_tools: bool) -> bool:
    return (isinstance(delta, ToolCallDelta) and with_tools) or (
        isinstance(delta, TextDelta) and bool(delta.text.strip())
    )


def _cut(delta: Delta, length: int) -> Delta:
    match delta:
        case TextDelta(text) | ReasoningDelta(text):
            return replace(delta, text=text[:length])
        case ToolCallDelta(arguments=arguments):
            return replace(delta, arguments=arguments[:length])
        case _:
            return delta


def _text_of(delta: Delta) -> str:
    match delta:
        case TextDelta(text) | ReasoningDelta(text):
            return text
        case ToolCallDelta():
            return delta.name + delta.arguments
        case _:
            return ""
