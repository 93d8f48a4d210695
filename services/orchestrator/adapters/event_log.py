"""The event log in JetStream: stream RUNS, one subject a run. The server itself fences a second writer off, by the sequence that
an append expects to be the subject's last."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress

import nats.errors
from google.protobuf.message import DecodeError
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError

from kit.jetstream import Nats
from kit.jetstream.connection import translated_errors
from kit.jetstream.following import follow
from kit.records import set_aside
from services.orchestrator.adapters.codec import event_from_bytes, event_to_proto
from services.orchestrator.errors import FencedOff, forgotten
from services.orchestrator.log.events import Degradation, Done, Payload, RunEvent, Thinking
from services.orchestrator.models import RunKey

STREAM = "RUNS"
_APPEND_TIMEOUT_S = 2.0
_READ_TIMEOUT_S = 5.0
_NO_EVENT = (DecodeError, ValueError, OverflowError)
_WRONG_LAST_SEQUENCE = (10071, 10164)
_DAY_S = 86_400.0
_SEAL = "Groundwork-Erased"
"""Header of the one message that stays of an erased log. Its place in the stream fences off whoever still writes the run."""
_DAMAGED = Degradation("log", "EVENT_DAMAGED", "this step's entry in the run's log is damaged and cannot be shown")


class JetStreamEventLog:
    """EventLog over one NATS connection."""

    def __init__(self, nats_: Nats) -> None:
        self._nats = nats_
        # A lost ack is repaired by sending again: the id makes the server answer with the first one's position. It names
        # the writer, because two writers of one seq must not be taken for one.
        self._writer = secrets.token_hex(4)

    @classmethod
    async def open(cls, nats_: Nats, *, retention_days: float) -> "JetStreamEventLog":
        await nats_.ensure_stream(
            api.StreamConfig(
                name=STREAM,
                subjects=["runs.*.*"],
                storage=api.StorageType.FILE,
                max_age=retention_days * _DAY_S,
                allow_direct=True,
            )
        )
        return cls(nats_)

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        headers: dict[str, str] = {
            api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE: str(last_position),
            api.Header.MSG_ID: f"{key.run_id}:{event.seq}:{self._writer}",
        }
        data = event_to_proto(event).SerializeToString()
        with translated_errors("the event log"):
            for last_try in (False, True):
                try:
                    ack = await self._nats.js.publish(
                        _subject(key), data, timeout=_APPEND_TIMEOUT_S, headers=dict(headers)
                    )
                    return int(ack.seq)
                except APIError as error:
                    if error.err_code in _WRONG_LAST_SEQUENCE:
                        raise FencedOff(f"run {key.run_id} is written by another orchestrator") from error
                    raise
                except nats.errors.TimeoutError:
                    if last_try:
                        raise
        raise AssertionError("unreachable")

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        events: list[RunEvent] = []
        position = 0
        decoder = _Decoder(key)
        with translated_errors("the event log"):
            async with asyncio.timeout(_READ_TIMEOUT_S), aclosing(self._messages(key)) as messages:
                async for message in messages:
                    if message is None:
                        break
                    events.append(decoder.decode(message))
                    position = message.metadata.sequence.stream
        return events, position

    async def follow(self, key: RunKey, after_seq: int, *, live: bool) -> AsyncIterator[RunEvent]:
        decoder = _Decoder(key)
        async with aclosing(self._messages(key)) as messages:
            async for message in messages:
                if message is None:
                    if live:
                        continue
                    return
                event = decoder.decode(message)
                if event.seq > after_seq:
                    yield event
                if isinstance(event.payload, Done):
                    return

    async def erase(self, key: RunKey) -> None:
        with translated_errors("the event log"):
            await self._nats.js.publish(_subject(key), b"", timeout=_APPEND_TIMEOUT_S, headers={_SEAL: "1"})
            await self._nats.js.purge_stream(STREAM, subject=_subject(key), keep=1)

    async def payloads(self) -> AsyncGenerator[tuple[RunKey, Payload], None]:
        async with aclosing(follow(self._nats, STREAM, "runs.*.*")) as messages:
            async for message in messages:
                if message is None:
                    return
                _, tenant_id, run_id = message.subject.split(".")
                with suppress(*_NO_EVENT):
                    yield RunKey(tenant_id, run_id), event_from_bytes(message.data).payload

    def _messages(self, key: RunKey) -> AsyncGenerator[Msg | None, None]:
        return follow(self._nats, STREAM, _subject(key))


def _subject(key: RunKey) -> str:
    return f"runs.{key.tenant_id}.{key.run_id}"


class _Decoder:
    """Events of one run from its messages, in order. A message that is no event keeps its place in the count and is said to be
    damaged: the events around it are still shown."""

    def __init__(self, key: RunKey) -> None:
        self._key = key
        self._seq = 0
        self._is_counting = False
        """Once an event could be read: the first entries of a long run may have expired."""

    def decode(self, message: Msg) -> RunEvent:
        """Raises RunForgotten at the seal of an erased log."""
        if _SEAL in (message.headers or {}):
            raise forgotten(self._key.run_id)
        try:
            event = event_from_bytes(message.data)
            self._check(event)
            self._is_counting = True
        except _NO_EVENT as error:
            set_aside(STREAM, message.subject, error)
            placeholder = Thinking("log", _DAMAGED.message, _DAMAGED)
            event = RunEvent(self._key.run_id, self._seq + 1, message.metadata.timestamp, placeholder)
        self._seq = event.seq
        return event

    def _check(self, event: RunEvent) -> None:
        # Damaged bytes may still parse.
        if event.run_id != self._key.run_id or (self._is_counting and event.seq != self._seq + 1):
            raise ValueError("the event is another's, or out of order")
