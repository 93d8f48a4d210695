"""Server-sent events, read (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
"""A carriage return at the very end may be half of a pair: it waits for what follows."""


@dataclass(frozen=True)
class Event:
    """One event. `seq` is its id where that is a number."""

    kind: str
    data: dict[str, Any]
    seq: int | None


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """Events of a stream that comes in any pieces. An event that the stream's end cuts off is dropped, as the standard says."""
    kind, data, seq = "message", list[str](), None
    async for line in _lines(pieces):
        if not line:
            if data:
                yield Event(kind, json.loads("\n".join(data)), seq)
            kind, data, seq = "message", [], None
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
        elif name == "id" and value.isascii() and value.isdigit():
            seq = int(value)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Lines end where the standard says and nowhere else: not at the line separators of Unicode (U+2028, U+0085 …) that an answer
    may hold, and that `str.splitlines` and httpx's `aiter_lines` cut at."""
    rest = b""
    async for piece in pieces:
        *whole, rest = _LINE_END.split(rest + piece)
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest.endswith(b"\r"):
        yield rest[:-1].decode("utf-8", "replace")
