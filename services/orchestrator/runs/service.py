"""Runs and who works on them. A run belongs to whoever holds its lease; it goes on without its caller; when its holder falls
silent another orchestrator continues it from the log."""

import asyncio
import contextvars
import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any

import structlog

from kit.errors import Unavailable
from kit.forgetting import Source
from kit.llm.brought import BroughtModel
from kit.principal import Principal, use_principal
from kit.telemetry import continued_span, current_traceparent
from services.orchestrator.errors import (
    InvalidRequest,
    ModeNotOffered,
    RunNotFound,
    ThreadForgotten,
    TooManyRuns,
    forgotten,
)
from services.orchestrator.log.events import RunEvent, RunMode, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Dependent, Page, Progress, RunKey, RunLimits, RunRecord, RunRequest
from services.orchestrator.modes.grounded import DEFAULT_AGENT
from services.orchestrator.ports import EventLog, RunSources, RunStore
from services.orchestrator.runs.brought_models import BroughtModels
from services.orchestrator.runs.execution import Execution, Worker
from services.orchestrator.runs.tally import Tally

_log = structlog.get_logger()
_OFFERED_MODES = (RunMode.QA, RunMode.GROUNDED)
_MAX_QUESTION_CHARS = 8_000
_MAX_COLLECTIONS = 64
_MAX_DOCUMENTS = 1_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=-]{0,127}")
_MAX_TOP_K = 200
"""A record and an event must each fit into one message of the store, which is 1 MB."""
_RETRY_AFTER_S = 1.0


class Runs:
    """Starts, follows, cancels and takes over runs. `spawn` runs a coroutine for as long as the process lives."""

    def __init__(
        self,
        store: RunStore,
        log: EventLog,
        sources: RunSources,
        worker: Worker,
        limits: RunLimits,
        brought: BroughtModels,
        tally: Tally,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._log = log
        self._sources = sources
        self._worker = worker
        self._limits = limits
        self._brought = brought
        self._tally = tally
        self._now = now
        self._executions: dict[RunKey, Execution] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = 0
        self._elsewhere: set[RunKey] = set()

    async def start(
        self, principal: Principal, request: RunRequest, model: BroughtModel | None = None
    ) -> tuple[RunKey, AsyncIterator[RunEvent]]:
        """Starts a run; the events are those of the whole run, as they are written. `model` is the one that the user brings.

        Raises InvalidRequest, ModeNotOffered, TooManyRuns, UrlRefused or AddressRefused for the model's address, or Unavailable
        when runs cannot be made durable.
        """
        _check(request)
        if self._is_full():
            raise TooManyRuns(
                "this orchestrator is at its limit of runs; try again shortly", retry_after_s=_RETRY_AFTER_S
            )
        now = self._now()
        key = RunKey(principal.tenant_id, _new_run_id(now))
        record = RunRecord(key, principal.subject, request, RunStatus.RUNNING, now, traceparent=current_traceparent())
        self._starting += 1
        try:
            if model is not None:  # before the record: whoever finds the run finds its model
                await self._brought.keep(key, model)
            execution = await self._begin(record)
        finally:
            self._starting -= 1
        return key, execution.journal.follow()

    async def attach(self, key: RunKey, after_seq: int) -> AsyncIterator[RunEvent]:
        """Events of a run after `after_seq`, wherever it runs or ran. Raises RunNotFound, RunForgotten."""
        record = await self.get(key)
        if record.forgotten_at is not None:
            raise forgotten(key.run_id)
        if record.status is RunStatus.RUNNING:
            await self._take_over(key)
        stream = self._log.follow(key, after_seq, live=record.finished_at is None)
        async with aclosing(stream) as events:  # type: ignore[type-var] # a generator in fact
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
                except Exception as error:
                    # One run that cannot be read must not keep the others from being finished.
                    _log.exception("run_cannot_be_taken_over", run_id=key.run_id, error=repr(error))
                    self._elsewhere.discard(key)

    async def close(self) -> None:
        """Hands all runs over: stops working on them and releases their leases."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cancel_here(self, key: RunKey) -> None:
        if execution := self._executions.get(key):
            execution.cancel()

    def _is_full(self) -> bool:
        return len(self._executions) + self._starting >= self._limits.max_concurrent_runs

    async def _begin(self, record: RunRecord) -> Execution:
        # The lease before the record: nobody may find the run before it has an owner.
        await self._store.acquire_lease(record.key)
        try:
            await self._note_thread(record.dependent)
            await self._store.create(record)
            return self._execute(record, Journal(record.key, self._log, Progress(), 0, self._now))
        except BaseException:
            await self._let_go(record.key)
            raise

    async def _note_thread(self, run: Dependent) -> None:
        """The record and the log hold text of the thread: the question."""
        if run.thread_id and await self._sources.depend(run, [Source.thread(run.subject, run.thread_id)]):
            raise ThreadForgotten(f"thread {run.thread_id} has been deleted; start a new one", thread_id=run.thread_id)

    async def _take_over(self, key: RunKey) -> None:
        """Continues a run that nobody works on; does nothing when somebody does, or when it has ended."""
        if self._is_full() or key in self._executions or not await self._store.acquire_lease(key):
            return
        execution: Execution | None = None
        try:
            execution = await self._resumed(key)
        finally:
            if execution is None:
                await self._let_go(key)
        # Asked only now: a wish that comes later finds the execution, one that came earlier is stored.
        if execution is not None and await self._store.is_cancelled(key):
            execution.cancel()

    async def _resumed(self, key: RunKey) -> Execution | None:
        """The run, going on; None when it has ended, or when its starter died before there was one: with the lease held,
        nobody is in the middle of making it."""
        record = await self._store.get(key)
        if record is None or record.finished_at is not None:
            await self._store.forget_active(key)
            return None
        if record.status is not RunStatus.RUNNING:
            return None  # a newer version knows what it waits for
        journal = await Journal.open(key, self._log, self._now)
        _log.info("run_taken_over", run_id=key.run_id)
        return self._execute(record, journal)

    async def _let_go(self, key: RunKey) -> None:
        with suppress(Unavailable):
            await self._store.release_lease(key)

    def _execute(self, record: RunRecord, journal: Journal) -> Execution:
        execution = Execution(record, journal, self._store, self._tally, self._worker, self._limits, self._now)
        self._executions[record.key] = execution
        # A context of its own: the run outlives the call that started it, and must not inherit that call's deadline. What it does
        # belongs to that call's trace all the same.
        resumed = journal.progress.started
        task = asyncio.create_task(self._as_owner(execution, resumed=resumed), context=contextvars.Context())
        execution.task = task
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._forget(execution, task))
        return execution

    async def _as_owner(self, execution: Execution, *, resumed: bool) -> None:
        record = execution.record
        mode = record.request.mode.value
        with (
            use_principal(Principal(record.key.tenant_id, record.subject)),
            structlog.contextvars.bound_contextvars(tenant_id=record.key.tenant_id, run_id=record.key.run_id),
            continued_span("run", record.traceparent, run_id=record.key.run_id, mode=mode, resumed=resumed),
        ):
            async with self._brought.in_use(record, execution.journal):
                await execution.run()

    def _forget(self, execution: Execution, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if self._executions.get(execution.record.key) is execution:
            del self._executions[execution.record.key]


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
    _check_ids("collection_ids", request.collection_ids, _MAX_COLLECTIONS)
    _check_ids("document_ids", request.document_ids, _MAX_DOCUMENTS)
    if request.top_k > _MAX_TOP_K:
        raise InvalidRequest(f"top_k is {request.top_k}; at most {_MAX_TOP_K} passages are read", field="top_k")
    if request.budgets.wall_clock_s < 0:
        raise InvalidRequest("budgets.wall_clock is negative; give seconds, or leave it out", field="budgets")
    if request.agent not in ("", "auto", DEFAULT_AGENT):
        raise InvalidRequest(f"agent {request.agent} does not exist; use auto or {DEFAULT_AGENT}", field="agent")


def _check_ids(field: str, ids: Sequence[str], most: int) -> None:
    """The limits of the retriever's contract: a run that is bound to be refused there is not begun."""
    if len(ids) > most:
        raise InvalidRequest(f"{field} names {len(ids)}; name at most {most}", field=field)
    for each in ids:
        if not _ID.fullmatch(each):
            raise InvalidRequest(
                f"{field} has {each[:80]!r}, which is no id; use 1 to 128 of A-Z, a-z, 0-9, '-', '_', '='", field=field
            )


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
