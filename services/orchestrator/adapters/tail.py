"""The end of the log of runs, read once for everybody in this process who follows a run: one consumer, however many runs are
followed and however many follow them. It is there while somebody follows.

Nobody waits for a follower that does not read: what it has not taken is dropped beyond a bound, and it reads the log from where it
stopped instead.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import cached_property

import structlog

from kit.errors import Unavailable
from kit.jetstream import Nats
from kit.jetstream.connection import translated_errors
from kit.jetstream.following import follow
from kit.jetstream.reading import StoredMessage
from services.orchestrator.adapters.codec import event_from_bytes
from services.orchestrator.log.events import RunEvent

_log = structlog.get_logger()
_MAX_WAITING = 256
"""Entries that a follower may be behind before it has to read the log."""
_START_TIMEOUT_S = 5.0
_IDLE_S = 5.0
"""How long the consumer is kept for the next follower: making one costs some milliseconds."""
_RETRY_AFTER_S = 1.0


class LogEntry:
    """One message of the log, decoded once for all who follow its run."""

    def __init__(self, message: StoredMessage) -> None:
        self.message = message

    @cached_property
    def event(self) -> RunEvent:
        """Raises what `event_from_bytes` raises."""
        return event_from_bytes(self.message.data)


class Watch:
    """New entries of one run for one follower."""

    def __init__(self) -> None:
        self._entries: deque[LogEntry] = deque()
        self._is_behind = False
        self._news = asyncio.Event()

    def put(self, entry: LogEntry) -> None:
        if len(self._entries) == _MAX_WAITING:
            self._entries.clear()
            self._is_behind = True
        if not self._is_behind:
            self._entries.append(entry)
        self._news.set()

    async def next(self) -> LogEntry | None:
        """The next entry; None when some were dropped, so that the log has to be read."""
        while not self._entries and not self._is_behind:
            self._news.clear()
            await self._news.wait()
        if self._is_behind:
            self._is_behind = False
            return None
        return self._entries.popleft()


class RunTail:
    """Hands new messages of a stream to those who watch their subject."""

    def __init__(self, nats_: Nats, stream: str, pattern: str) -> None:
        self._nats = nats_
        self._stream = stream
        self._pattern = pattern
        self._watches: dict[str, set[Watch]] = {}
        self._wanted = asyncio.Event()
        self._is_reading = asyncio.Event()

    async def run(self) -> None:
        """Reads while somebody watches. Runs until cancelled."""
        while True:
            await self._wanted.wait()
            reader = asyncio.create_task(self._read())
            try:
                await self._until_idle(reader)
            finally:
                self._is_reading.clear()
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)

    @asynccontextmanager
    async def watch(self, subject: str) -> AsyncIterator[Watch]:
        """Every message on `subject` that is stored from now on. Raises Unavailable when the stream cannot be read."""
        watch = Watch()
        self._watches.setdefault(subject, set()).add(watch)
        self._wanted.set()
        try:
            try:
                async with asyncio.timeout(_START_TIMEOUT_S):
                    await self._is_reading.wait()
            except TimeoutError as error:
                raise Unavailable(
                    "new events cannot be read now; try again in a few seconds", reason="NATS_UNAVAILABLE"
                ) from error
            yield watch
        finally:
            self._watches[subject].discard(watch)
            if not self._watches[subject]:
                del self._watches[subject]
            if not self._watches:
                self._wanted.clear()

    async def _until_idle(self, reader: "asyncio.Task[None]") -> None:
        """Returns when nobody has watched for a while, or when the reader has failed and was waited out."""
        while self._wanted.is_set():
            await asyncio.wait([reader], timeout=_IDLE_S)
            if reader.done():
                await asyncio.sleep(_RETRY_AFTER_S)
                return

    async def _read(self) -> None:
        try:
            with translated_errors(f"stream {self._stream}"):
                last = (await self._nats.js.stream_info(self._stream)).state.last_seq
            async with aclosing(follow(self._nats, self._stream, self._pattern, after=last)) as messages:
                async for message in messages:
                    self._is_reading.set()
                    watches = self._watches.get(message.subject) if message is not None else None
                    if message is not None and watches:
                        entry = LogEntry(StoredMessage.delivered(message))
                        for watch in watches:
                            watch.put(entry)
        except Unavailable as error:
            _log.warning("runs_cannot_be_followed", error=error.message)
