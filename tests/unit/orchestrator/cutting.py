"""Runs that are cut off at every point at which a worker can die, and continued by another worker from what is in the log.

A worker can die before an append is stored (what it had done by then is not known to the log) or behind it (what it would have done
next is not done). Those are all the points that can be told apart: between two appends the log does not change.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from services.orchestrator.adapters.codec import event_from_bytes, event_to_proto
from services.orchestrator.log.events import Payload, RunEvent, RunParked, Thinking, Token, ToolResult, Usage
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import RESUMED
from services.orchestrator.models import RunKey
from tests.unit.orchestrator.fakes import MemoryLog

KEY = RunKey("local", "a" * 32)
AT = datetime(2026, 1, 1, tzinfo=UTC)

Worker = Callable[[Journal], Awaitable[object]]


class Died(BaseException):
    """The worker's process is no more."""


@dataclass(frozen=True)
class Cut:
    """Death at the append of event number `seq`."""

    seq: int
    stored: bool

    def __str__(self) -> str:
        return f"{'after' if self.stored else 'before'} {self.seq}"


class DyingLog(MemoryLog):
    """A log of bytes, as the real one is, whose writer dies at a cut. A dead writer writes nothing more."""

    def __init__(self) -> None:
        super().__init__()
        self.cut: Cut | None = None
        self.dead = False

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        if self.dead:
            raise Died
        is_due = self.cut is not None and self.cut.seq == event.seq
        self.dead = is_due
        if is_due and self.cut is not None and not self.cut.stored:
            raise Died
        stored = event_from_bytes(event_to_proto(event).SerializeToString())
        position = await super().append(key, stored, last_position)
        if is_due:
            raise Died
        return position

    def revive(self) -> None:
        """Another worker's connection."""
        self.dead, self.cut = False, None


def now() -> datetime:
    return AT


async def worked(log: DyingLog, worker: Worker, cut: Cut | None = None) -> list[RunEvent]:
    """The log after a worker has worked on the run to its end, or to its own."""
    log.cut = cut
    with suppress(Died):
        await worker(await Journal.open(KEY, log, now))
    log.revive()
    return log.events.get(KEY, [])


async def cut_and_continued(log: DyingLog, workers: Sequence[Worker], cut: Cut) -> list[RunEvent]:
    """The log after the first worker died at the cut and the second has done the rest."""
    first, second = workers
    await worked(log, first, cut)
    return await worked(log, second)


def cuts(events: Sequence[RunEvent]) -> Iterator[Cut]:
    """Every cut of a run with this log."""
    for event in events:
        yield Cut(event.seq, stored=False)
        yield Cut(event.seq, stored=True)


def shown_by(events: Sequence[RunEvent]) -> str:
    """The text that a client has on its screen in the end."""
    shown = ""
    for event in events:
        if isinstance(event.payload, Token):
            shown = shown[: event.payload.offset] + event.payload.text
    return shown


def told(events: Sequence[RunEvent]) -> list[tuple[str, Payload]]:
    """What a client is told, and in which step: without the notes of a take-over and of parking, without how the text came in
    pieces, and without how long it took."""
    return [
        (event.step, _timeless(event.payload))
        for event in events
        if not isinstance(event.payload, Token | RunParked)
        and not (isinstance(event.payload, Thinking) and event.payload.phase == RESUMED)
    ]


def _timeless(payload: Payload) -> Payload:
    if isinstance(payload, Usage):
        steps = tuple(replace(step, seconds=0.0) for step in payload.steps)
        return replace(payload, seconds=0.0, worked_seconds=0.0, step_seconds={}, steps=steps)
    if isinstance(payload, ToolResult):
        return replace(payload, duration_s=0.0)
    return payload
