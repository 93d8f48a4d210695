"""The event stream as it comes over the wire."""

import json
from collections.abc import AsyncIterator

import pytest

from cli.client.sse import Event, read_events

SEPARATORS = "one\u2028two\u2029three\x85four\x0bfive\x1csix"


async def events_of(stream: bytes, cut: int) -> list[Event]:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(stream), cut):
            yield stream[start : start + cut]

    return [event async for event in read_events(pieces())]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_lines_end_as_the_standard_says_whatever_pieces_they_come_in(end: str) -> None:
    data = json.dumps({"text": SEPARATORS}, ensure_ascii=False)
    lines = [
        ": hi",
        "",
        "id: 1",
        "event: token",
        f"data: {data}",
        "",
        "data:{",
        'data: "a": 1}',
        "",
        "id: x",
        "data: {}",
    ]
    stream = "".join(line + end for line in lines).encode()
    expected = [Event("token", {"text": SEPARATORS}, 1), Event("message", {"a": 1}, None)]
    for cut in range(1, len(stream) + 1):
        assert await events_of(stream, cut) == expected, f"cut every {cut} bytes"
