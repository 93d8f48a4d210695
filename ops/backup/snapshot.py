"""Copies of whole streams, taken and brought back by the server while it runs.

The protocol is that of the `nats` command's `stream backup` and `restore` (nats.go's jsm): the server sends a compressed tar of the
stream to an inbox in pieces, a window ahead of the acknowledgements; restoring is a request a piece. The Python client lacks both.
Sequence numbers are kept, so revisions of key-value entries stay what they were. Consumers are left out: services make their own.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import NoRespondersError

from kit.errors import DataLoss
from kit.jetstream.connection import Nats
from kit.jetstream.failures import replicas_explained, translated_errors
from kit.jetstream.streams import API, api_request, checked

PIECE_BYTES = 256 * 1024
"""A quarter of the server's default largest message."""
_FINISH_TIMEOUT_S = 300.0
"""The server builds the stream from what it was given before it answers the last piece."""
_PIECE_TIMEOUT_S = 30.0
_RETRY_AFTER_S = 0.05


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
            answer = await api_request(nats, f"{API}.STREAM.SNAPSHOT.{stream}", request, stream)
            yield StreamCopy(answer["config"], answer["state"]), _received(nats.nc, pieces, stream)
        finally:
            await pieces.unsubscribe()


async def bring_back(nats: Nats, copy: StreamCopy, pieces: AsyncIterator[bytes]) -> StreamCopy:
    """Makes the stream from a copy, on as many servers as `nats` says; returns what it is then. Raises DataLoss when there is one
    of that name, or when the server does not take the copy or holds less than was copied afterwards, and Unavailable while fewer
    servers have joined the cluster."""
    stream = copy.name
    with translated_errors(f"stream {stream}"):
        request = {"config": copy.config | {"num_replicas": nats.replicas}, "state": copy.state}
        with replicas_explained(stream, nats.replicas), translated_errors(f"stream {stream}"):
            begun = await api_request(nats, f"{API}.STREAM.RESTORE.{stream}", request, stream)
        target = begun["deliver_subject"]
        async for piece in pieces:
            answer = await _handed_over(nats, target, piece)
            if answer.data:
                checked(answer.data, stream)
        done = checked((await nats.nc.request(target, b"", timeout=_FINISH_TIMEOUT_S)).data, stream)
    made = StreamCopy(done["config"], done["state"])
    if made.last_seq < copy.last_seq:
        raise DataLoss(
            f"stream {stream} ends at message {made.last_seq} after it was restored; {copy.last_seq} had been copied",
            reason="STREAM_INCOMPLETE",
        )
    return made


async def _handed_over(nats: Nats, target: str, piece: bytes) -> Msg:
    """The server's answer to a piece. In a cluster another one than ours may take them: until ours has heard of that, it says that
    nobody listens."""
    give_up_at = asyncio.get_running_loop().time() + _PIECE_TIMEOUT_S
    while True:
        try:
            return await nats.nc.request(target, piece, timeout=_PIECE_TIMEOUT_S)
        except NoRespondersError:
            if asyncio.get_running_loop().time() > give_up_at:
                raise
        await asyncio.sleep(_RETRY_AFTER_S)


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
