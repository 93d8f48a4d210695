"""Runs and who works on them. A run belongs to the process that its marker names; it goes on without its caller; when its owner
falls silent another orchestrator continues it from the log."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime

import structlog

from kit.access.principal import Principal
from kit.errors import AlreadyExists, GroundworkError, Unavailable
from kit.llm.brought import BroughtModel
from kit.network.local_models import LocalModelsOnly
from kit.observability.telemetry import current_traceparent
from kit.stores.forgetting import Source
from services.orchestrator.errors import (
    RunDamaged,
    RunForgotten,
    RunNotFound,
    RunOfNewerVersion,
    ThreadForgotten,
    TooManyRuns,
    forgotten,
    in_flight,
    not_found,
)
from services.orchestrator.log.events import Done, RunEvent, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import Progress
from services.orchestrator.metrics import RESUMED_RUNS
from services.orchestrator.models import Dependent, Page, RunKey, RunMarker, RunRecord, RunRequest, Wait
from services.orchestrator.runs.approvals import Approvals
from services.orchestrator.runs.execution import Execution, RunServices
from services.orchestrator.runs.executions import Executions
from services.orchestrator.runs.functions import continued
from services.orchestrator.runs.inputs import Inputs
from services.orchestrator.runs.ownership import OwnedLog, Ownership
from services.orchestrator.runs.parking import Parking
from services.orchestrator.runs.requests import check, check_idempotency_key, new_run_id
from services.orchestrator.runs.sweeping import Sweeper, patiently

_log = structlog.get_logger()
_RETRY_AFTER_S = 1.0
_NEW_FOR_S = 1.0
"""An id that is older was claimed by an earlier try. Less than forgetting gives a run to begin."""


class Runs:
    """Starts, follows, cancels, parks and takes over runs."""

    def __init__(self, services: RunServices) -> None:
        store, log, limits, now = services.store, services.log, services.limits, services.now
        self.modes = services.modes
        self.ownership = Ownership(services.markers, limits.lease_s, now=now)
        self._store = store
        self._log = log
        self._sources = services.sources
        self._limits = limits
        self._brought = services.brought
        self._collections = services.collections
        self._reservations = services.reservations
        self._now = now
        self._parking = Parking(store, log, self.ownership)
        self._executions = Executions(services, self.ownership, self._parking)
        self._sweeper = Sweeper(
            services.markers, self.ownership, self._take_over, self._executions.lose, limits.lease_s / 2, now=now
        )
        self.approvals = Approvals(store, log, self, now)
        self.inputs = Inputs(store, log, self, now)
        self._starting = 0
        self._draining = False

    async def start(
        self,
        principal: Principal,
        request: RunRequest,
        idempotency_key: str = "",
        model: BroughtModel | None = None,
    ) -> tuple[RunKey, AsyncIterator[RunEvent]]:
        """Starts a run; the events are those of the whole run, as they are written. With an idempotency key that was used before,
        the run is the one that it started. `model` is the one that the user brings.

        Raises InvalidRequest, ModeNotOffered, TooManyRuns, LimitReached, ThreadForgotten, IdempotencyConflict, IdempotencyInFlight,
        UrlRefused or AddressRefused for the model's address, or Unavailable when runs cannot be made durable.
        """
        previous_run_id, goes_on_bound = request.previous_run_id, False
        if previous_run_id:
            previous = await self.as_followed(principal, RunKey(principal.tenant_id, previous_run_id))
            request, goes_on_bound = continued(request, previous, principal.subject), previous.local_models_only
        if request.functions or request.answer_schema:  # large schemas take most of a second
            await asyncio.to_thread(check, request, self.modes)
        else:
            check(request, self.modes)
        is_bound = goes_on_bound or await self._collections.bind_to_local_models(principal, request)
        if is_bound and model is not None:
            raise LocalModelsOnly(
                "a collection that this may search allows local models only, and the model that you bring is not one; ask "
                "without it, or name other collections"
            )
        now = self._now()
        key = RunKey(principal.tenant_id, new_run_id(now))
        if idempotency_key:
            check_idempotency_key(idempotency_key)
            claimed = await self._store.claim_key(principal, idempotency_key, request, key.run_id)
            if claimed != key.run_id:
                key = RunKey(principal.tenant_id, claimed)
                if await self._has_ended(key):
                    return key, self.attach(key, 0)
        record = RunRecord(
            key,
            principal.subject,
            request,
            RunStatus.RUNNING,
            now,
            traceparent=current_traceparent(),
            scopes=principal.scopes,
            groups=principal.groups,
            local_models_only=is_bound,
        )
        try:
            return await self._started(record, model, previous_run_id, principal.key_id)
        except GroundworkError as error:
            if idempotency_key and not error.retryable:
                await self._free_key(record, idempotency_key)
            raise

    async def _free_key(self, record: RunRecord, idempotency_key: str) -> None:
        """A request that was refused has started nothing: once it is put right, its key may stand for it."""
        with suppress(GroundworkError):
            await self._store.free_key(record.principal, idempotency_key, record.key.run_id)

    async def _started(
        self, record: RunRecord, model: BroughtModel | None, previous_run_id: str, key_id: str
    ) -> tuple[RunKey, AsyncIterator[RunEvent]]:
        if self._is_full():
            raise TooManyRuns(
                f"{self._limits.max_concurrent_runs} runs are going on in this orchestrator, as many as it may have; try again "
                "shortly. The operator may raise GROUNDWORK_MAX_CONCURRENT_RUNS",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._starting += 1
        try:
            if model is not None:
                await self._brought.check(model)
            record = await self._reservations.reserve(record, key_id)
            try:
                execution = await self._begin(record, model, previous_run_id)
            except BaseException:
                with suppress(Unavailable):
                    await self._reservations.give_back(record)
                raise
        except AlreadyExists as error:  # another request with this idempotency key was faster
            raise in_flight(record.key.run_id) from error
        finally:
            self._starting -= 1
        return record.key, self._whole(execution, execution.journal.follow())

    async def _whole(self, execution: Execution, written: AsyncIterator[RunEvent]) -> AsyncIterator[RunEvent]:
        """What is written here, and what comes after where the run goes on elsewhere: of one that is parked, or lost before its
        first event. A client that has seen an event follows the run itself."""
        seq = 0
        async with aclosing(written) as events:  # type: ignore[type-var] # a generator in fact
            async for event in events:
                seq = event.seq
                yield event
        if execution.waits_until is not None or not seq:
            async with aclosing(self._log.follow(execution.record.key, seq, live=True)) as rest:
                async for event in rest:
                    yield event

    async def _has_ended(self, key: RunKey) -> bool:
        """False of a run that was never begun. Raises IdempotencyInFlight of one that goes on, RunNotFound of a deleted one."""
        record = await self._store.get(key)
        if record is None:
            await self._log.read(key)  # a deletion leaves its seal
            return False
        if record.finished_at is None and record.forgotten_at is None:
            raise in_flight(key.run_id)
        return True

    async def attach(self, key: RunKey, after_seq: int) -> AsyncGenerator[RunEvent, None]:
        """Events of a run after `after_seq`, wherever it runs or ran. Raises RunNotFound, RunForgotten, RunExpired."""
        record = await self.get(key)
        if record.forgotten_at is not None:
            raise forgotten(key.run_id)
        if record.status is RunStatus.RUNNING:
            await self._take_over(key)
        async with aclosing(self._log.follow(key, after_seq, live=record.finished_at is None)) as events:
            async for event in events:
                yield event

    async def cancel(self, key: RunKey) -> RunRecord:
        """Stores the wish that the run stops and returns the run as it was. Raises RunNotFound."""
        record = await self.get(key)
        if record.finished_at is None:
            await self._store.request_cancel(key)
            self._executions.cancel(key)
            if record.status is RunStatus.WAITING:
                await self.resume(key)
        return record

    async def resume(self, key: RunKey) -> None:
        """Goes on with a parked run, whose log has what it waited for; here, or elsewhere when this process takes none now. Does
        nothing when somebody works on it: they find the entry. Raises Unavailable."""
        if self._draining or self._is_full():
            await self._parking.unpark(key)
        else:
            await self._take_over(key, resume=True)

    async def wake_by(self, key: RunKey, at: datetime) -> None:
        """Has a parked run go on at `at` at the latest, wherever it may. Raises Unavailable."""
        await self.ownership.wake_by(key, at)

    async def parked(self, tenant_id: str) -> Mapping[RunKey, Wait]:
        """The runs of a tenant that wait for a person. Raises Unavailable."""
        return await self._sweeper.parked(tenant_id)

    async def get(self, key: RunKey) -> RunRecord:
        """For a caller who may see it; see `visible`. Raises RunNotFound, RunDamaged."""
        record = await self._store.get(key)
        if record is None:
            raise not_found(key.run_id)
        return record

    async def visible(self, principal: Principal, key: RunKey) -> RunRecord:
        """The run, if it is the principal's: others do not learn that it exists. Raises RunNotFound, RunDamaged."""
        record = await self.get(key)
        if not _is_for(principal, record):
            raise not_found(key.run_id)
        return record

    async def as_followed(self, principal: Principal, key: RunKey) -> RunRecord:
        """What `visible` finds, which has ended once its log has: who followed the run to its `done` may ask before the record is
        stored. Raises RunNotFound, RunDamaged."""
        record = await self.visible(principal, key)
        if record.finished_at is not None or record.forgotten_at is not None:
            return record
        with suppress(Unavailable, RunNotFound, RunForgotten):
            events, _ = await self._log.read(key)
            if events and isinstance(events[-1].payload, Done):
                return record.finished(events[-1].payload.status, events[-1].at, Progress.of(events).outcome)
        return record

    async def may_delete(self, principal: Principal, key: RunKey) -> bool:
        """False when the run is somebody else's. A run that is gone may be deleted again. Any caller that knows the
        id may delete a run with a damaged record, which no longer says who owns it."""
        with suppress(RunDamaged):
            record = await self._store.get(key)
            return record is None or _is_for(principal, record)
        return True

    async def list(self, tenant_id: str, page_size: int, page_token: str, subject: str | None = None) -> Page:
        return await self._store.list(tenant_id, min(page_size or 100, 1000), page_token, subject)

    async def list_visible(self, principal: Principal, page_size: int, page_token: str) -> Page:
        """The principal's runs, newest first; an operator sees all of the tenant."""
        subject = None if principal.sees_all else principal.subject
        return await self.list(principal.tenant_id, page_size, page_token, subject)

    def under_way(self) -> Sequence[Execution]:
        """The runs that this process works on now."""
        return self._executions.all()

    async def work(self) -> None:
        """What goes on in the background: the lease, wishes to cancel, the sweep. Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for loop in (self.ownership.keep_lease, self._watch_cancels, self._sweeper.listen, self._sweeper.run):
                group.create_task(loop())

    def drain(self) -> None:
        """From now on nothing is taken over."""
        self._draining = True

    async def close(self) -> None:
        """Hands all runs over: stops working on them, lets them go, and gives up the lease."""
        self.drain()
        await self._executions.close()
        with suppress(Unavailable):
            await self.ownership.leave()

    async def _watch_cancels(self) -> None:
        async for key in patiently(self._store.watch_cancels):
            if key in self._executions:
                self._executions.cancel(key)
            else:
                await self._wake_to_end(key)

    async def _wake_to_end(self, key: RunKey) -> None:
        """A parked run has nobody who would hear that it is to stop."""
        try:
            await self._sweeper.refresh()
            if self._sweeper.is_parked(key):
                await self.resume(key)
        except GroundworkError as error:
            _log.warning(
                "cancelled_run_not_resumed",
                tenant_id=key.tenant_id,
                run_id=key.run_id,
                reason=error.reason,
                error=error.message,
            )

    def _is_full(self) -> bool:
        return len(self._executions) + self._starting >= self._limits.max_concurrent_runs

    async def _begin(self, record: RunRecord, model: BroughtModel | None, previous_run_id: str) -> Execution:
        # The marker before the record: nobody may find the run before it has an owner.
        if not await self.ownership.claim(record.key):
            raise in_flight(record.key.run_id)
        try:
            await self._note_thread(record.dependent)
            if previous_run_id:
                await self._note_previous(record.dependent, RunKey(record.key.tenant_id, previous_run_id))
            if model is not None:  # before the record, so that a process that finds the run finds its model
                await self._brought.keep(record.key, model)
            await self._store.create(record)
            if record.created_at.timestamp() - record.key.started_at_s > _NEW_FOR_S:
                await self._check_not_erased(record.key)
            return self._executions.begin(record, Journal(record.key, self._owned_log(), Progress(), 0, self._now))
        except BaseException:
            await self._let_go(record.key)
            raise

    async def _check_not_erased(self, key: RunKey) -> None:
        """Forgetting waits for records of young runs that may be under way. This one has the id of a first try that died long ago,
        so that it may have been erased already. Raises RunNotFound or RunForgotten."""
        try:
            await self._log.read(key)
        except (RunNotFound, RunForgotten):
            await self._store.delete(key)
            raise

    async def _note_thread(self, run: Dependent) -> None:
        """The record and the log hold text of the thread: the question."""
        if run.thread_id and await self._sources.depend(run, [Source.thread(run.subject, run.thread_id)]):
            raise ThreadForgotten(f"thread {run.thread_id} has been deleted; start a new one", thread_id=run.thread_id)

    async def _note_previous(self, run: Dependent, previous: RunKey) -> None:
        """The record may hold text of the run that it goes on from. A deletion removes that record, then lists who noted it: so
        no order of the two leaves text behind. Raises RunNotFound."""
        marked = await self._sources.depend(run, [Source.run(previous.run_id)])
        found = await self._store.get(previous)
        if marked or found is None or found.forgotten_at is not None:
            raise not_found(previous.run_id)

    async def _take_over(self, key: RunKey, *, resume: bool = False) -> None:
        """Continues a run that nobody works on; does nothing when somebody does, when it has ended, or when this process is full or
        stopping. Raises Unavailable, RunDamaged, RunForgotten, RunOfNewerVersion."""
        if self._draining or self._is_full() or key in self._executions:
            return
        self._starting += 1
        try:
            marker = await self.ownership.adopt(key, resume=resume)
            if marker is not None:
                await self._go_on(key, marker)
        finally:
            self._starting -= 1

    async def _go_on(self, key: RunKey, marker: RunMarker) -> None:
        """Works on a run from where its log ends. One that has ended is struck off, and so is one whose starter died before there
        was a record: its marker is ours, so nobody is in the middle of making it."""
        try:
            record = await self._store.get(key)
            if record is None or record.finished_at is not None:
                if record is not None:
                    await self._brought.drop(record)
                self.ownership.drop(key)
                await self._store.forget_active(key)
                return
            self._check_known(record)
            RESUMED_RUNS.labels("waited" if record.status is RunStatus.WAITING else "orphaned").inc()
            record = await self._running(record)
            journal = await Journal.open(key, self._owned_log(), self._now)
            if journal.progress.started:
                await self.ownership.note_begun(key)
            _log.info("run_taken_over", tenant_id=key.tenant_id, run_id=key.run_id)
            is_log_lost = marker.begun and not journal.progress.started
            self._executions.begin(record, journal, is_resumed=True, is_log_lost=is_log_lost)
        except BaseException:
            await self._let_go(key)
            raise

    async def _running(self, record: RunRecord) -> RunRecord:
        """The record, which does not say any more that the run waits."""
        if record.status is RunStatus.WAITING:
            record = replace(record, status=RunStatus.RUNNING, pending=())
            await self._store.set_status(record)
        return record

    async def _let_go(self, key: RunKey) -> None:
        with suppress(Unavailable):
            await self.ownership.release(key)

    def _check_known(self, record: RunRecord) -> None:
        if record.status is RunStatus.UNKNOWN or not self.modes.offers(record.request.mode):
            raise RunOfNewerVersion(
                f"run {record.key.run_id} is in a state or a mode of a newer version, which has to go on with it",
                run_id=record.key.run_id,
            )

    def _owned_log(self) -> OwnedLog:
        return OwnedLog(self._log, self.ownership)


def _is_for(principal: Principal, record: RunRecord) -> bool:
    return record.subject == principal.subject or principal.sees_all
