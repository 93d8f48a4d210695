"""Erasing what runs have kept of something that was deleted.

A run notes its sources before it writes their text, and then asks whether one of them is forgotten; forgetting marks the source
and then lists the runs that noted it. So no order of the two leaves text behind. A run that is going on is given a moment, then
cancelled, then cut off: its log is sealed, and the store refuses what is still written to it. One that waits for a person is
cancelled at once, which wakes it. Every step may be repeated.

    of a document or a fact that is remembered of somebody
                     the events and answers of the runs that quote it, and of runs that were shown their answers; the answers in
    threads.
                     The question stays, in the run's record and in the thread: it is the user's own words.
    of a thread      the runs of its questions, whole; its messages are the memory service's to remove. Runs of other threads that
                     looked its messages up lose what quotes a document would.
    of a run         the run, whole; what it put into a thread stays there.

Runs that went on from a run with what its functions returned hold a copy of its calls and words: that goes when the run is deleted.

What came of a run's calls, which the tools service keeps for a week, goes with its events each time. While that service is away
the rest is erased, and the request comes back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

import structlog

from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError
from kit.stores.forgetting import ForgetRequest, Source, SourceKind
from services.orchestrator.errors import RunDamaged
from services.orchestrator.log.events import Evidence, Retrieval, RunStatus
from services.orchestrator.metrics import FORGOTTEN_RUNS
from services.orchestrator.models import Dependent, RunKey, RunRecord
from services.orchestrator.ports import EventLog, Memory, RunSources, RunStore, ToolNotes
from services.orchestrator.runs.brought_models import ModelStore

RECHECK_S = 1.0
"""Until a run that is going on is looked at again."""
GRACE = timedelta(seconds=10)
"""What a run gets to end by itself when a document that it read is deleted; most take less. Nobody waits for an answer in a thread
that is gone: those are cancelled at once."""
CUT_OFF_AFTER = timedelta(seconds=30)
"""A run that has not ended by then hangs, or its orchestrator does: all is to be erased within a minute."""
SETTLE = timedelta(seconds=5)
"""After a run's end its last call to memory may still be under way, and before its start its record may; calls take at most two
seconds."""
_RETRY_FAILED_S = 5.0
_AT_ONCE = 16
_QUOTED = (SourceKind.DOCUMENT, SourceKind.FACT)
"""What runs quote: the answer goes, and the question stays."""
_NOBODY = "forgetting"
"""In whose name the calls of a run are erased when its request does not say whose it is: they belong to the tenant."""

_log = structlog.get_logger()


class Forgetting:
    """Does what the queue FORGET asks for."""

    def __init__(
        self,
        store: RunStore,
        log: EventLog,
        sources: RunSources,
        memory: Memory,
        models: ModelStore,
        tools: ToolNotes,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._log = log
        self._sources = sources
        self._memory = memory
        self._models = models
        self._tools = tools
        self._now = now

    async def forget(self, tenant_id: str, request: ForgetRequest) -> float | None:
        """Erases what can be erased now. None when that was all, else the seconds after which to ask again."""
        source = request.source
        if source.kind is SourceKind.RUN:
            return await self._erase(Dependent(RunKey(tenant_id, source.item_id)), request)
        await self._sources.mark_forgotten(tenant_id, source)
        found = {source: await self._sources.dependents(tenant_id, source)}
        await self._follow_answers(tenant_id, source, found)
        runs = {run.key: run for runs in found.values() for run in runs}
        waits = await self._erase_all(list(runs.values()), request)
        if waits:
            return min(waits)
        for each in found:
            await self._sources.drop_source(tenant_id, each)
        return None

    async def _follow_answers(
        self, tenant_id: str, forgotten: Source, found: dict[Source, Sequence[Dependent]]
    ) -> None:
        """Adds the runs whose model was shown an answer of those that quote what is forgotten: it may have repeated that."""
        pending = [run.key for runs in found.values() for run in runs if _quotes(run, forgotten)]
        while pending:
            source = Source.run(pending.pop().run_id)
            if source not in found:
                await self._sources.mark_forgotten(tenant_id, source)
                found[source] = await self._sources.dependents(tenant_id, source)
                pending += [run.key for run in found[source]]

    async def _erase_all(self, runs: list[Dependent], request: ForgetRequest) -> list[float]:
        """The waits of those that could not be erased yet. One that fails does not keep the others from being erased."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(run: Dependent) -> float | None:
            async with slots:
                try:
                    return await self._erase(run, request)
                except Exception as error:
                    _log.exception("run_cannot_be_forgotten", run_id=run.key.run_id, error=repr(error))
                    return _RETRY_FAILED_S

        waits = await asyncio.gather(*map(one, runs))
        return [wait_s for wait_s in waits if wait_s is not None]

    async def _erase(self, run: Dependent, request: ForgetRequest) -> float | None:
        record = await self._record(run.key)
        run = record.dependent if record is not None else run
        quotes = _quotes(run, request.source)
        if record is not None and record.forgotten_at is not None and quotes:
            return None  # noted last of all: there is nothing left to do
        wait_s = await self._wait_s(run, record, request, gives_time=quotes)
        if wait_s is not None:
            return wait_s
        await self._log.erase(run.key, deleted=not quotes)
        await self._models.drop(run.key)  # of one that was cut off nobody else does
        if quotes:
            # At once, though the memory service may be away; the note that nothing is left to do comes last.
            await self._store.drop_outcome(run.key)
            if run.thread_id:
                with use_principal(Principal(run.key.tenant_id, run.subject)):
                    await self._memory.forget_answer(run.thread_id, run.key.run_id)
        else:
            await self._store.delete(run.key)
            wait_s = await self._drop_copies(run.key, request)
        if not await self._erase_calls(run):
            return _RETRY_FAILED_S
        if wait_s is not None:
            return wait_s
        if quotes:
            await self._store.forget(run.key, self._now())
        elif request.source.kind is SourceKind.THREAD:
            await self._sources.drop_run(run.key)
        FORGOTTEN_RUNS.labels(source=request.source.kind.value).inc()
        return None

    async def _drop_copies(self, key: RunKey, request: ForgetRequest) -> float | None:
        """Removes the calls and words of a deleted run from the records of those that went on from it, and from it through others.
        None when that is done, else the seconds after which to ask again."""
        pending, holders, waits = [key], [key], []
        while pending:
            for run in await self._sources.dependents(key.tenant_id, Source.run(pending.pop(0).run_id)):
                record = None if run.key in holders else await self._record(run.key)
                if run.key in holders or (record is not None and not record.request.repeats_calls):
                    continue
                wait_s = await self._wait_s(run, record, request, gives_time=True)
                if wait_s is not None:
                    waits.append(wait_s)
                if record is not None:
                    holders.append(run.key)
                    pending.append(run.key)
        if waits:
            return min(waits)
        for holder in reversed(holders[1:]):  # the last first: the others lead to it when this is interrupted
            await self._store.drop_said_before(holder)
        return None

    async def _erase_calls(self, run: Dependent) -> bool:
        """Whether it is done: the rest of the run need not wait for the tools service."""
        try:
            with use_principal(Principal(run.key.tenant_id, run.subject or _NOBODY)):
                await self._tools.forget_calls(run.key.run_id)
        except GroundworkError as error:  # also of an older tools service, which does not know the request
            _log.warning("calls_not_forgotten", run_id=run.key.run_id, reason=error.reason)
            return False
        return True

    async def _wait_s(
        self, run: Dependent, record: RunRecord | None, request: ForgetRequest, *, gives_time: bool
    ) -> float | None:
        """How long to leave the run alone; None when it can be erased. `gives_time`: it may end by itself first. What a clock
        that was set back puts into the future is as far away as what is over: no wait is longer than twice what it should be."""
        now = self._now()
        if record is None:
            started = run.key.started_at_s
            return SETTLE.total_seconds() if 0 <= now.timestamp() - started < SETTLE.total_seconds() else None
        if record.finished_at is None:
            waited = abs(now - request.requested_at)
            if waited >= CUT_OFF_AFTER:
                return None
            is_waiting = record.status is RunStatus.WAITING  # for a person, so that it does not end by itself
            if not gives_time or is_waiting or waited >= GRACE:
                await self._store.request_cancel(run.key)
            return RECHECK_S
        settles_in = record.finished_at + SETTLE - now
        return settles_in.total_seconds() if run.thread_id and timedelta(0) < settles_in <= SETTLE else None

    async def _record(self, key: RunKey) -> RunRecord | None:
        try:
            return await self._store.get(key)
        except RunDamaged:
            return None


class RunDeletion:
    """Deletes runs on demand. The request is on disk first, so that a deletion which is interrupted is finished."""

    def __init__(
        self, forgetting: Forgetting, request: Callable[[ForgetRequest], Awaitable[None]], now: Callable[[], datetime]
    ) -> None:
        self._forgetting = forgetting
        self._request = request
        self._now = now

    async def delete(self, key: RunKey) -> None:
        """Removes a run at once, or within a minute when it is going on. Harmless when repeated. Raises Unavailable."""
        request = ForgetRequest(Source.run(key.run_id), self._now())
        await self._request(request)
        await self._forgetting.forget(key.tenant_id, request)


async def note_stored_runs(store: RunStore, log: EventLog, sources: RunSources) -> None:
    """Notes the sources of all stored runs anew, where what was noted is lost: reads all records and logs."""
    if await sources.is_complete():
        return
    threads: dict[RunKey, Dependent] = {}
    async with aclosing(store.all()) as records:
        async for record in records:
            run = record.dependent
            if run.thread_id:
                threads[run.key] = run
                await sources.depend(run, [Source.thread(run.subject, run.thread_id)])
    async with aclosing(log.payloads()) as payloads:
        async for key, payload in payloads:
            if isinstance(payload, Retrieval):
                await sources.depend(threads.get(key, Dependent(key)), documents_of(payload.evidence))
    await sources.set_complete()
    _log.info("stored_runs_noted")


def _quotes(run: Dependent, source: Source) -> bool:
    """Whether the run only quotes what is forgotten; else it is itself, or one of the thread's."""
    if source.kind is SourceKind.THREAD:
        return source != Source.thread(run.subject, run.thread_id)
    return source.kind in _QUOTED


def documents_of(evidence: Sequence[Evidence]) -> list[Source]:
    """The documents whose text the passages hold."""
    return [Source.document(each) for each in dict.fromkeys(hit.document_id for hit in evidence)]
