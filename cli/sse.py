"""Server-sent events, read (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """One event. `seq` is its id where that is a number."""

    kind: str
    data: dict[str, Any]
    seq: int | None


async def read_events(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    """Events from the lines of a stream. An event that the stream's end cuts off is dropped, as the standard says."""
    kind, data, seq = "message", list[str](), None
    async for line in lines:
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
        elif name == "id" and value.isdigit():
            seq = int(value)
