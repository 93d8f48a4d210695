"""The pen of a run: the one place where a run's events are numbered and written. An event is shown to a client only once the
log has it, so that the process that takes the run over never unsays what was seen (ADR 1). With each event goes what the next
worker needs: which step it belongs to, what that step has taken, and how long was worked on the run."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import structlog

from kit.errors import GroundworkError, Unavailable
from kit.observability.telemetry import span
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import (
    Asked,
    Degradation,
    Done,
    Payload,
    RunEvent,
    RunParked,
    StepState,
    StepUsage,
    Thinking,
    Token,
)
from services.orchestrator.log.meter import Meter
from services.orchestrator.log.state import Progress
from services.orchestrator.metrics import STEP_SECONDS
from services.orchestrator.models import RunKey
from services.orchestrator.ports import RunLog

_log = structlog.get_logger()
_NOT_DURABLE = Degradation(
    "durability",
    "LOG_UNAVAILABLE",
    "the event log cannot be reached: this answer goes on live, but will not survive a lost connection",
)
APPROVAL, INPUT = "approval", "input"
"""What a parked run waits for."""
_HANDED_OVER = Thinking("handover", "This worker stops; another continues this answer.")
_current_step: ContextVar[Meter | None] = ContextVar("current_step", default=None)


def current_step() -> Meter | None:
    """The step that the code in hand works on."""
    return _current_step.get()


class Journal:
    """Writes one run. After the log has become unreachable it goes on live, says so, and never tries the log again: the log
    then has a clean prefix."""

    def __init__(
        self,
        key: RunKey,
        log: RunLog,
        progress: Progress,
        position: int,
        now: Callable[[], datetime],
        *,
        earlier: Sequence[RunEvent] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = key
        self.progress = progress
        self.durable = True
        self.now = now
        self.meters: dict[str, Meter] = {}
        self._log = log
        self.position = position
        """Of the last entry in the log, as far as we know."""
        self.takes_in_decisions = False
        """Whether a decision that somebody has appended meanwhile is taken in. Any other entry of another writer says that the run
        is theirs."""
        self._clock = clock
        self._worked_before_s = progress.worked_s
        self._opened_at = clock()
        self._said_earlier = _said(earlier)
        self.degraded_parts = {part for event in earlier if (part := _degraded_part(event))}
        """What the run had to do without so far, in any process."""
        self._writing = asyncio.Lock()
        self._live: list[asyncio.Queue[RunEvent | None]] = []
        self._closed = False

    @classmethod
    async def open(
        cls,
        key: RunKey,
        log: RunLog,
        now: Callable[[], datetime],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> "Journal":
        """The journal of a run, continued from what is already in the log."""
        events, position = await log.read(key)
        return cls(key, log, Progress.of(events), position, now, earlier=events, clock=clock)

    async def reopened(self) -> "Journal":
        """The journal as the log has it now. Raises Unavailable."""
        return await Journal.open(self.key, self._log, self.now, clock=self._clock)

    @property
    def worked_s(self) -> float:
        """Time worked on the run so far, by all workers together."""
        return self._worked_before_s + self._clock() - self._opened_at

    def spent(self) -> dict[str, StepUsage]:
        """What each step has taken so far, whether the log knows it or not."""
        live = {step: usage for step, meter in self.meters.items() if (usage := meter.usage()) is not None}
        return {step: usage for step, usage in self.progress.spent.items() if step not in self.meters} | live

    @contextmanager
    def step(self, name: str, *, counted: bool = True) -> Iterator[Meter]:
        """What is written and spent in this block belongs to the step. One that consists of other steps is not counted itself."""
        begun = self.meters.get(name)
        earlier = begun.usage() if begun else self.progress.spent.get(name)
        meter = self.meters[name] = Meter(name, earlier, self._clock, counted=counted)
        token = _current_step.set(meter)
        kind = _kind_of(name)
        began = self._clock()
        try:
            with span(f"step {kind}", {"groundwork.step": name}):
                yield meter
        finally:
            meter.stop()
            _current_step.reset(token)
            STEP_SECONDS.labels(kind).observe(self._clock() - began)

    async def write(self, payload: Payload) -> None:
        """Appends one event, unless an earlier worker got as far as saying the same in this step. Raises FencedOff when another
        orchestrator writes this run now.

        Is never torn off in the middle: a cancelled run must know where its log ends, to write its end.
        """
        meter = _current_step.get()
        said = self._said_earlier[meter.step if meter else ""]
        if payload in said:
            said.remove(payload)
            return
        await self.record(meter.step if meter else "", payload, StepState())

    async def park(self, until: datetime) -> None:
        """Appends that the run waits, unless somebody has decided meanwhile. Raises FencedOff, and Unavailable when the log cannot
        be written."""
        await _to_its_end(self._park(until))

    async def _park(self, until: datetime) -> None:
        async with self._writing:
            if self.progress.has_unread_decision:
                return
            asked = tuple(each.approval_id for each in self.progress.pending)
            waits_for = INPUT if not asked and self.progress.pending_input else APPROVAL
            event = self._next("", RunParked(waits_for, asked, until), StepState())
            try:
                self.position = await self._log.append(self.key, event, self.position)
            except FencedOff:
                if not await self._take_in_decisions():
                    raise
            else:
                self._publish(event)

    async def note_spent(self) -> None:
        """Has the log know what models have cost since its last event, for the process that continues the run."""
        for step, meter in self.meters.items():
            usage, known = meter.usage(), self.progress.spent.get(step, StepUsage(step))
            if usage is not None and usage.tokens > known.tokens:
                await self.record(step, _HANDED_OVER, StepState())

    async def say_nothing_twice(self) -> None:
        """Whatever was said so far is not said again by a mode that is run once more in this process. Raises Unavailable."""
        if self.durable:
            events, _ = await self._log.read(self.key)
            self._said_earlier = _said(events)

    async def record(self, step: str, payload: Payload, state: StepState) -> None:
        """Appends one event of a step: `state` says what it is to the step; time and cost are added here."""
        await _to_its_end(self._write(step, payload, state))

    async def _write(self, step: str, payload: Payload, state: StepState) -> None:
        async with self._writing:  # steps may be done at the same time
            event = self._next(step, payload, state)
            if self.durable:
                try:
                    event = await self._appended(step, payload, state)
                except Unavailable as error:
                    self._go_on_live(error)
                    event = self._next(step, payload, state)
            self._publish(event)

    async def _appended(self, step: str, payload: Payload, state: StepState) -> RunEvent:
        """Raises FencedOff, Unavailable."""
        while True:
            event = self._next(step, payload, state)
            try:
                self.position = await self._log.append(self.key, event, self.position)
            except FencedOff:
                if not self.takes_in_decisions or not await self._take_in_decisions():
                    raise
            else:
                return event

    async def _take_in_decisions(self) -> bool:
        """Whether decisions, and nothing else, have come behind our last entry; they are taken in."""
        try:
            events, position = await self._log.read(self.key)
        except GroundworkError:
            return False
        new = [event for event in events if event.seq > self.progress.seq]
        if not new or not all(isinstance(event.payload, Asked) and event.payload.is_decided for event in new):
            return False
        for event in new:
            self._publish(event)
        self.position = position
        return True

    async def go_on_live(self, error: Unavailable) -> None:
        """Ends writing: nothing goes into the log any more, and live followers learn it."""
        async with self._writing:
            self._go_on_live(error)

    def _go_on_live(self, error: Unavailable) -> None:
        if self.durable:
            self.durable = False
            _log.warning("run_not_durable", run_id=self.key.run_id, error=error.message)
            self._publish(self._next("", Thinking("durability", _NOT_DURABLE.message, _NOT_DURABLE), StepState()))

    def _next(self, step: str, payload: Payload, state: StepState) -> RunEvent:
        meter = self.meters.get(step)
        noted = StepState(
            state.phase,
            state.result,
            self.worked_s,
            meter.usage() if meter else None,
            state.effect,
            state.arguments_hash,
        )
        return RunEvent(self.key.run_id, self.progress.seq + 1, self.now(), payload, step, noted)

    def _publish(self, event: RunEvent) -> None:
        self.progress.apply(event)
        if part := _degraded_part(event):
            self.degraded_parts.add(part)
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


def _degraded_part(event: RunEvent) -> str:
    """The part that the event says was missing; empty when it says no such thing."""
    payload = event.payload
    return payload.degraded.part if isinstance(payload, Thinking) and payload.degraded is not None else ""


def _kind_of(step: str) -> str:
    """ "search" of "round2/search1"."""
    return step.rsplit("/", 1)[-1].rstrip("0123456789")


def _said(events: Sequence[RunEvent]) -> defaultdict[str, list[Payload]]:
    """What was said in each step. Pieces of the answer are not in here: the screen knows what they add up to."""
    said: defaultdict[str, list[Payload]] = defaultdict(list)
    for event in events:
        only_said = event.state is not None and event.state.phase is None
        if only_said and not isinstance(event.payload, Token | Done):
            said[event.step].append(event.payload)
    return said


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
