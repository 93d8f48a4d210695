"""One run being worked on in this process: its lease, its clock, its end. Whatever happens, the run either gets its `done` event or
is left to another orchestrator with a log that can be continued."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Protocol

import structlog

from kit import deadline
from kit.errors import DeadlineExceeded, GroundworkError, Unavailable
from kit.telemetry import current_trace_id
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import Done, RunError, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.metrics import RUN_SECONDS, RUNS
from services.orchestrator.models import RunLimits, RunRecord
from services.orchestrator.ports import RunStore
from services.orchestrator.runs.tally import Tally, cost_of

_log = structlog.get_logger()
_OUT_OF_TIME = RunError("DEADLINE_EXCEEDED", "RUN_TIMEOUT", "the run took longer than its budget", retryable=True)


class Worker(Protocol):
    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        """Takes a run to its end; see pipeline.Pipeline."""
        ...


class Execution:
    """Works on a run until it ends or is lost. `cancel()` ends it as cancelled; cancelling its task hands it over."""

    def __init__(
        self,
        record: RunRecord,
        journal: Journal,
        store: RunStore,
        tally: Tally,
        worker: Worker,
        limits: RunLimits,
        now: Callable[[], datetime],
    ) -> None:
        self.record = record
        self.journal = journal
        self.task: asyncio.Task[None] | None = None
        self._store = store
        self._tally = tally
        self._worker = worker
        self._limits = limits
        self._now = now
        self._cancel_requested = False
        self._lease_lost = False
        self._working = False

    def cancel(self) -> None:
        """Ends the run as cancelled, from whatever it is doing; without effect once it is ending."""
        if not self._cancel_requested:
            self._cancel_requested = True
            self._interrupt()

    def _interrupt(self) -> None:
        if self.task is not None and self._working:
            self._working = False
            self.task.cancel()

    async def run(self) -> None:
        key = self.record.key
        try:
            async with self._lease():
                status = await self._work()
                if self.journal.durable:
                    await self._count_cost()
                    await self._store.finish(self.record.finished(status, self._now()))
                    self._count(status)
        except FencedOff:
            _log.info("run_lost_to_another_orchestrator", run_id=key.run_id)
        except Unavailable as error:
            _log.warning("run_not_settled", run_id=key.run_id, error=error.message)
        except Exception as error:
            _log.exception("run_not_settled", run_id=key.run_id, error=repr(error))
        finally:
            self.journal.close()
            with contextlib.suppress(Unavailable):
                await self._store.release_lease(key)

    async def _count_cost(self) -> None:
        """Before the end is stored: after a crash in between whoever ends the run again counts it again, as the same."""
        if (usage := self.journal.progress.usage) is not None:
            await self._tally.put(cost_of(self.record, usage))

    async def _work(self) -> RunStatus:
        """Raises FencedOff when another orchestrator has the run, CancelledError when this process stops."""
        if self._cancel_requested:
            return await self._end(RunStatus.CANCELLED)
        remaining_s = self._remaining_s()
        deadline.set_remaining(remaining_s)
        self._working = True
        try:
            async with asyncio.timeout(remaining_s) as clock:
                return await self._worker.run(self.record, self.journal)
        except asyncio.CancelledError:
            if self._lease_lost:
                raise FencedOff("the lease was lost") from None
            if not self._cancel_requested:
                raise
            assert self.task is not None
            self.task.uncancel()
            return await self._end(RunStatus.CANCELLED)
        except FencedOff:
            raise
        except Exception as error:
            if clock.expired() or (isinstance(error, DeadlineExceeded) and deadline.is_spent()):
                return await self._end(RunStatus.TIMEOUT, _OUT_OF_TIME)
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
        return max(0.0, min(budget_s, self._limits.wall_clock_s) - elapsed_s)

    @contextlib.asynccontextmanager
    async def _lease(self) -> AsyncIterator[None]:
        """Keeps the lease while the block runs; ends the block when it is lost."""

        async def keep() -> None:
            while True:
                await asyncio.sleep(self._limits.lease_s / 3)
                try:
                    held = await self._store.renew_lease(self.record.key)
                except Unavailable:
                    continue  # nobody else can take it either while the store is away
                # Without a durable log the answer is only worth something to who is listening here: go on.
                if not held and self.journal.durable:
                    self._lease_lost = True
                    self._interrupt()
                    return

        keeper = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper

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
