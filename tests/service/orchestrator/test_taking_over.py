"""What is taken over and what is not: stopping processes, lost logs, runs that never began, answers that only lack their end."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kit.access.principal import Principal, current_principal
from kit.jetstream import Nats
from services.orchestrator.errors import RunForgotten, RunNotFound
from services.orchestrator.log.events import Answer, Done, RunError, RunStatus, SupportStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from tests.service.orchestrator.conftest import ANN, LEASE_S, QUESTION, Orchestrator, collect
from tests.service.orchestrator.test_ownership import LONG_S
from tests.service.orchestrator.test_runs import GatedModel, _has_status, _open_model, status_of, until

Start = Callable[..., Awaitable[Orchestrator]]


class Worker:
    """Notes which runs it is given and as whom, and ends them."""

    def __init__(self) -> None:
        self.principals: list[Principal] = []
        self.given: list[RunKey] = []

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        self.given.append(record.key)
        self.principals.append(current_principal())
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


async def _abandoned(start_orchestrator: Start) -> RunKey:
    """A run in the middle of its answer, whose process is dead."""
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, _ = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await orchestrator.die()
    return key


async def test_stopping_process_takes_nothing_over(start_orchestrator: Start) -> None:
    stopping = await start_orchestrator()
    stopping.runs.drain()
    key = await _abandoned(start_orchestrator)
    ownership = stopping.runs.ownership
    marker = await ownership._markers.read(key)
    assert marker is not None

    async def is_free() -> bool:
        return not await ownership.is_alive(marker.owner)

    await until(is_free, seconds=LONG_S)
    follower = asyncio.create_task(collect(stopping.runs.attach(key, 0)))
    await stopping.runs._sweeper.sweep()
    assert not ownership.holds(key)
    other = await start_orchestrator()
    assert status_of(await follower) is RunStatus.COMPLETED
    await until(lambda: _has_status(other, key, RunStatus.COMPLETED), seconds=LONG_S)


async def test_run_whose_log_is_lost_is_not_done_again_and_says_so(start_orchestrator: Start, jetstream: Nats) -> None:
    key = await _abandoned(start_orchestrator)
    await jetstream.js.purge_stream("RUNS")
    worker = Worker()
    other = await start_orchestrator(worker=worker)
    await until(lambda: _has_status(other, key, RunStatus.FAILED), seconds=LONG_S)
    assert worker.given == []
    record = await other.runs.get(key)
    assert record.outcome.error is not None
    assert record.outcome.error.reason == "RUN_LOG_LOST"
    events = await collect(other.runs.attach(key, 0))
    assert isinstance(events[0].payload, RunError)
    assert status_of(events) is RunStatus.FAILED


async def test_run_that_loses_its_log_while_it_is_worked_on_ends_as_failed(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    model = GatedModel()
    orchestrator = await start_orchestrator(model)
    key, _ = await orchestrator.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await jetstream.js.purge_stream("RUNS")
    model.gate.set()
    await until(lambda: _has_status(orchestrator, key, RunStatus.FAILED), seconds=LONG_S)


async def test_run_whose_process_died_before_its_first_entry_is_done(start_orchestrator: Start) -> None:
    first = await start_orchestrator(worker=_Never())
    key, _ = await first.runs.start(ANN, QUESTION)
    await first.die()
    other = await start_orchestrator()
    await until(lambda: _has_status(other, key, RunStatus.COMPLETED), seconds=LONG_S)


class _Never:
    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class _Begins:
    """Does nothing until it is given the run for the second time."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        if not self.begun.is_set():
            self.begun.set()
            await asyncio.Event().wait()
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


async def test_client_of_a_run_that_is_lost_before_its_first_event_sees_all_of_it(start_orchestrator: Start) -> None:
    worker = _Begins()
    orchestrator = await start_orchestrator(worker=worker)
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    follower = asyncio.create_task(collect(events))
    await worker.begun.wait()
    orchestrator.runs._executions.lose(key)
    assert status_of(await follower) is RunStatus.COMPLETED


class _Answered:
    """Writes an answer and is then cut short; taken over, it only has to end the run."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        if journal.progress.answer is None:
            await journal.write(Answer("It was built in 1889. [1]", (), SupportStatus.SUPPORTED, "model"))
            self.answered.set()
            await asyncio.Event().wait()
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


async def test_run_whose_answer_is_logged_is_finished_though_its_time_is_over(start_orchestrator: Start) -> None:
    worker = _Answered()
    first = await start_orchestrator(worker=worker)
    key, _ = await first.runs.start(ANN, QUESTION)
    await worker.answered.wait()
    await first.die()
    other = await start_orchestrator(worker=worker, wall_clock_s=0.001)
    await until(lambda: _has_status(other, key, RunStatus.COMPLETED), seconds=LONG_S)


async def test_run_that_runs_out_of_time_behind_its_answer_is_finished(start_orchestrator: Start) -> None:
    orchestrator = await start_orchestrator(worker=_Answered(), wall_clock_s=LEASE_S)
    _, events = await orchestrator.runs.start(ANN, QUESTION)
    assert status_of(await collect(events)) is RunStatus.COMPLETED


async def test_run_is_taken_over_with_the_rights_of_who_asked(start_orchestrator: Start) -> None:
    asker = Principal("acme", "ann", frozenset({"documents:read", "tools:call"}))
    first = await start_orchestrator(worker=_Never())
    await first.runs.start(asker, QUESTION)
    await first.die()
    worker = Worker()
    await start_orchestrator(worker=worker)

    async def is_done() -> bool:
        return bool(worker.principals)

    await until(is_done, seconds=LONG_S)
    assert worker.principals == [asker]
    assert worker.principals[0].scopes == asker.scopes


async def test_damaged_record_keeps_no_other_run_from_being_finished(
    start_orchestrator: Start, jetstream: Nats
) -> None:
    damaged = await _abandoned(start_orchestrator)
    sound = await _abandoned(start_orchestrator)
    await jetstream.js.publish(f"$KV.RUN_RECORDS.{damaged.name}", b"{torn")
    other = await start_orchestrator(_open_model())
    await until(lambda: _has_status(other, sound, RunStatus.COMPLETED), seconds=LONG_S)


async def test_run_that_is_erased_while_nobody_works_on_it_stays_erased(start_orchestrator: Start) -> None:
    key = await _abandoned(start_orchestrator)
    worker = Worker()
    other = await start_orchestrator(worker=worker)
    await other.runs._log.erase(key, deleted=False)
    with pytest.raises((RunForgotten, RunNotFound)):
        await collect(other.runs.attach(key, 0))
    await other.runs._store.delete(key)
    with pytest.raises(RunNotFound):
        await collect(other.runs.attach(key, 0))
    assert worker.given == []
