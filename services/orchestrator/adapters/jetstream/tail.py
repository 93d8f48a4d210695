"""What is appended to runs that somebody in this process follows. A process receives the entries of those runs and no others, each
once however many follow, and of runs that it works on itself nothing: what it has appended it hands over once that is acknowledged.

The server sends every entry that is stored on to `logged.<tenant>.<run>`, with its place in the log (ADR 13). Nobody keeps such a
message for who did not hear it, so it is only news: an entry that does not follow the last one known has the missing ones read from
the log, and so has a run without news for a while, and a run whose entries may have been lost with a connection.

Nobody waits for a follower that does not read: what it has not taken is dropped beyond a bound, and it reads the log from where it
stopped instead.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from heapq import nsmallest

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import api

from kit.errors import Unavailable
from kit.jetstream import Nats
from kit.jetstream.failures import translated_errors
from kit.jetstream.reading import StoredMessage, last_position, stored_messages
from kit.state import Stream
from services.orchestrator.adapters.codec import event_from_bytes
from services.orchestrator.log.events import RunEvent
from services.orchestrator.state import RUNS

_log = structlog.get_logger()
_MAX_WAITING = 256
"""Entries that a follower may be behind before it has to read the log."""
_LOOK_INTERVAL_S = 1.0
_SILENT_S = 5.0
"""After so long without news the log is asked whether there are any. News are lost only with a connection, or by a server."""
_SILENT_PER_LOOK = 50
"""Silent runs that are asked about at a time. One costs 0.3 ms; thousands may be followed that wait for a person."""
_REPAIRED_AT_ONCE = 16
_TRIES = 3
LAG_S = 0.05
"""Until a replica that lags is asked again."""


def republished(stream: Stream) -> api.RePublish:
    """The part of the log's configuration that has the server send stored entries on."""
    return api.RePublish(src=stream.subjects, dest=f"{stream.republished}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}")


class LogEntry:
    """One message of the log, decoded once for all who follow its run; not at all where the event is at hand."""

    def __init__(self, message: StoredMessage, event: RunEvent | None = None) -> None:
        self.message = message
        self._event = event

    @property
    def event(self) -> RunEvent:
        """Raises what `event_from_bytes` raises."""
        if self._event is None:
            self._event = event_from_bytes(self.message.data)
        return self._event


class Watch:
    """New entries of one run for one follower, without a gap."""

    def __init__(self, after: int) -> None:
        self.after = after
        """The position behind which entries come: what is stored up to it has to be read from the log."""
        self._entries: deque[LogEntry] = deque()
        self._is_behind = False
        self._news = asyncio.Event()

    def put(self, entry: LogEntry) -> None:
        if len(self._entries) == _MAX_WAITING:
            self._entries.clear()
            self._is_behind = True
        if self._is_behind:
            self.after = entry.message.position
        else:
            self._entries.append(entry)
        self._news.set()

    async def next(self) -> LogEntry | None:
        """The next entry; None when some were dropped, so that the log has to be read up to `after`."""
        while not self._entries and not self._is_behind:
            self._news.clear()
            await self._news.wait()
        if self._is_behind:
            self._is_behind = False
            return None
        return self._entries.popleft()


class _Followed:
    """A run that is followed here."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.followers = 0
        """Those that are about to watch included."""
        self.watches: set[Watch] = set()
        self.position: int | None = None
        """Of the last entry that was handed on or was there before; None until the log was asked."""
        self.opening = asyncio.Lock()
        self.subscription: Subscription | None = None
        self.heard_at = time.monotonic()

    def put(self, entry: LogEntry, previous: int) -> bool:
        """Hands an entry on. False when others are missing before it."""
        if self.position is None:
            return False
        if entry.message.position > self.position:
            if previous != self.position:
                return False
            self.put_next(entry)
        return True

    def put_next(self, entry: LogEntry) -> None:
        self.position = entry.message.position
        self.heard_at = time.monotonic()
        for watch in self.watches:
            watch.put(entry)


class RunTail:
    """Hands new entries of runs to those who watch them."""

    def __init__(self, nats_: Nats, stream: str) -> None:
        self._nats = nats_
        self._stream = stream
        self._runs: dict[str, _Followed] = {}
        self._held: set[str] = set()
        """Subjects that only this process appends to, as far as it knows."""
        self._doubtful: set[str] = set()
        """Runs whose entries may have been missed."""
        self._doubt = asyncio.Event()

    async def run(self) -> None:
        """Reads from the log what news were lost. Runs until cancelled."""
        reconnections = self._nats.reconnections
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_INTERVAL_S):
                    await self._doubt.wait()
            self._doubt.clear()
            if reconnections != self._nats.reconnections:
                reconnections = self._nats.reconnections
                self._doubtful |= self._runs.keys()
            self._doubtful.update(run.subject for run in self._silent())
            await self._repair_all()

    @asynccontextmanager
    async def watch(self, subject: str) -> AsyncIterator[Watch]:
        """Every entry of the run that is stored from now on. Raises Unavailable when the log cannot be asked how far it goes."""
        run = self._runs.setdefault(subject, _Followed(subject))
        run.followers += 1
        watch: Watch | None = None
        try:
            position = await self._opened(run)
            watch = Watch(position)
            run.watches.add(watch)
            yield watch
        finally:
            if watch is not None:
                run.watches.discard(watch)
            run.followers -= 1
            if not run.followers:
                await self._leave(run)

    def hold(self, subject: str) -> None:
        """From now on this process appends to the run, and tells by `appended`: its followers need no other news."""
        self._held.add(subject)

    def let_go(self, subject: str) -> None:
        """From now on others append to the run."""
        self._held.discard(subject)
        self.look_at(subject)

    def look_at(self, subject: str) -> None:
        """Has the log read for what may have been missed of the run."""
        if subject in self._runs:
            self._doubtful.add(subject)
            self._doubt.set()

    def appended(self, subject: str, event: RunEvent, position: int, previous: int) -> None:
        """This process has appended an entry, which is stored behind the one at `previous`."""
        if (run := self._runs.get(subject)) is not None:
            message = StoredMessage(subject, position, event.at, b"")
            self._heard(run, LogEntry(message, event), previous)

    async def _opened(self, run: _Followed) -> int:
        """Has news of the run come, and returns the position behind which they will."""
        async with run.opening:
            await self._subscribe(run)
            if run.position is None:
                run.position = await last_position(self._nats, self._stream, run.subject)
                if run.subject in self._doubtful:
                    self._doubt.set()
            return run.position

    async def _subscribe(self, run: _Followed) -> None:
        """Has the server send news of the run, unless this process makes them, or nobody follows the run any more."""

        async def heard(message: Msg) -> None:
            entry = LogEntry(StoredMessage.described(message))
            self._heard(run, entry, int((message.headers or {})["Nats-Last-Sequence"]))

        if run.followers and run.subscription is None and run.subject not in self._held:
            with translated_errors(f"stream {self._stream}"):
                run.subscription = await self._nats.nc.subscribe(_news_of(run.subject), cb=heard)
            if not run.followers:  # the last one left meanwhile, and found no subscription to end
                await self._leave(run)

    async def _leave(self, run: _Followed) -> None:
        if self._runs.get(run.subject) is run:
            del self._runs[run.subject]
        subscription, run.subscription = run.subscription, None
        if subscription is not None:
            with suppress(nats.errors.Error):
                await subscription.unsubscribe()

    def _heard(self, run: _Followed, entry: LogEntry, previous: int) -> None:
        if not run.put(entry, previous):
            self.look_at(run.subject)

    def _silent(self) -> Iterable[_Followed]:
        """The runs that were silent for the longest, and for too long."""
        since = time.monotonic() - _SILENT_S
        silent = (run for run in self._runs.values() if run.heard_at < since)
        return nsmallest(_SILENT_PER_LOOK, silent, key=lambda run: run.heard_at)

    async def _repair_all(self) -> None:
        """Once one of them cannot be read, the others are left for the next look."""
        doubtful, self._doubtful = self._doubtful, set()
        slots = asyncio.Semaphore(_REPAIRED_AT_ONCE)
        failures: list[Unavailable] = []

        async def one(run: _Followed) -> None:
            async with slots:
                if failures:
                    self._doubtful.add(run.subject)
                    return
                try:
                    await self._repair(run)
                except Unavailable as error:
                    failures.append(error)
                    self._doubtful.add(run.subject)

        async with asyncio.TaskGroup() as group:
            for run in [self._runs[subject] for subject in doubtful if subject in self._runs]:
                group.create_task(one(run))
        if failures:
            _log.warning("runs_cannot_be_followed", runs=len(self._doubtful), error=failures[0].message)

    async def _repair(self, run: _Followed) -> None:
        """Hands on what the log has behind the run's position. What a replica that lags does not have is for the next look."""
        async with run.opening:
            await self._subscribe(run)
        for _ in range(_TRIES):
            if not run.followers or await self._is_complete(run):
                return
            messages = stored_messages(self._nats, self._stream, run.subject, after=run.position or 0)
            async with aclosing(messages) as missed:
                async for message in missed:
                    if message.position > (run.position or 0):
                        run.put_next(LogEntry(message))
            if not await self._is_complete(run):
                await asyncio.sleep(LAG_S)
        self._doubtful.add(run.subject)

    async def _is_complete(self, run: _Followed) -> bool:
        """Whether all that the log has was handed on."""
        run.heard_at = time.monotonic()
        return run.position is not None and run.position >= await last_position(self._nats, self._stream, run.subject)


def _news_of(subject: str) -> str:
    return f"{RUNS.republished}.{subject.removeprefix(RUNS.prefix)}"
