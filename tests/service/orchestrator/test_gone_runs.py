"""Runs that were deleted, have expired, or lost their log: what each call says of them, also to who was following."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from kit.access.principal import use_principal
from kit.errors import GroundworkError
from kit.jetstream import KeyValue, Nats
from kit.stores.forgetting import ForgetRequest, Source
from services.orchestrator.errors import RunExpired, RunForgotten, RunNotFound
from services.orchestrator.log.events import RunError, RunStatus
from services.orchestrator.models import RunKey
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, now
from tests.service.orchestrator.test_ownership import LONG_S
from tests.service.orchestrator.test_records import ended
from tests.service.orchestrator.test_runs import GatedModel, _has_status, status_of, until

Start = Callable[..., Awaitable[Orchestrator]]
Undo = Callable[[Orchestrator, Nats, RunKey], Awaitable[None]]


async def _delete(orchestrator: Orchestrator, _: Nats, key: RunKey) -> None:
    with use_principal(ANN):
        await orchestrator.deletion.delete(key)


async def _forget(orchestrator: Orchestrator, _: Nats, key: RunKey) -> None:
    request = ForgetRequest(Source.document("d1"), orchestrator.forgetting._now())
    assert await orchestrator.forgetting.forget("acme", request) is None


async def _expire(_: Orchestrator, jetstream: Nats, key: RunKey) -> None:
    """Record and events are past their time."""
    await jetstream.js.purge_stream("KV_RUN_RECORDS")
    await jetstream.js.purge_stream("RUNS")


async def _purge(_: Orchestrator, jetstream: Nats, key: RunKey) -> None:
    """The events alone are gone: they expire a little before the record, or an operator removed them."""
    await jetstream.js.purge_stream("RUNS")


@dataclass(frozen=True)
class Case:
    name: str
    undo: Undo
    attach: type[GroundworkError]
    is_known: bool


CASES = [
    Case("deleted", _delete, RunNotFound, is_known=False),
    Case("forgotten", _forget, RunForgotten, is_known=True),
    Case("expired", _expire, RunNotFound, is_known=False),
    Case("purged", _purge, RunExpired, is_known=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_what_each_call_says_of_a_run_that_is_gone(
    start_orchestrator: Start, jetstream: Nats, case: Case
) -> None:
    orchestrator, other = await start_orchestrator(), await start_orchestrator()
    key = await ended(orchestrator)
    await case.undo(orchestrator, jetstream, key)
    for runs in (orchestrator.runs, other.runs):
        for after_seq in (0, 3):
            with pytest.raises(case.attach):
                await collect(runs.attach(key, after_seq))
        listed = [run.key for run in (await runs.list("acme", 10, "")).runs]
        if case.is_known:
            assert (await runs.visible(ANN, key)).status is RunStatus.COMPLETED
            assert (await runs.cancel(key)).status is RunStatus.COMPLETED
            assert listed == [key]
        else:
            with pytest.raises(RunNotFound):
                await runs.visible(ANN, key)
            with pytest.raises(RunNotFound):
                await runs.cancel(key)
            assert listed == []
        assert await runs.may_delete(ANN, key)
    await case.undo(orchestrator, jetstream, key)


async def test_purged_run_still_has_its_answer(start_orchestrator: Start, jetstream: Nats) -> None:
    orchestrator = await start_orchestrator()
    key = await ended(orchestrator)
    await _purge(orchestrator, jetstream, key)
    answer = (await orchestrator.runs.get(key)).outcome.answer
    assert answer is not None
    assert "1889" in answer.text


async def _followed(start_orchestrator: Start) -> tuple[Orchestrator, RunKey, "asyncio.Task[list[object]]", GatedModel]:
    """A run in the middle of its answer that another orchestrator follows."""
    model = GatedModel()
    worker, follower = await start_orchestrator(model), await start_orchestrator()
    key, _ = await worker.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    begun = asyncio.Event()

    async def follow() -> list[object]:
        seen: list[object] = []
        async for event in follower.runs.attach(key, 0):
            seen.append(event)
            begun.set()
        return seen

    task = asyncio.create_task(follow())
    await begun.wait()
    return worker, key, task, model


async def test_follower_of_a_run_that_is_deleted_sees_it_cancelled(start_orchestrator: Start) -> None:
    worker, key, follower, _ = await _followed(start_orchestrator)
    with use_principal(ANN):
        await worker.deletion.delete(key)
    async with asyncio.timeout(LONG_S):
        assert status_of(await follower) is RunStatus.CANCELLED  # type: ignore[arg-type]


async def test_follower_of_a_run_that_is_cut_off_by_its_deletion_is_told_that_it_is_gone(
    start_orchestrator: Start,
) -> None:
    worker, key, follower, model = await _followed(start_orchestrator)
    worker.runs._executions.cancel = lambda _: None  # type: ignore[method-assign] # it hangs
    request = ForgetRequest(Source.run(key.run_id), now() - CUT_OFF_AFTER)
    assert await worker.forgetting.forget("acme", request) is None
    async with asyncio.timeout(LONG_S):
        with pytest.raises(RunNotFound):
            await follower
    model.gate.set()

    async def is_let_go() -> bool:
        return not worker.runs.ownership.holds(key)

    await until(is_let_go, seconds=LONG_S)
    assert (await worker.runs.list("acme", 10, "")).runs == []


async def test_follower_of_a_run_that_loses_its_log_sees_an_end(start_orchestrator: Start, jetstream: Nats) -> None:
    worker, key, follower, model = await _followed(start_orchestrator)
    await jetstream.js.purge_stream("RUNS")
    model.gate.set()
    await until(lambda: _has_status(worker, key, RunStatus.FAILED), seconds=LONG_S)
    async with asyncio.timeout(LONG_S):
        await follower
    error = (await collect(worker.runs.attach(key, 0)))[0]
    assert isinstance(error.payload, RunError)
    assert error.payload.reason == "RUN_LOG_LOST"


async def test_marker_of_a_run_that_is_no_more_is_cleared_away(start_orchestrator: Start, jetstream: Nats) -> None:
    orchestrator = await start_orchestrator()
    active = await KeyValue.open(jetstream, "RUN_ACTIVE")
    key = RunKey("acme", "0" * 32)
    await active.put(key.name, b"\x0a\x04dead")

    async def is_gone() -> bool:
        return await active.get(key.name) is None

    await until(is_gone, seconds=LONG_S)
    assert not orchestrator.runs.ownership.holds(key)
