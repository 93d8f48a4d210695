"""One run being worked on in this process: its clock and its end. Whatever happens, the run gets its `done` event, is parked, or is
left to another orchestrator with a log that can be continued."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Protocol

import structlog

from kit import deadline
from kit.errors import DeadlineExceeded, GroundworkError, Unavailable
from kit.telemetry import current_trace_id
from services.orchestrator.errors import FencedOff, Parked
from services.orchestrator.log.events import Done, RunError, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.metrics import RUN_SECONDS, RUNS
from services.orchestrator.models import RunLimits, RunRecord
from services.orchestrator.ports import RunStore

_log = structlog.get_logger()
_OUT_OF_TIME = RunError("DEADLINE_EXCEEDED", "RUN_TIMEOUT", "the run took longer than its budget", retryable=True)


LOG_LOST = RunError(
    "DATA_LOSS",
    "RUN_LOG_LOST",
    "the event log of this run was lost after the run had begun. It is not done again, since what it did cannot be told; ask again",
    retryable=False,
)
_FINISH_S = 10.0
"""What a run whose answer is logged gets at least, to write down what is left."""


class Worker(Protocol):
    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        """Takes a run to its end; see modes. Raises Parked when the run waits for somebody."""
        ...


class Ending(Enum):
    """How the work on a run ended in this process."""

    SETTLED = "settled"
    """Its record says how the run ended."""
    PARKED = "parked"
    LOST = "lost"
    """Another orchestrator has it, or its log was written by somebody else."""
    UNSETTLED = "unsettled"
    """Somebody has to go on with it."""


class _OutOfTime(Exception):
    """The run's time is over."""


class Execution:
    """Works on a run until it ends, is parked or is lost. `cancel()` ends it as cancelled; cancelling its task hands it over."""

    def __init__(
        self,
        record: RunRecord,
        journal: Journal,
        store: RunStore,
        worker: Worker,
        limits: RunLimits,
        now: Callable[[], datetime],
        *,
        is_resumed: bool = False,
        is_log_lost: bool = False,
    ) -> None:
        self.record = record
        self.journal = journal
        self.task: asyncio.Task[None] | None = None
        self._store = store
        self._worker = worker
        self._limits = limits
        self._now = now
        self._is_resumed = is_resumed
        self._is_log_lost = is_log_lost
        self._cancel_requested = False
        self._is_lost = False
        self._working = False

    def cancel(self) -> None:
        """Ends the run as cancelled, from whatever it is doing; without effect once it is ending."""
        if not self._cancel_requested:
            self._cancel_requested = True
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
            if self._is_resumed and await self._store.is_cancelled(self.record.key):
                self._cancel_requested = True  # wished for before we were here to hear of it
            status = await self._work()
            if not self.journal.durable:
                return Ending.UNSETTLED
            await self._store.finish(self.record.finished(status, self._now(), self.journal.progress.outcome))
            self._count(status)
        except Parked:
            return Ending.PARKED
        except FencedOff:
            _log.info("run_lost_to_another_orchestrator", run_id=run_id)
            return Ending.LOST
        except Unavailable as error:
            _log.warning("run_not_settled", run_id=run_id, error=error.message)
        except Exception as error:
            _log.exception("run_not_settled", run_id=run_id, error=repr(error))
        else:
            return Ending.SETTLED
        finally:
            self.journal.close()
        return Ending.UNSETTLED

    async def _work(self) -> RunStatus:
        """Raises FencedOff when another orchestrator has the run, Parked when it waits, CancelledError when this process stops."""
        if self._is_lost:
            raise FencedOff("the run was taken over")
        if self._is_log_lost:
            return await self._end(RunStatus.FAILED, LOG_LOST)
        if self._cancel_requested:
            return await self._end(RunStatus.CANCELLED)
        try:
            return await self._timed(self._remaining_s())
        except _OutOfTime:
            if self.journal.progress.answer is None:
                return await self._end(RunStatus.TIMEOUT, _OUT_OF_TIME)
        try:
            return await self._timed(_FINISH_S)  # what is logged is an answer: it is written down as one
        except _OutOfTime:
            return await self._end(RunStatus.TIMEOUT, _OUT_OF_TIME)

    async def _timed(self, seconds: float) -> RunStatus:
        """Raises _OutOfTime, and as _work."""
        deadline.set_remaining(seconds)
        self._working = True
        try:
            async with asyncio.timeout(seconds) as clock:
                return await self._worker.run(self.record, self.journal)
        except asyncio.CancelledError:
            if self._is_lost:
                raise FencedOff("the run was taken over") from None
            if not self._cancel_requested:
                raise
            assert self.task is not None
            self.task.uncancel()
            return await self._end(RunStatus.CANCELLED)
        except (FencedOff, Parked):
            raise
        except Exception as error:
            if clock.expired() or (isinstance(error, DeadlineExceeded) and deadline.is_spent()):
                raise _OutOfTime from error
            return await self._end(RunStatus.FAILED, _described(error))
        finally:
            self._working = False

    async def _end(self, status: RunStatus, error: RunError | None = None) -> RunStatus:
        deadline.set_remaining(None)
        if self.journal.progress.done is not None:
            return self.journal.progress.done.status
        if error is not None:
            await self.journal.write(error)
        await self.journal.write(Done(status))
        return status

    def _remaining_s(self) -> float:
        budget_s = self.record.request.budgets.wall_clock_s or self._limits.wall_clock_s
        elapsed_s = (self._now() - self.record.created_at).total_seconds()
        at_least_s = 0.0 if self.journal.progress.answer is None else _FINISH_S
        return max(at_least_s, min(budget_s, self._limits.wall_clock_s) - elapsed_s)

    def _count(self, status: RunStatus) -> None:
        mode = self.record.request.mode.value
        RUNS.labels(mode=mode, status=status.value).inc()
        RUN_SECONDS.labels(mode=mode).observe((self._now() - self.record.created_at).total_seconds())


def _described(error: Exception) -> RunError:
    if isinstance(error, GroundworkError):
        return RunError(error.code.name, error.reason, error.message, error.retryable)
    trace_id = current_trace_id()
    _log.error("run_failed", trace_id=trace_id, exc_info=error)
    message = f"something went wrong on our side; give this trace id to the operator: {trace_id}"
    return RunError("INTERNAL", "INTERNAL", message, retryable=False)
