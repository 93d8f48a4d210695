"""Tags that models write into their text: `<think>…</think>` is no part of the answer, and `<tool_call>…</tool_call>` (Hermes) is
a call that the server has not recognised."""

import re
from collections.abc import Iterator
from enum import Enum

_THINKING = ("think", "thinking", "thought")
_TAG = re.compile(r"<(?P<close>/?)(?P<name>think|thinking|thought|tool_call)>|\[(?P<close2>/?)THINK\]", re.IGNORECASE)
_TAGS = [f"<{slash}{name}>" for name in (*_THINKING, "tool_call") for slash in ("", "/")] + ["[think]", "[/think]"]
_LONGEST_TAG = max(map(len, _TAGS))


class Part(Enum):
    """What a piece of text is."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_CALL_END = "tool_call_end"
    RETRACTION = "retraction"
    """A block of thinking ends that was never opened: all text so far was thinking. Templates that open it themselves
    (DeepSeek-R1's) make a server without a reasoning parser send this."""


class MarkupSplitter:
    """Tells the parts of a streamed text apart. The end of a piece is held back while it may become a tag."""

    def __init__(self, *, with_calls: bool, starts_thinking: bool) -> None:
        self._with_calls = with_calls
        self._part = Part.REASONING if starts_thinking else Part.TEXT
        self._assumed: list[str] | None = [] if starts_thinking else None
        self._held = ""
        self._thought = False
        self._skips_space = False
        self.closed_unopened = False
        """Whether the text began inside a block of thinking."""

    def feed(self, piece: str) -> Iterator[tuple[Part, str]]:
        text = self._held + piece
        position = 0
        for tag in _TAG.finditer(text):
            if not self._heeds(tag):
                continue
            yield from self._pass(text[position : tag.start()])
            yield from self._turn(tag)
            position = tag.end()
        rest = text[position:]
        cut = len(rest) - _length_of_unfinished_tag(rest)
        self._held = rest[cut:]
        yield from self._pass(rest[:cut])

    def finish(self, *, is_whole: bool) -> Iterator[tuple[Part, str]]:
        """What was held back; and, where thinking was only assumed and a whole answer never ended it, the answer."""
        held, self._held = self._held, ""
        yield from self._pass(held)
        if self._assumed is not None and is_whole:
            yield Part.TEXT, "".join(self._assumed)

    def _heeds(self, tag: re.Match[str]) -> bool:
        is_call = (tag["name"] or "").lower() == "tool_call"
        if self._part is Part.TOOL_CALL:
            return is_call
        return not is_call or (self._with_calls and self._part is Part.TEXT)

    def _turn(self, tag: re.Match[str]) -> Iterator[tuple[Part, str]]:
        closes = bool(tag["close"] or tag["close2"])
        self._skips_space = True
        if (tag["name"] or "").lower() == "tool_call":
            if self._part is Part.TOOL_CALL:
                yield Part.TOOL_CALL_END, ""
            self._part = Part.TEXT if closes else Part.TOOL_CALL
            return
        if closes and not self._thought:
            self.closed_unopened = True
            if self._part is Part.TEXT:
                yield Part.RETRACTION, ""
        self._assumed = None
        self._thought = True
        self._part = Part.TEXT if closes else Part.REASONING

    def _pass(self, text: str) -> Iterator[tuple[Part, str]]:
        if self._skips_space:
            text = text.lstrip()
        if not text:
            return
        self._skips_space = False
        if self._assumed is not None:
            self._assumed.append(text)
        yield self._part, text


def _length_of_unfinished_tag(text: str) -> int:
    """Characters at the end that may yet become a tag."""
    tail = text[-_LONGEST_TAG:].lower()
    start = max(tail.rfind("<"), tail.rfind("["))
    if start < 0:
        return 0
    unfinished = tail[start:]
    return len(unfinished) if any(tag.startswith(unfinished) and tag != unfinished for tag in _TAGS) else 0
