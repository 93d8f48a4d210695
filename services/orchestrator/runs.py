"""Runs and who works on them. A run belongs to whoever holds its lease; it goes on without its caller; when its holder falls
silent another orchestrator continues it from the log."""

import asyncio
import contextvars
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import structlog

from kit.errors import Unavailable
from kit.principal import Principal, use_principal
from services.orchestrator.errors import InvalidRequest, ModeNotOffered, RunNotFound, TooManyRuns
from services.orchestrator.events import RunEvent, RunMode, RunStatus
from services.orchestrator.execution import Execution, Worker
from services.orchestrator.journal import Journal
from services.orchestrator.models import Page, RunKey, RunLimits, RunRecord, RunRequest
from services.orchestrator.pipeline import DEFAULT_AGENT
from services.orchestrator.ports import EventLog, RunStore

_log = structlog.get_logger()
_OFFERED_MODES = (RunMode.QA, RunMode.GROUNDED)
_MAX_QUESTION_CHARS = 8_000
_RETRY_AFTER_S = 1.0


class Runs:
    """Starts, follows, cancels and takes over runs. `spawn` runs a coroutine for as long as the process lives."""

    def __init__(
        self,
        store: RunStore,
        log: EventLog,
        worker: Worker,
        limits: RunLimits,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._log = log
        self._worker = worker
        self._limits = limits
        self._now = now
        self._executions: dict[RunKey, Execution] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._elsewhere: set[RunKey] = set()

    async def start(self, principal: Principal, request: RunRequest) -> tuple[RunKey, AsyncIterator[RunEvent]]:
        """Starts a run; the events are those of the whole run, as they are written.

        Raises InvalidRequest, ModeNotOffered, TooManyRuns, or Unavailable when runs cannot be made durable.
        """
        _check(request)
        if len(self._executions) >= self._limits.max_concurrent_runs:
            raise TooManyRuns(
                "this orchestrator is at its limit of runs; try again shortly", retry_after_s=_RETRY_AFTER_S
            )
        now = self._now()
        key = RunKey(principal.tenant_id, _new_run_id(now))
        record = RunRecord(key, principal.subject, request, RunStatus.RUNNING, now)
        # The lease before the record: nobody may find the run before it has an owner.
        await self._store.acquire_lease(key)
        await self._store.create(record)
        execution = await self._execute(record)
        return key, execution.journal.follow()

    async def attach(self, key: RunKey, after_seq: int) -> AsyncIterator[RunEvent]:
        """Events of a run after `after_seq`, wherever it runs or ran. Raises RunNotFound."""
        await self.get(key)
        if key not in self._executions:
            await self._take_over(key)
        async with aclosing(self._log.follow(key, after_seq)) as events:  # type: ignore[type-var] # a generator in fact
            async for event in events:
                yield event

    async def cancel(self, key: RunKey) -> RunRecord:
        """Stores the wish that the run stops and returns the run as it was. Raises RunNotFound."""
        record = await self.get(key)
        if record.status is RunStatus.RUNNING:
            await self._store.request_cancel(key)
            self._cancel_here(key)
        return record

    async def get(self, key: RunKey) -> RunRecord:
        record = await self._store.get(key)
        if record is None:
            raise RunNotFound(f"run {key.run_id} does not exist, or its events have expired", run_id=key.run_id)
        return record

    async def list(self, tenant_id: str, page_size: int, page_token: str) -> Page:
        return await self._store.list(tenant_id, min(page_size or 100, 1000), page_token)

    async def watch_cancels(self) -> None:
        """Cancels runs of this process that somebody wants stopped. Runs until cancelled."""
        async for key in _patiently(self._store.watch_cancels):
            self._cancel_here(key)

    async def watch_running(self) -> None:
        """Keeps the list of runs that have not ended, for the sweeper. Runs until cancelled."""
        async for key, running in _patiently(self._store.watch_running):
            if running:
                self._elsewhere.add(key)
            else:
                self._elsewhere.discard(key)

    async def sweep(self) -> None:
        """Takes over runs whose orchestrator has fallen silent. Runs until cancelled."""
        while True:
            await asyncio.sleep(self._limits.lease_s / 2)
            for key in self._elsewhere - self._executions.keys():
                try:
                    await self._take_over(key)
                except Unavailable:
                    break

    async def close(self) -> None:
        """Hands all runs over: stops working on them and releases their leases."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cancel_here(self, key: RunKey) -> None:
        if execution := self._executions.get(key):
            execution.cancel()

    async def _take_over(self, key: RunKey) -> None:
        """Continues a run that nobody works on; does nothing when somebody does, or when it has ended."""
        if len(self._executions) >= self._limits.max_concurrent_runs or key in self._executions:
            return
        record = await self._store.get(key)
        if record is not None and record.status is not RunStatus.RUNNING:
            self._elsewhere.discard(key)
            return
        if not await self._store.acquire_lease(key):
            return
        if record is None:
            # Its starter died before there was a run. The lease was free, so nobody is in the middle of making one.
            await self._store.forget_active(key)
            await self._store.release_lease(key)
            return
        _log.info("run_taken_over", run_id=key.run_id)
        await self._execute(record, cancelled=await self._store.is_cancelled(key))

    async def _execute(self, record: RunRecord, *, cancelled: bool = False) -> Execution:
        journal = await Journal.open(record.key, self._log, self._now)
        execution = Execution(record, journal, self._store, self._worker, self._limits, self._now, cancelled=cancelled)
        self._executions[record.key] = execution
        # A context of its own: the run outlives the call that started it, and must not inherit that call's deadline.
        task = asyncio.create_task(self._as_owner(record, execution.run()), context=contextvars.Context())
        execution.task = task
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._forget(record.key, task))
        return execution

    async def _as_owner(self, record: RunRecord, work: Coroutine[Any, Any, None]) -> None:
        with (
            use_principal(Principal(record.key.tenant_id, record.subject)),
            structlog.contextvars.bound_contextvars(tenant_id=record.key.tenant_id, run_id=record.key.run_id),
        ):
            await work

    def _forget(self, key: RunKey, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._executions.pop(key, None)


def _check(request: RunRequest) -> None:
    if request.mode not in _OFFERED_MODES:
        raise ModeNotOffered(f"mode {request.mode.value} is not offered yet; use qa or grounded")
    if not request.question.strip():
        raise InvalidRequest("the question is empty; ask something", field="question")
    if len(request.question) > _MAX_QUESTION_CHARS:
        raise InvalidRequest(
            f"the question has {len(request.question)} characters; at most {_MAX_QUESTION_CHARS} are read",
            field="question",
        )
    if not request.collection_ids:
        raise InvalidRequest("no collection is named; name at least one to search", field="collection_ids")
    if request.agent not in ("", "auto", DEFAULT_AGENT):
        raise InvalidRequest(f"agent {request.agent} does not exist; use auto or {DEFAULT_AGENT}", field="agent")


def _new_run_id(now: datetime) -> str:
    """32 hex characters that sort by time: 48 bits of milliseconds, 80 of randomness (the layout of UUIDv7's use, RFC 9562)."""
    return f"{int(now.timestamp() * 1000):012x}{secrets.token_hex(10)}"


async def _patiently(watch: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
    """A watch that begins anew when the store goes away and comes back."""
    while True:
        try:
            async with aclosing(watch()) as updates:  # type: ignore[type-var] # a generator in fact
                async for update in updates:
                    yield update
        except Unavailable:
            await asyncio.sleep(_RETRY_AFTER_S)
