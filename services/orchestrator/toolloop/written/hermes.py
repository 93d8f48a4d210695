"""Calls that a model writes as text, where its server has not recognised them: `<tool_call>…</tool_call>` of Hermes, Qwen and GLM,
Llama's `<function=name>{…}</function>` and `<|python_tag|>{…}`, Mistral's `[TOOL_CALLS][…]`, and an answer that is nothing but the
JSON of a call. They are separated while the text streams, so that nobody is shown one."""

import re
from collections.abc import Collection
from enum import Enum

from services.orchestrator.toolloop.written.written_calls import WrittenCall, calls_in, is_call_like, may_become_call

_FENCE = r"```[\w-]*+\s*+"
_FENCE_END = "```"
_OPENERS = ("<tool_call>", "<function_call>", "<function=", "<|python_tag|>", "[TOOL_CALLS]")
_OPENER = re.compile(rf"(?:{_FENCE})?(?P<tag>{'|'.join(map(re.escape, _OPENERS))})", re.IGNORECASE)
_CLOSERS = {
    "<tool_call>": re.compile(r"</tool_call>|(?=<tool_call>)", re.IGNORECASE),
    "<function_call>": re.compile(r"</function_call>|(?=<function_call>)", re.IGNORECASE),
    "<function=": re.compile(r"</function>|(?=<function=)", re.IGNORECASE),
    "<|python_tag|>": re.compile(r"<\|(?:eom_id|eot_id|im_end)\|>", re.IGNORECASE),
}
"""`[TOOL_CALLS]` reaches to the end of the answer."""
_MAY_BECOME_FENCE = re.compile(r"(?:`{1,2}|```[\w-]*[ \t]*\r?\n?\s*)$")
_LONGEST_HELD_FENCE = 40
_LONGEST_BLOCK_CHARS = 60_000
_BARE_START = re.compile(r"\s*(?:```[\w-]*\s*)?[\[{]")
_BARE_KEY = re.compile(r"""\s*(?:```[\w-]*\s*)?\[?\s*(?:\{\s*(?:["']?(?P<key>\w*)["']?\s*(?P<closed>:)?)?)?""")
_KEYS_OF_CALLS = frozenset(
    {"name", "function", "tool", "tool_name", "type", "arguments", "parameters", "id", "function_call"}
)


class _State(Enum):
    START = "start"
    """Nothing was passed yet: the whole answer may be the JSON of a call."""
    TEXT = "text"
    BLOCK = "block"


class CallTextFilter:
    """Passes the text of one completion on without the calls in it. The end of the text is held back while it may become the
    beginning of one."""

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = offered
        self._state = _State.START
        self._held = ""
        self._opener = ""
        """As it was written, with the fence in front of it."""
        self._tag = ""
        self._skips_fence = False
        """Whether the fence around the last call is still to be closed."""
        self.calls: list[WrittenCall] = []

    def feed(self, piece: str) -> str:
        """What may be shown by now."""
        self._held += piece
        shown = ""
        while True:
            match self._state:
                case _State.START:
                    if _may_be_bare_call(self._held):
                        return shown
                    self._state = _State.TEXT
                case _State.TEXT:
                    if self._skips_fence and not self._skip_fence():
                        return shown
                    opener = _OPENER.search(self._held)
                    if opener is None:
                        cut = len(self._held) - _length_of_unfinished_opener(self._held)
                        shown, self._held = shown + self._held[:cut], self._held[cut:]
                        return shown
                    shown += self._held[: opener.start()]
                    self._opener, self._tag, self._held = opener[0], opener["tag"], self._held[opener.end() :]
                    self._state, self._skips_fence = _State.BLOCK, opener[0].startswith("`")
                case _State.BLOCK:
                    text = self._read_block()
                    if text is None:
                        return shown
                    shown += text

    def finish(self) -> str:
        """What was held back and is text; what was a call is in `calls`."""
        shown = ""
        while self._held or self._state is _State.BLOCK:
            held, self._held = self._held, ""
            if self._state is _State.BLOCK:
                shown += self._end_block(held, "")
            elif self._state is _State.TEXT:
                return shown + held
            elif not self._take_bare_calls(held):
                shown += held if not held.strip() else ""
                self._held = held if held.strip() else ""
            if self._held:
                shown += self._scan()
        return shown

    def _scan(self) -> str:
        """Goes on behind a place that turned out to be text."""
        self._state = _State.TEXT
        return self.feed("")

    def _take_bare_calls(self, text: str) -> bool:
        calls = calls_in(text)
        is_call = bool(calls) and all(call.name in self._offered for call in calls)
        self.calls += calls if is_call else ()
        return is_call

    def _read_block(self) -> str | None:
        """Reads the block to its end, and returns what of it is text; None while its end has not come."""
        closer = _CLOSERS.get(self._tag.lower())
        end = closer.search(self._held) if closer else None
        if end is not None:
            return self._end_block(self._held[: end.start()], self._held[end.end() :])
        if len(self._held) > _LONGEST_BLOCK_CHARS or not may_become_call(self._written(self._held)):
            return self._end_block(self._held, "")
        return None

    def _end_block(self, body: str, rest: str) -> str:
        """Takes the calls out of the body. What is no attempt at one is text, perhaps about the tag."""
        self._state = _State.TEXT
        written = self._written(body)
        calls = [WrittenCall(body.strip(), "")] if body.strip() in self._offered else calls_in(written)
        if not calls and not is_call_like(written):
            self._held, self._skips_fence = body + rest, False
            return self._opener
        self.calls += calls or [WrittenCall("", written.strip())]
        self._held = rest
        return ""

    def _skip_fence(self) -> bool:
        """Takes the end of the fence away; False while it may still come."""
        text = self._held.lstrip()
        if len(text) < len(_FENCE_END) and _FENCE_END.startswith(text):
            return False
        self._held, self._skips_fence = (
            text.removeprefix(_FENCE_END) if text.startswith(_FENCE_END) else self._held,
            False,
        )
        return True

    def _written(self, body: str) -> str:
        return self._tag + body if self._tag.lower() == "<function=" else body


def _may_be_bare_call(text: str) -> bool:
    """Whether the text, all of the answer so far, may be the JSON of a call, alone or in a code fence."""
    if not text.strip():
        return True
    stripped = text.lstrip()
    if "```".startswith(stripped) or re.fullmatch(r"```[\w-]{0,12}\s*", stripped):
        return True
    if not _BARE_START.match(text):
        return False
    key = _BARE_KEY.match(text)
    if key is None:
        return False
    if key["closed"]:
        return (key["key"] or "").lower() in _KEYS_OF_CALLS
    return key.end() == len(text) and any(each.startswith((key["key"] or "").lower()) for each in _KEYS_OF_CALLS)


def _length_of_unfinished_opener(text: str) -> int:
    """Characters at the end that may yet become the beginning of a call."""
    fence = _MAY_BECOME_FENCE.search(text[-_LONGEST_HELD_FENCE:])
    tail = text[-max(map(len, _OPENERS)) :].lower()
    length = next(
        (size for size in range(len(tail), 0, -1) if any(each.lower().startswith(tail[-size:]) for each in _OPENERS)), 0
    )
    if length:
        before = text[: len(text) - length][-_LONGEST_HELD_FENCE:]
        fence_before = re.search(rf"{_FENCE}$", before)
        return length + (len(fence_before[0]) if fence_before else 0)
    return len(fence[0]) if fence else 0
