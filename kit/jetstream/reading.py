"""Reading what is stored: the messages of a subject in batches, without a consumer (JetStream's direct get, ADR-31), or the last
one of each subject. A batch comes from any replica, also from one that lags: who needs all asks the leader where the end is."""

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from kit.errors import Unavailable
from kit.jetstream.connection import PATIENCE_S, Nats
from kit.jetstream.failures import StoreSilent, translated_errors
from kit.jetstream.following import follow
from kit.jetstream.streams import replica_count, subject_counts

_BATCH = 256
_BATCH_BYTES = 1_000_000
_READ_AT_ONCE = 64
_LAG_S = 0.05
"""Until a replica that lags is asked again."""
_STATUS = "Status"
_END, _NOTHING, _NOBODY = "204", "404", "503"
_OF_THE_ANSWER = {
    "Nats-Stream",
    "Nats-Subject",
    "Nats-Sequence",
    "Nats-Time-Stamp",
    "Nats-Num-Pending",
    "Nats-Last-Sequence",
}


@dataclass(frozen=True)
class StoredMessage:
    """A message of a stream."""

    subject: str
    position: int
    """Its sequence number in the stream."""
    at: datetime
    data: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def delivered(cls, message: Msg) -> "StoredMessage":
        """One that a consumer brought."""
        metadata = message.metadata
        return cls(
            message.subject, metadata.sequence.stream, metadata.timestamp, message.data, dict(message.headers or {})
        )

    @classmethod
    def described(cls, message: Msg) -> "StoredMessage":
        """One that the server sent as the answer to a direct get, or on behalf of a stream that republishes: its headers say of
        what it is. Those that it was published with are kept."""
        headers = dict(message.headers or {})
        subject, position, at = (headers[name] for name in ("Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"))
        return cls(subject, int(position), datetime.fromisoformat(at), message.data, _own(headers))


async def stored_messages(
    nats_: Nats, stream: str, subject: str, *, after: int = 0
) -> AsyncGenerator[StoredMessage, None]:
    """Messages on `subject` that are stored behind position `after`, in order, to the end of what is stored. At most a megabyte
    and one message of them is in memory at a time. Raises Unavailable."""
    while True:
        batch, is_last = await nats_.persist(f"stream {stream}", partial(_batch, nats_, stream, subject, after + 1))
        for message in batch:
            yield message
        if is_last:
            return
        after = batch[-1].position


async def all_messages(
    nats_: Nats, stream: str, subject: str, *, after: int = 0
) -> AsyncGenerator[StoredMessage, None]:
    """As `stored_messages`, at least up to the last one that the stream's leader has now: a replica that lags is asked again.
    Raises Unavailable, also when that takes too long."""
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + PATIENCE_S
    end = await last_position(nats_, stream, subject)
    while after < end:
        async with aclosing(stored_messages(nats_, stream, subject, after=after)) as messages:
            async for message in messages:
                after = message.position
                yield message
        if after < end:
            end = min(end, await last_position(nats_, stream, subject))  # it may have been removed
            if clock() > give_up_at:
                raise Unavailable(
                    f"stream {stream}: a replica lags; try again in a few seconds", reason="NATS_UNAVAILABLE"
                )
            await asyncio.sleep(_LAG_S)


async def last_messages(
    nats_: Nats, stream: str, subject: str, *, after: int = 0, headers_only: bool = False, may_lag: bool = False
) -> AsyncGenerator[StoredMessage, None]:
    """The last stored message of each subject that matches `subject`; with `headers_only` without data.

    Each subject comes once, as the stream's leader has it; of a stream with one replica by age. With `may_lag` a replica may say
    what it has. With `after`, of a stream that keeps one a subject, only messages behind that position come, and what is replaced
    meanwhile may be missing. Raises Unavailable.
    """
    if after:
        messages = all_messages(nats_, stream, subject, after=after)
    elif may_lag or await replica_count(nats_, stream) == 1:
        messages = _listed(nats_, stream, subject, headers_only=headers_only)
    else:
        messages = _of_leader(nats_, stream, await _subjects(nats_, stream, subject))
    async with aclosing(messages) as found:
        async for message in found:
            yield message


async def _listed(nats_: Nats, stream: str, subject: str, *, headers_only: bool) -> AsyncGenerator[StoredMessage, None]:
    """As a replica lists them. Its listing ends before a message that replaces one which it has not come to yet. So the stream's
    leader is asked at the end which subjects there are, and those that did not come are read one by one."""
    seen: set[str] = set()
    found = follow(nats_, stream, subject, last_per_subject=True, headers_only=headers_only)
    async with aclosing(found) as messages:
        async for message in messages:
            if message is None:
                break
            if message.subject not in seen:
                seen.add(message.subject)
                yield StoredMessage.delivered(message)
    async with aclosing(_of_leader(nats_, stream, await _subjects(nats_, stream, subject) - seen)) as missed:
        async for each in missed:
            yield each


async def last_position(nats_: Nats, stream: str, subject: str) -> int:
    """Of the last message on a subject or pattern that the stream's leader has; 0 when there is none."""
    try:
        return (await nats_.last_message(stream, subject)).seq or 0
    except NotFoundError:
        return 0


async def _subjects(nats_: Nats, stream: str, pattern: str) -> set[str]:
    return set(await subject_counts(nats_, stream, pattern))


async def _of_leader(nats_: Nats, stream: str, subjects: Collection[str]) -> AsyncGenerator[StoredMessage, None]:
    """The last message of each, without those that are gone or torn."""
    all_ = list(subjects)
    for start in range(0, len(all_), _READ_AT_ONCE):
        read = [_last_message(nats_, stream, each) for each in all_[start : start + _READ_AT_ONCE]]
        for stored in await asyncio.gather(*read):
            if stored is not None:
                yield stored


async def _last_message(nats_: Nats, stream: str, subject: str) -> StoredMessage | None:
    """None when there is none any more, or when it is torn."""
    try:
        message = await nats_.last_message(stream, subject)
    except NotFoundError:
        return None
    assert message.seq is not None
    assert message.time is not None
    return StoredMessage(subject, message.seq, message.time, message.data or b"", dict(message.headers or {}))


async def _batch(
    nats_: Nats, stream: str, subject: str, start: int, timeout_s: float
) -> tuple[list[StoredMessage], bool]:
    """The next messages, and whether there are no more."""
    question = {"seq": start, "next_by_subj": subject, "batch": _BATCH, "max_bytes": _BATCH_BYTES}
    inbox = nats_.nc.new_inbox()
    messages: list[StoredMessage] = []
    end: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def take(answer: Msg) -> None:
        if end.done():
            return
        if _STATUS in (answer.headers or {}):
            end.set_result(answer.headers or {})
            return
        try:
            messages.append(StoredMessage.described(answer))
        except (KeyError, ValueError) as error:
            end.set_exception(error)

    with translated_errors(f"stream {stream}"):
        # A callback takes a message in a fifth of the time in which one is waited for with next_msg.
        answers = await nats_.nc.subscribe(inbox, cb=take)
        try:
            await nats_.nc.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(question).encode(), reply=inbox)
            async with asyncio.timeout(timeout_s):
                headers = await end
        finally:
            await answers.unsubscribe()
    if (status := headers[_STATUS]) == _NOBODY:
        raise StoreSilent(
            f"stream {stream}: no server has it now; try again in a few seconds",
            reason="NATS_UNAVAILABLE",
            retry_after_s=2.0,
        )
    if status not in (_END, _NOTHING):
        raise Unavailable(
            f"stream {stream}: the message store cannot be read ({headers.get('Description', status)})",
            reason="NATS_UNAVAILABLE",
            retry_after_s=2.0,
        )
    return messages, not messages or headers.get("Nats-Num-Pending", "0") == "0"


def _own(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in _OF_THE_ANSWER}
