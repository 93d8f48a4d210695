"""Runs that wait for somebody's decision: they cost nothing meanwhile, and no decision is missed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from groundwork.orchestrator.v1 import record_pb2 as pb

from kit.jetstream import KeyValue, Nats
from kit.stores.forgetting import ForgetRequest, Source
from services.orchestrator.errors import Parked
from services.orchestrator.log.events import (
    Approval,
    ApprovalDecision,
    Done,
    RunEvent,
    RunParked,
    RunStatus,
    StepState,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER
from tests.service.orchestrator.conftest import ANN, LEASE_S, QUESTION, Orchestrator, collect, now
from tests.service.orchestrator.paying import is_parked
from tests.service.orchestrator.test_ownership import LONG_S, logged
from tests.service.orchestrator.test_runs import _has_status, status_of, until

Start = Callable[..., Awaitable[Orchestrator]]
_STEP = "ask"


class AskingWorker:
    """Asks once, waits for the decision, and ends the run. `about_to_wait` is set, and `gate` awaited, between asking and
    waiting."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.about_to_wait = asyncio.Event()
        self.visits = 0

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        self.visits += 1
        if not journal.progress.started:
            await journal.record(_STEP, _approval(ApprovalDecision.PENDING), StepState())
        if journal.progress.pending:
            self.about_to_wait.set()
            await self.gate.wait()
            raise Parked(_STEP, now() + timedelta(hours=1))
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


def _approval(decision: ApprovalDecision) -> Approval:
    return Approval("a", "pay", None, "", (), now() + timedelta(hours=1), decision)


async def _decide(orchestrator: Orchestrator, key: RunKey) -> None:
    """What whoever decides does: writes the decision, then resumes the run."""
    log = orchestrator.runs._log
    events, position = await log.read(key)
    decision = RunEvent(key.run_id, len(events) + 1, now(), _approval(ApprovalDecision.ALLOWED), _STEP, StepState())
    await log.append(key, decision, position)
    await orchestrator.runs.resume(key)


async def _parked(orchestrator: Orchestrator) -> RunKey:
    key, _ = await orchestrator.runs.start(ANN, QUESTION)
    await until(lambda: is_parked(orchestrator, key), seconds=LONG_S)
    return key


async def test_parked_run_has_no_owner_no_task_and_no_time_that_runs_out(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    worker = AskingWorker()
    orchestrator = await start_orchestrator(worker=worker, wall_clock_s=LEASE_S)
    key = await _parked(orchestrator)
    assert await _has_status(orchestrator, key, RunStatus.WAITING)
    entry = await (await KeyValue.open(jetstream, "RUN_ACTIVE")).get(key.name)
    assert entry is not None
    marker = pb.RunMarker.FromString(entry.value or b"")
    assert (marker.parked, marker.begun, marker.owner, marker.subjects) == (True, True, "", ["ann"])
    assert marker.wakes_at.ToDatetime() > marker.waiting_since.ToDatetime() + timedelta(minutes=59)
    assert not orchestrator.runs._executions
    assert not orchestrator.runs._executions._tasks
    assert not orchestrator.runs.ownership.holds(key)
    other = await start_orchestrator(worker=worker)
    for each in (orchestrator, other):
        await each.runs._sweeper.sweep()
    assert worker.visits == 1
    assert await _has_status(orchestrator, key, RunStatus.WAITING)


async def test_parked_run_is_resumed_on_any_orchestrator_and_who_follows_sees_it_go_on(
    start_orchestrator: Start,
) -> None:
    first, second = await start_orchestrator(worker=AskingWorker()), await start_orchestrator(worker=AskingWorker())
    key = await _parked(first)
    follower = asyncio.create_task(collect(first.runs.attach(key, 0)))
    await first.die()
    third = await start_orchestrator(worker=AskingWorker())
    follower.cancel()
    follower = asyncio.create_task(collect(third.runs.attach(key, 0)))
    await _decide(second, key)
    kinds = [type(event.payload) for event in await follower]
    assert kinds == [Approval, RunParked, Approval, Done]
    await until(lambda: _has_status(third, key, RunStatus.COMPLETED), seconds=LONG_S)


async def test_decision_that_comes_while_the_run_is_being_parked_is_not_missed(start_orchestrator: Start) -> None:
    worker = AskingWorker()
    worker.gate.clear()
    first, second = await start_orchestrator(worker=worker), await start_orchestrator(worker=worker)
    key, _ = await first.runs.start(ANN, QUESTION)
    await worker.about_to_wait.wait()
    await _decide(second, key)  # the run has an owner, so that resuming it does nothing
    assert await _has_status(first, key, RunStatus.RUNNING)
    worker.gate.set()
    await until(lambda: _has_status(first, key, RunStatus.COMPLETED), seconds=LONG_S)
    assert len(await logged(first, key)) == 3


async def test_wish_to_cancel_that_comes_while_the_run_is_being_parked_is_not_missed(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(worker=AskingWorker())
    store, asked = orchestrator.runs._store, 0
    is_cancelled = store.is_cancelled

    async def after_the_first_look(key: RunKey) -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            await store.request_cancel(key)  # by a process that finds the run at work
            return False
        return await is_cancelled(key)

    store.is_cancelled = after_the_first_look  # type: ignore[method-assign]
    orchestrator.runs._executions.cancel = lambda _: None  # type: ignore[method-assign] # it has not heard of it
    key, _ = await orchestrator.runs.start(ANN, QUESTION)
    await until(lambda: _has_status(orchestrator, key, RunStatus.CANCELLED), seconds=LONG_S)


async def test_run_is_resumed_once_by_many_who_try(start_orchestrator: Start) -> None:
    worker = AskingWorker()
    orchestrators = [await start_orchestrator(worker=worker) for _ in range(3)]
    key = await _parked(orchestrators[0])
    await _decide(orchestrators[0], key)
    await asyncio.gather(*(each.runs.resume(key) for each in orchestrators for _ in range(3)))
    await until(lambda: _has_status(orchestrators[0], key, RunStatus.COMPLETED), seconds=LONG_S)
    assert worker.visits == 2


async def test_run_that_is_resumed_by_a_stopping_process_goes_on_elsewhere(start_orchestrator: Start) -> None:
    stopping, other = await start_orchestrator(worker=AskingWorker()), await start_orchestrator(worker=AskingWorker())
    key = await _parked(stopping)
    stopping.runs.drain()
    await _decide(stopping, key)
    await until(lambda: _has_status(other, key, RunStatus.COMPLETED), seconds=LONG_S)
    assert not stopping.runs.ownership.holds(key)


async def test_process_that_dies_while_it_parks_a_run_leaves_it_to_be_parked_again(start_orchestrator: Start) -> None:
    first = await start_orchestrator(worker=AskingWorker())

    async def dies(_: RunKey) -> None:
        await asyncio.Event().wait()

    first.runs.ownership.park = dies  # type: ignore[method-assign]
    key, _ = await first.runs.start(ANN, QUESTION)
    await until(lambda: _has_status(first, key, RunStatus.WAITING), seconds=LONG_S)
    await first.die()
    second = await start_orchestrator(worker=AskingWorker())
    await until(lambda: is_parked(second, key), seconds=LONG_S)
    assert await _has_status(second, key, RunStatus.WAITING)
    await _decide(second, key)
    await until(lambda: _has_status(second, key, RunStatus.COMPLETED), seconds=LONG_S)


async def test_parked_run_can_be_cancelled_anywhere(start_orchestrator: Start) -> None:
    first, second = await start_orchestrator(worker=AskingWorker()), await start_orchestrator(worker=AskingWorker())
    key = await _parked(first)
    await second.runs.cancel(key)
    assert status_of(await collect(first.runs.attach(key, 0))) is RunStatus.CANCELLED


async def test_parked_run_that_quotes_a_deleted_document_is_cut_off(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(worker=AskingWorker())
    key = await _parked(orchestrator)
    request = ForgetRequest(Source.run(key.run_id), now() - CUT_OFF_AFTER - timedelta(seconds=1))
    assert await orchestrator.forgetting.forget("acme", request) is None
    assert (await orchestrator.runs.list("acme", 10, "")).runs == []
    assert await orchestrator.runs.ownership._markers.read(key) is None
