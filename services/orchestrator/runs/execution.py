"""One run being worked on in this process: its clock and its end. Whatever happens, the run gets its `done` event, is parked, or is
left to another orchestrator with a log that can be continued."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

import structlog

from kit import deadline
from kit.errors import DeadlineExceeded, GroundworkError, Unavailable
from kit.observability.telemetry import current_trace_id
from services.orchestrator.errors import BudgetSpent, FencedOff, Parked, signal_in
from services.orchestrator.limits.reservations import Reservations
from services.orchestrator.log.events import RunError, RunStatus, Verification
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import DELIVERY
from services.orchestrator.metrics import CITATIONS, DEGRADED_RUNS, LOST_RUNS, RUN_SECONDS, RUNS, part_label
from services.orchestrator.models import RunLimits, RunRecord
from services.orchestrator.modes.serving import Modes
from services.orchestrator.ports import CollectionRules, EventLog, Markers, RunSources, RunStore
from services.orchestrator.runs.brought_models import BroughtModels
from services.orchestrator.runs.tally import Tally, cost_of
from services.orchestrator.steps.run import end, end_lost, status_of, tell_time_is_up

_log = structlog.get_logger()
_FINISHING_S = 10.0
"""For what follows a logged answer: usage, the thread, `done`; and for the answer of a run whose time is up."""
_DELIVERING_S = 45.0
"""The same where the answer is to be mailed: a mail server may take half a minute."""
_LOST_LOG_RETRY_S = 1.0
_UNFINISHED = (RunStatus.CANCELLED, RunStatus.TIMEOUT, RunStatus.FAILED)
_OUT_OF_TIME = RunError("DEADLINE_EXCEEDED", "RUN_TIMEOUT", "the run took longer than its budget", retryable=True)
_ACCESS_WITHDRAWN = RunError(
    "PERMISSION_DENIED",
    "ACCESS_WITHDRAWN",
    "a document that this answer is made from is not yours to read any more, or was deleted; ask the owner of its collection",
    retryable=False,
)
LOG_LOST = RunError(
    "DATA_LOSS",
    "RUN_LOG_LOST",
    "the event log of this run was lost after the run had begun. It is not done again, since nobody knows what it did; ask again",
    retryable=False,
)


@dataclass(frozen=True)
class RunServices:
    """What runs are kept, served and counted with."""

    store: RunStore
    markers: Markers
    log: EventLog
    sources: RunSources
    modes: Modes
    limits: RunLimits
    brought: BroughtModels
    tally: Tally
    reservations: Reservations
    collections: CollectionRules
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Ending(Enum):
    """How the work on a run ended in this process."""

    SETTLED = "settled"
    """Its record says how the run ended."""
    PARKED = "parked"
    LOST = "lost"
    """Another orchestrator has it, or its log was written by somebody else."""
    UNSETTLED = "unsettled"
    """Somebody has to go on with it."""
    BROKEN = "broken"
    """So too, but it would break again at once: it waits for a round of a sweeper."""


class Execution:
    """Works on a run until it ends, is parked or is lost. `cancel()` ends it as cancelled; cancelling its task hands it over."""

    def __init__(
        self,
        record: RunRecord,
        journal: Journal,
        services: RunServices,
        *,
        is_resumed: bool = False,
        is_log_lost: bool = False,
    ) -> None:
        self.record = record
        self.journal = journal
        self.task: asyncio.Task[None] | None = None
        self._services = services
        self._is_resumed = is_resumed
        self._is_log_lost = is_log_lost
        self._cancel_requested = False
        self._is_lost = False
        self._is_withdrawn = False
        self._working = False
        self._finishing = False
        self.waits_until: datetime | None = None
        """Of a run that is to be parked."""

    def cancel(self) -> None:
        """Ends the run as cancelled, from whatever it is doing; without effect once it is ending."""
        if not self._cancel_requested:
            self._cancel_requested = True
            self._interrupt()

    def withdraw(self) -> None:
        """Ends the run as failed: its caller may not read its documents any more. Without effect once it is ending."""
        self._is_withdrawn = True
        self._interrupt()

    def lose(self) -> None:
        """Stops the work: another orchestrator has the run. One whose log cannot be reached goes on for those who listen here."""
        if self.journal.durable:
            self._is_lost = True
            self._interrupt()

    def _interrupt(self) -> None:
        if self.task is not None and self._working:
            self._working = False
            self.task.cancel()

    async def run(self) -> Ending:
        run_id = self.record.key.run_id
        try:
            return await self._settled()
        except FencedOff:
            LOST_RUNS.inc()
            _log.info("run_lost_to_another_orchestrator", run_id=run_id)
            return Ending.LOST
        except Unavailable as error:
            _log.warning("run_not_settled", run_id=run_id, error=error.message)
        except Exception as error:
            _log.exception("run_not_settled", run_id=run_id, error=repr(error))
            return Ending.BROKEN
        return Ending.UNSETTLED

    async def _settled(self) -> Ending:
        if self._is_resumed and await self._is_cancelled():
            self._cancel_requested = True  # wished for before we were here to hear of it
        try:
            status = await self._work()
        except Parked as parked:
            if not await self._is_cancelled():
                _log.info("run_parked", run_id=self.record.key.run_id, until=parked.until.isoformat())
                self.waits_until = parked.until
                return Ending.PARKED
            status = await self._end(RunStatus.CANCELLED)
        if not self.journal.durable:
            await self._end_lost_log(status)
        await self._count_cost(status)
        await self._services.store.finish(
            self.record.finished(status, self._services.now(), self.journal.progress.outcome)
        )
        self._count(status)
        return Ending.SETTLED

    async def _is_cancelled(self) -> bool:
        return await self._services.store.is_cancelled(self.record.key)

    async def _count_cost(self, status: RunStatus) -> None:
        """Before the end is stored: after a crash in between the run is ended and counted again, as the same entry."""
        usage = self.journal.progress.usage
        if usage is not None:
            await self._services.tally.put(cost_of(self.record, usage))
        await self._services.reservations.settle(self.record, status, usage)

    async def _work(self) -> RunStatus:
        """Raises FencedOff when another orchestrator has the run, Parked when it waits, CancelledError when this process stops."""
        if self._is_lost:
            raise FencedOff("the run was taken over")
        if (foregone := self._foregone()) is not None:
            return await self._end(*foregone)
        remaining_s = self._remaining_s()
        deadline.set_remaining(remaining_s)
        self._working = True
        try:
            async with asyncio.timeout(remaining_s) as clock:
                return await self._worked()
        except asyncio.CancelledError:
            if self._is_lost:
                raise FencedOff("the run was taken over") from None
            if not (self._cancel_requested or self._is_withdrawn):
                await self.journal.note_spent()
                raise
            assert self.task is not None
            self.task.uncancel()
            if self._is_withdrawn:
                return await self._end(RunStatus.FAILED, _ACCESS_WITHDRAWN)
            return await self._end(RunStatus.CANCELLED)
        except Exception as error:
            if clock.expired() or _took_all_time(error):
                return await self._out_of_time()
            return await self._end(RunStatus.FAILED, _described(error))
        finally:
            self._working = False

    def _foregone(self) -> tuple[RunStatus, RunError | None] | None:
        """How the run ends without being worked on any more, and what is still to be said of it."""
        if self._is_log_lost:
            return RunStatus.FAILED, LOG_LOST
        if (error := self.journal.progress.error) is not None:  # the process that logged it got no further
            return RunStatus.TIMEOUT if error.reason == _OUT_OF_TIME.reason else RunStatus.FAILED, None
        return (RunStatus.CANCELLED, None) if self._cancel_requested else None

    async def _worked(self) -> RunStatus:
        try:
            return await self._services.modes.run(self.record, self.journal)
        except BaseExceptionGroup as group:
            # A mode's own group of tasks: a signal must not be lost in it.
            raise signal_in(group) or group from None

    async def _end(self, status: RunStatus, error: RunError | None = None) -> RunStatus:
        deadline.set_remaining(None)
        if status in _UNFINISHED and self.journal.progress.done is None:
            await self._services.modes.remember_unfinished(self.record, self.journal, status)
        return await end(self.journal, status, error)

    async def _out_of_time(self) -> RunStatus:
        """A run whose answer is logged is no timeout: it is finished, with a little time of its own. So is one that can answer with
        what it has found."""
        progress = self.journal.progress
        if self._finishing:
            if progress.answer is None:
                return await self._end(RunStatus.TIMEOUT, _OUT_OF_TIME)
            return await self._end(RunStatus.TIMEOUT if progress.is_time_up else status_of(progress.answer))
        if progress.answer is None:
            if not self._services.modes.named(self.record.request.mode).answers_late:
                return await self._end(RunStatus.TIMEOUT, _OUT_OF_TIME)
            await tell_time_is_up(self.journal)
            await self.journal.say_nothing_twice()
        self._finishing = True
        return await self._work()

    def _remaining_s(self) -> float:
        """Of the time that may be worked on the run, by all workers together."""
        if self.journal.progress.answer is not None or self.journal.progress.is_time_up:
            self._finishing = True
            return _DELIVERING_S if DELIVERY in self.journal.progress.results else _FINISHING_S
        logged = self.journal.progress.budgets
        budget_s = logged.wall_clock_s or self.record.request.budgets.wall_clock_s or self._services.limits.wall_clock_s
        return max(0.0, min(budget_s, self._services.limits.wall_clock_s) - self.journal.worked_s)

    async def _end_lost_log(self, status: RunStatus) -> None:
        """Ends the log as soon as it can be written again. Until then the run is ours: nobody is to do it a second time.
        Raises FencedOff when another orchestrator has continued it meanwhile."""
        while True:
            try:
                journal = await self.journal.reopened()
                if journal.progress.resumes > self.journal.progress.resumes:
                    raise FencedOff("the run was continued by another orchestrator while its log was away")
                await end_lost(journal, status)
            except Unavailable:
                await asyncio.sleep(_LOST_LOG_RETRY_S)
            else:
                return

    def _count(self, status: RunStatus) -> None:
        mode = self.record.request.mode.value
        parts = {part_label(part) for part in self.journal.degraded_parts}
        RUNS.labels(mode=mode, status=status.value, degraded="yes" if parts else "no").inc()
        for part in parts:
            DEGRADED_RUNS.labels(part).inc()
        RUN_SECONDS.labels(mode=mode).observe(max(0.0, (self._services.now() - self.record.created_at).total_seconds()))
        answer = self.journal.progress.answer
        if answer is not None and answer.verification is not None and answer.verification.support_status is not None:
            _count_citations(mode, answer.verification)


def _count_citations(mode: str, checked: Verification) -> None:
    """Citation precision and recall of an answer (ALCE: Gao et al., arXiv:2305.14627), and its coverage."""
    CITATIONS.labels(mode, "precision").observe(checked.citation_precision)
    CITATIONS.labels(mode, "recall").observe(checked.citation_recall)
    CITATIONS.labels(mode, "coverage").observe(checked.citation_coverage)


def _took_all_time(error: Exception) -> bool:
    if isinstance(error, BudgetSpent):
        return error.metadata["budget"] == "wall_clock"
    return isinstance(error, DeadlineExceeded) and deadline.is_spent()


def _described(error: Exception) -> RunError:
    if isinstance(error, GroundworkError):
        return RunError(error.code.name, error.reason, error.message, error.retryable)
    trace_id = current_trace_id()
    _log.error("run_failed", trace_id=trace_id, exc_info=error)
    message = f"something went wrong on our side; give this trace id to the operator: {trace_id}"
    return RunError("INTERNAL", "INTERNAL", message, retryable=False)
