"""The event log in JetStream: stream RUNS, one subject a run. The server itself fences a second writer off, by the sequence that
an append expects to be the subject's last."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

from google.protobuf.message import DecodeError
from nats.js import api
from nats.js.errors import APIError

from kit.jetstream import Nats
from kit.jetstream.erasing import erase_messages
from kit.jetstream.failures import WRONG_LAST_SEQUENCE
from kit.jetstream.opening import patient
from kit.jetstream.reading import all_messages, last_position
from kit.records import set_aside
from services.orchestrator.adapters.codec import event_from_bytes, event_to_proto
from services.orchestrator.adapters.jetstream.tail import LAG_S, LogEntry, RunTail, republished
from services.orchestrator.errors import FencedOff, RunExpired, forgotten, not_found
from services.orchestrator.log.events import Degradation, Done, Payload, RunEvent, Thinking
from services.orchestrator.models import RunKey
from services.orchestrator.state import RUNS

_NO_EVENT = (DecodeError, ValueError, OverflowError)
_DAY_S = 86_400.0
_SEAL = "Groundwork-Erased"
"""Header of the one message that stays of an erased log. Its place in the stream fences off a process that still writes the run.
Its value says what was deleted: the run, or something that it quotes."""
_DELETED, _QUOTED = "deleted", "1"
_DAMAGED = Degradation("log", "EVENT_DAMAGED", "this step's entry in the run's log is damaged and cannot be shown")


class JetStreamEventLog:
    """EventLog over one NATS connection."""

    def __init__(self, nats_: Nats) -> None:
        self._nats = nats_
        self._tail = RunTail(nats_, RUNS.stream)

    @classmethod
    @patient
    async def open(cls, nats_: Nats, *, retention_days: float) -> "JetStreamEventLog":
        await nats_.ensure_stream(
            api.StreamConfig(
                name=RUNS.stream,
                subjects=[RUNS.subjects],
                storage=api.StorageType.FILE,
                max_age=retention_days * _DAY_S,
                allow_direct=True,
                republish=republished(RUNS),
            )
        )
        return cls(nats_)

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        # A lost ack is repaired by sending again under the same id: the server answers with the first one's position. The id is
        # this call's alone: a log that was lost is begun again with the same numbers.
        headers = {api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last_position)}
        data = event_to_proto(event).SerializeToString()
        try:
            position = await self._nats.store(RUNS.stream, _subject(key), data, headers)
        except APIError as error:
            if error.err_code not in WRONG_LAST_SEQUENCE:
                raise
            raise FencedOff(f"run {key.run_id} is written by another orchestrator") from error
        self._tail.appended(_subject(key), event, position, last_position)
        return position

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        events: list[RunEvent] = []
        position = 0
        decoder = _Decoder(key)
        async with aclosing(self._after(key, 0)) as entries:
            async for entry in entries:
                events.append(decoder.decode(entry))
                position = entry.message.position
        return events, position

    async def position(self, key: RunKey) -> int:
        return await last_position(self._nats, RUNS.stream, _subject(key))

    async def work(self) -> None:
        """Reads what those who follow have missed. Runs until cancelled."""
        await self._tail.run()

    def hold(self, key: RunKey) -> None:
        self._tail.hold(_subject(key))

    def let_go(self, key: RunKey) -> None:
        self._tail.let_go(_subject(key))

    async def follow(self, key: RunKey, after_seq: int, *, live: bool) -> AsyncGenerator[RunEvent, None]:
        async with aclosing(self._live(key) if live else self._kept(key)) as entries:
            decoder = _Decoder(key)
            async for entry in entries:
                event = decoder.decode(entry)
                if event.seq > after_seq:
                    yield event
                if isinstance(event.payload, Done):
                    return

    async def _kept(self, key: RunKey) -> AsyncGenerator[LogEntry, None]:
        """What is in the log. Raises RunExpired when there is nothing."""
        is_empty = True
        async with aclosing(self._after(key, 0)) as entries:
            async for entry in entries:
                is_empty = False
                yield entry
        if is_empty:
            raise RunExpired(
                f"the events of run {key.run_id} are not kept any more; what it answered may still be in its record",
                run_id=key.run_id,
            )

    async def _live(self, key: RunKey) -> AsyncGenerator[LogEntry, None]:
        """What is in the log, and what comes. The watch begins first, so that nothing falls between the two."""
        position = 0
        async with self._tail.watch(_subject(key)) as watch:
            while True:
                async for entry in self._up_to(watch.after, key, position):
                    position = entry.message.position
                    yield entry
                while (next_ := await watch.next()) is not None:
                    if next_.message.position > position:
                        position = next_.message.position
                        yield next_

    async def _up_to(self, last: int, key: RunKey, position: int) -> AsyncGenerator[LogEntry, None]:
        """What is in the log behind `position`, at least up to the entry at `last`: a replica that lags is asked again, unless the
        entry is there no more."""
        while True:
            async for entry in self._after(key, position):
                position = entry.message.position
                yield entry
            if position >= last or await self.position(key) <= position:
                return
            await asyncio.sleep(LAG_S)

    async def _after(self, key: RunKey, position: int) -> AsyncGenerator[LogEntry, None]:
        """What is in the log behind a position, all that its leader has."""
        async with aclosing(all_messages(self._nats, RUNS.stream, _subject(key), after=position)) as messages:
            async for message in messages:
                yield LogEntry(message)

    async def erase(self, key: RunKey, *, deleted: bool) -> None:
        seal = {_SEAL: _DELETED if deleted else _QUOTED}
        position = await self._nats.store(RUNS.stream, _subject(key), headers=seal)
        await erase_messages(self._nats, RUNS.stream, _subject(key), before=position, newest_first=True)
        await self._nats.purge(RUNS.stream, _subject(key), keep=1)
        self._tail.look_at(_subject(key))

    async def payloads(self) -> AsyncGenerator[tuple[RunKey, Payload], None]:
        async with aclosing(all_messages(self._nats, RUNS.stream, RUNS.subjects)) as messages:
            async for message in messages:
                _, tenant_id, run_id = message.subject.split(".")
                with suppress(*_NO_EVENT):
                    yield RunKey(tenant_id, run_id), event_from_bytes(message.data).payload


def _subject(key: RunKey) -> str:
    return f"runs.{key.name}"


class _Decoder:
    """Events of one run from its messages, in order. A message that is no event keeps its place in the count and is said to be
    damaged: the events around it are still shown."""

    def __init__(self, key: RunKey) -> None:
        self._key = key
        self._seq = 0
        self._is_counting = False
        """Once an event could be read: the first entries of a long run may have expired."""

    def decode(self, entry: LogEntry) -> RunEvent:
        """Raises RunForgotten or RunNotFound at the seal of an erased log."""
        message = entry.message
        if _SEAL in message.headers:
            raise not_found(self._key.run_id) if message.headers[_SEAL] == _DELETED else forgotten(self._key.run_id)
        try:
            event = entry.event
            self._check(event)
            self._is_counting = True
        except _NO_EVENT as error:
            set_aside(RUNS.stream, message.subject, error)
            placeholder = Thinking("log", _DAMAGED.message, _DAMAGED)
            event = RunEvent(self._key.run_id, self._seq + 1, message.at, placeholder)
        self._seq = event.seq
        return event

    def _check(self, event: RunEvent) -> None:
        # Damaged bytes may still parse.
        # A log that was lost begins anew.
        is_next = event.seq in (1, self._seq + 1) or not self._is_counting
        if event.run_id != self._key.run_id or not is_next:
            raise ValueError("the event is another's, or out of order")
