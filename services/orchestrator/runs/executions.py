"""The runs that this process works on, each in a task of its own. The other orchestrators learn what becomes of them."""

import asyncio
import contextvars

import structlog

from kit.access.principal import use_principal
from kit.network.local_models import use_local_models
from kit.observability.telemetry import continued_span
from services.orchestrator.log.journal import Journal
from services.orchestrator.metrics import RUNS_IN_HAND
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.runs.execution import Ending, Execution, RunServices
from services.orchestrator.runs.ownership import Ownership
from services.orchestrator.runs.parking import Parking

_log = structlog.get_logger()


class Executions:
    """Begins executions and sees them off."""

    def __init__(self, services: RunServices, ownership: Ownership, parking: Parking) -> None:
        self._services = services
        self._log = services.log
        self._brought = services.brought
        self._ownership = ownership
        self._parking = parking
        self._by_run: dict[RunKey, Execution] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._by_run)

    def __contains__(self, key: RunKey) -> bool:
        return key in self._by_run

    def all(self) -> list[Execution]:
        """Those under way now."""
        return list(self._by_run.values())

    def cancel(self, key: RunKey) -> None:
        """Ends the run as cancelled, if it is ours."""
        if execution := self._by_run.get(key):
            execution.cancel()

    def lose(self, key: RunKey) -> None:
        """Stops working on the run, if we do: another orchestrator has it."""
        if execution := self._by_run.get(key):
            execution.lose()

    async def close(self) -> None:
        """Stops working on all runs and lets them go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def begin(
        self, record: RunRecord, journal: Journal, *, is_resumed: bool = False, is_log_lost: bool = False
    ) -> Execution:
        execution = Execution(record, journal, self._services, is_resumed=is_resumed, is_log_lost=is_log_lost)
        self._by_run[record.key] = execution
        self._log.hold(record.key)
        # A context of its own: the run outlives the call that started it, and must not inherit that call's deadline. What it does
        # belongs to that call's trace all the same.
        task = asyncio.create_task(self._to_its_end(execution), context=contextvars.Context())
        execution.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return execution

    async def _to_its_end(self, execution: Execution) -> None:
        key = execution.record.key
        ending = Ending.UNSETTLED
        with structlog.contextvars.bound_contextvars(tenant_id=key.tenant_id, run_id=key.run_id):
            RUNS_IN_HAND.inc()
            try:
                ending = await self._as_owner(execution)
            finally:
                RUNS_IN_HAND.dec()
                del self._by_run[key]
                self._log.let_go(key)
                try:
                    await self._left(execution, ending)
                except Exception as error:
                    # The marker may still say that the run is ours: our own sweeper finds that we do not hold it.
                    self._ownership.drop(key)
                    _log.warning("run_not_let_go", error=repr(error))
                finally:
                    execution.journal.close()

    async def _as_owner(self, execution: Execution) -> Ending:
        record = execution.record
        attributes = {
            "groundwork.run.id": record.key.run_id,
            "groundwork.run.mode": record.request.mode.value,
            "groundwork.run.resumed": execution.journal.progress.started,
        }
        with (
            use_principal(record.principal),
            use_local_models(record.local_models_only),
            continued_span("run", record.traceparent, attributes) as span,
        ):
            async with self._brought.in_use(record):
                ending = await execution.run()
            span.set_attribute("groundwork.run.ending", ending.value)
            if ending is Ending.SETTLED:
                await self._brought.drop(record)
            return ending

    async def _left(self, execution: Execution, ending: Ending) -> None:
        """Tells the others what became of the run."""
        key = execution.record.key
        if ending is Ending.UNSETTLED:
            await self._ownership.release(key)
        elif execution.waits_until is not None:
            await self._parking.park(execution.record, execution.journal, execution.waits_until)
        else:
            self._ownership.drop(key)
