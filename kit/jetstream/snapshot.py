"""Copies of whole streams, taken and brought back by the server while it runs.

The protocol is that of the `nats` command's `stream backup` and `restore` (nats.go's jsm): the server sends a compressed tar of the
stream to an inbox in pieces, a window ahead of the acknowledgements; restoring is a request a piece. The Python client lacks both.
Sequence numbers are kept, so revisions of key-value entries stay what they were. Consumers are left out: services make their own.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription

from kit.errors import DataLoss
from kit.jetstream.connection import Nats, translated_errors

PIECE_BYTES = 256 * 1024
"""A quarter of the server's default largest message."""
_PREPARE_TIMEOUT_S = 300.0
"""The server reads the stream's state before the first piece, and checks what it was given before it answers the last."""
_PIECE_TIMEOUT_S = 30.0
_API = "$JS.API"


@dataclass(frozen=True)
class StreamCopy:
    """What a copy is of: the stream's configuration, and its state at the moment of the copy, both as the server says it."""

    config: dict[str, Any]
    state: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.config["name"])

    @property
    def messages(self) -> int:
        return int(self.state["messages"])

    @property
    def last_seq(self) -> int:
        return int(self.state["last_seq"])


@asynccontextmanager
async def copy_of(nats: Nats, stream: str) -> AsyncIterator[tuple[StreamCopy, AsyncGenerator[bytes, None]]]:
    """A stream's copy and its bytes, to be read within the block. Raises DataLoss when the server cannot read its own files."""
    with translated_errors(f"stream {stream}"):
        inbox = nats.nc.new_inbox()
        pieces = await nats.nc.subscribe(inbox)
        try:
            request = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": PIECE_BYTES}
            answer = await _request(nats.nc, f"{_API}.STREAM.SNAPSHOT.{stream}", request, stream)
            yield StreamCopy(answer["config"], answer["state"]), _received(nats.nc, pieces, stream)
        finally:
            await pieces.unsubscribe()


async def bring_back(nats: Nats, copy: StreamCopy, pieces: AsyncIterator[bytes]) -> StreamCopy:
    """Makes the stream from a copy; returns what it is then. Raises DataLoss when there is one of that name, or when the server
    does not take the copy or holds less than was copied afterwards."""
    stream = copy.name
    with translated_errors(f"stream {stream}"):
        request = {"config": copy.config, "state": copy.state}
        target = (await _request(nats.nc, f"{_API}.STREAM.RESTORE.{stream}", request, stream))["deliver_subject"]
        async for piece in pieces:
            answer = await nats.nc.request(target, piece, timeout=_PIECE_TIMEOUT_S)
            if answer.data:
                _checked(answer.data, stream)
        done = _checked((await nats.nc.request(target, b"", timeout=_PREPARE_TIMEOUT_S)).data, stream)
    made = StreamCopy(done["config"], done["state"])
    if made.last_seq < copy.last_seq:
        raise DataLoss(
            f"stream {stream} ends at message {made.last_seq} after it was restored; {copy.last_seq} had been copied",
            reason="STREAM_INCOMPLETE",
        )
    return made


async def stream_names(nats: Nats) -> list[str]:
    """All streams of the account, by name."""
    names: list[str] = []
    with translated_errors("streams"):
        while True:
            answer = await _request(nats.nc, f"{_API}.STREAM.NAMES", {"offset": len(names)}, "list")
            page = answer.get("streams") or []
            names += page
            if not page or len(names) >= answer["total"]:
                return sorted(names)


async def _received(nc: Client, pieces: Subscription, stream: str) -> AsyncGenerator[bytes, None]:
    while True:
        message = await pieces.next_msg(timeout=_PIECE_TIMEOUT_S)
        if not message.data:
            status = (message.headers or {}).get("Status", "")
            if status not in ("", "204"):
                reason = (message.headers or {}).get("Description", "")
                raise DataLoss(f"stream {stream} cannot be copied: {status} {reason}", reason="STREAM_UNREADABLE")
            return
        yield message.data
        if message.reply:
            await nc.publish(message.reply)


async def _request(nc: Client, subject: str, body: dict[str, Any], stream: str) -> dict[str, Any]:
    return _checked((await nc.request(subject, json.dumps(body).encode(), timeout=_PREPARE_TIMEOUT_S)).data, stream)


def _checked(data: bytes, stream: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(data)
    if error := answer.get("error"):
        raise DataLoss(f"stream {stream}: the message store says: {error['description']}", reason="STREAM_REFUSED")
    return answer
