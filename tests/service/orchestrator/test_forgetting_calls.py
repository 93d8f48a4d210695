"""Runs that go on from another with what its functions returned hold a copy of its words and calls: what is forgotten of the one is
forgotten of the others, on a real NATS server."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from kit.access.principal import Principal, use_principal
from kit.jetstream import Nats
from kit.stores.forgetting import Source
from services.orchestrator.errors import RunNotFound
from services.orchestrator.log.events import Answer, Done, FunctionCall, RunMode, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Function, HistoryMessage, RunKey, RunRecord, RunRequest
from services.orchestrator.runs.forgetting import RECHECK_S
from tests.service.orchestrator.conftest import ANN, Orchestrator, collect
from tests.service.orchestrator.test_forgetting import TOWER, ended, forget, is_over, stored

Start = Callable[..., Awaitable[Orchestrator]]
ASKED = RunRequest(RunMode.GROUNDED, "How old is it?", ("default",), functions=(Function("age", "Tells it.", "{}"),))


class CallingWorker:
    """Calls a function in each run. Only the first tells what a document says."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        await self.gate.wait()
        before = sum(len(each.calls) for each in (*record.request.history, *record.request.called))
        text, arguments = ("Built in 1889.", '{"year": 1889}') if before == 0 else ("Let me see.", "{}")
        call = FunctionCall(f"c{before + 1}", "age", arguments)
        await journal.write(Answer(text, (), None, "model", function_calls=(call,)))
        await journal.write(Done(RunStatus.COMPLETED))
        return RunStatus.COMPLETED


def returned(previous: RunKey, call_id: str, question: str = "") -> RunRequest:
    """What the function returned, after the previous run."""
    result = HistoryMessage("tool", "Old.", call_id=call_id)
    return replace(ASKED, question=question, called=(result,), previous_run_id=previous.run_id)


@pytest.fixture
def worker() -> CallingWorker:
    return CallingWorker()


@pytest.fixture
async def orchestrator(start_orchestrator: Start, worker: CallingWorker) -> Orchestrator:
    return await start_orchestrator(worker=worker)


async def test_deleted_run_is_gone_from_those_that_went_on_from_it(orchestrator: Orchestrator, jetstream: Nats) -> None:
    first = await ended(orchestrator, ASKED)
    second = await ended(orchestrator, returned(first, "c1"))
    third = await ended(orchestrator, returned(second, "c2"))
    asks_more = await ended(orchestrator, returned(second, "c2", "And now?"))
    assert "1889" in repr((await orchestrator.runs.get(third)).request.called)
    assert "1889" in repr((await orchestrator.runs.get(asks_more)).request.history)
    with use_principal(ANN):
        await orchestrator.deletion.delete(first)
    assert "1889" not in await stored(jetstream)
    for key, question in ((second, ASKED.question), (third, ASKED.question), (asks_more, "And now?")):
        record = await orchestrator.runs.get(key)
        assert (record.request.question, record.request.called, record.request.history) == (question, (), ())
        assert record.outcome.answer is not None
        assert record.forgotten_at is None


async def test_run_that_asked_by_itself_keeps_what_was_said_before(orchestrator: Orchestrator) -> None:
    first = await ended(orchestrator, ASKED)
    said = (HistoryMessage("user", "Hello."),)
    second = await ended(orchestrator, replace(ASKED, history=said, previous_run_id=first.run_id))
    with use_principal(ANN):
        await orchestrator.deletion.delete(first)
    assert (await orchestrator.runs.get(second)).request.history == said


async def test_deleted_document_is_erased_from_runs_that_went_on(orchestrator: Orchestrator, jetstream: Nats) -> None:
    first = await ended(orchestrator, ASKED)
    await orchestrator.runs._sources.depend((await orchestrator.runs.get(first)).dependent, [TOWER])
    second = await ended(orchestrator, returned(first, "c1"))
    third = await ended(orchestrator, returned(second, "c2", "And now?"))
    assert await forget(orchestrator, TOWER) is None
    assert "1889" not in await stored(jetstream)
    for key in (first, second, third):
        record = await orchestrator.runs.get(key)
        assert record.forgotten_at is not None
        assert (record.request.called, record.request.history) == ((), ())


async def test_run_that_still_goes_on_may_end(
    orchestrator: Orchestrator, worker: CallingWorker, jetstream: Nats
) -> None:
    first = await ended(orchestrator, ASKED)
    worker.gate.clear()
    second, events = await orchestrator.runs.start(ANN, returned(first, "c1"))
    assert await forget(orchestrator, Source.run(first.run_id)) == RECHECK_S
    worker.gate.set()
    assert (await collect(events))[-1].payload == Done(RunStatus.COMPLETED)
    await is_over(orchestrator, second)
    assert await forget(orchestrator, Source.run(first.run_id)) is None
    assert "1889" not in await stored(jetstream)


async def test_nothing_goes_on_from_a_run_that_is_being_forgotten(orchestrator: Orchestrator) -> None:
    first = await ended(orchestrator, ASKED)
    await orchestrator.runs._sources.mark_forgotten("acme", Source.run(first.run_id))
    with pytest.raises(RunNotFound):
        await orchestrator.runs.start(ANN, returned(first, "c1"))


async def test_run_that_is_deleted_meanwhile_is_not_found(orchestrator: Orchestrator, jetstream: Nats) -> None:
    first = await ended(orchestrator, ASKED)
    follow = orchestrator.runs.as_followed

    async def overtaken(principal: Principal, key: RunKey) -> RunRecord:
        found = await follow(principal, key)
        with use_principal(ANN):
            await orchestrator.deletion.delete(first)
        return found

    orchestrator.runs.as_followed = overtaken  # type: ignore[method-assign]
    with pytest.raises(RunNotFound):
        await orchestrator.runs.start(ANN, returned(first, "c1"))
    assert "1889" not in await stored(jetstream)
