"""The pen of a run: the one place where a run's events are numbered and written. An event is shown to a client only once the
log has it, so that what was seen is never unsaid by whoever takes the run over (ADR 0001)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime
from typing import Any

import structlog

from kit.errors import Unavailable
from services.orchestrator.log.events import Degradation, Done, Payload, RunEvent, Thinking
from services.orchestrator.models import Progress, RunKey
from services.orchestrator.ports import RunLog

_log = structlog.get_logger()
_NOT_DURABLE = Degradation(
    "durability",
    "LOG_UNAVAILABLE",
    "the event log cannot be reached: this answer goes on live, but will not survive a lost connection",
)


class Journal:
    """Writes one run. After the log has become unreachable it goes on live, says so, and never tries the log again: the log
    then has a clean prefix that another orchestrator can continue."""

    def __init__(
        self, key: RunKey, log: RunLog, progress: Progress, position: int, now: Callable[[], datetime]
    ) -> None:
        self.key = key
        self.progress = progress
        self.durable = True
        self._log = log
        self.position = position
        """Of the last entry in the log, as far as we know."""
        self.now = now
        self._live: list[asyncio.Queue[RunEvent | None]] = []
        self._closed = False

    @classmethod
    async def open(cls, key: RunKey, log: RunLog, now: Callable[[], datetime]) -> "Journal":
        """The journal of a run, continued from what is already in the log."""
        events, position = await log.read(key)
        progress = Progress()
        for event in events:
            progress.apply(event.seq, event.payload)
        return cls(key, log, progress, position, now)

    async def write(self, payload: Payload) -> None:
        """Appends one event. Raises FencedOff when another orchestrator writes this run now.

        Is never torn off in the middle: a cancelled run must know where its log ends, to write its end.
        """
        await _to_its_end(self._write(payload))

    async def _write(self, payload: Payload) -> None:
        event = self._next(payload)
        if self.durable:
            try:
                self.position = await self._log.append(self.key, event, self.position)
            except Unavailable as error:
                self.go_on_live(error)
                event = self._next(payload)
        self._publish(event)

    def go_on_live(self, error: Unavailable) -> None:
        """From now on nothing is written to the log any more; who follows live is told."""
        if self.durable:
            self.durable = False
            _log.warning("run_not_durable", run_id=self.key.run_id, error=error.message)
            self._publish(self._next(Thinking("durability", _NOT_DURABLE.message, _NOT_DURABLE)))

    def _next(self, payload: Payload) -> RunEvent:
        return RunEvent(self.key.run_id, self.progress.seq + 1, self.now(), payload)

    def _publish(self, event: RunEvent) -> None:
        self.progress.apply(event.seq, event.payload)
        for queue in self._live:
            queue.put_nowait(event)
        if isinstance(event.payload, Done):
            self.close()

    def close(self) -> None:
        """Ends all live followers: after `done`, or when the run goes on elsewhere."""
        self._closed = True
        for queue in self._live:
            queue.put_nowait(None)

    def follow(self) -> AsyncIterator[RunEvent]:
        """Events written from now on, as they are written, until the journal is closed. Bounded by the run's length."""
        queue: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._live.append(queue)
        if self._closed:
            queue.put_nowait(None)

        async def events() -> AsyncIterator[RunEvent]:
            try:
                while (event := await queue.get()) is not None:
                    yield event
            finally:
                self._live.remove(queue)

        return events()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Awaits `work` to its end, however often the caller is cancelled meanwhile; then raises what it raised, or the
    cancellation."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
