"""Decisions about runs that wait, on a real NATS server: no decision is lost or taken twice, whoever dies, and any orchestrator
goes on."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from kit.access.principal import Principal
from kit.errors import GroundworkError
from services.orchestrator.errors import ApprovalClosed, ApprovalNotFound, NotYoursToDecide
from services.orchestrator.log.events import (
    Approval,
    ApprovalDecision,
    EffectClass,
    RunEvent,
    RunStarted,
    RunStatus,
    Thinking,
    ToolResult,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import RESUMED
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.runs import approvals
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.run import Run
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect
from tests.service.orchestrator.paying import BOB, LONG_S, OPERATOR, Pays, Start, decide, is_listed, listed, parked
from tests.service.orchestrator.test_runs import _has_status, status_of, until
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer


async def _ends(at: Orchestrator, key: RunKey) -> RunStatus:
    return status_of(await collect(at.runs.attach(key, 0)))


async def test_decision_is_acted_on_when_its_orchestrator_dies_behind_it(
    start_orchestrator: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "ACTED_ON_WITHIN", timedelta(seconds=0.5))
    bank = Bank()
    first = await start_orchestrator(worker=Pays(bank))
    key, asked = await parked(first)
    is_written = asyncio.Event()

    async def dies(_: RunKey) -> None:
        is_written.set()
        await asyncio.Event().wait()

    first.runs.resume = dies  # type: ignore[method-assign]
    deciding = asyncio.create_task(decide(first, asked, allowed=True))
    await is_written.wait()
    deciding.cancel()
    await first.die()
    second = await start_orchestrator(worker=Pays(bank))
    assert await _ends(second, key) is RunStatus.COMPLETED
    assert bank.made == {f"{key.run_id}/pay3/call": 1}


async def test_orchestrator_that_dies_before_the_decision_is_written_leaves_the_run_waiting(
    start_orchestrator: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "ACTED_ON_WITHIN", timedelta(seconds=0.1))
    first = await start_orchestrator(worker=Pays(Bank()))
    key, asked = await parked(first)

    async def dies(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(approvals, "append_decision", dies)
    with pytest.raises(asyncio.CancelledError):
        await decide(first, asked, allowed=True)
    monkeypatch.undo()
    async for event in first.runs._log.follow(key, 0, live=True):
        if isinstance(event.payload, Thinking) and event.payload.phase == RESUMED:
            break  # somebody looked whether there is a decision
    await until(lambda: is_listed(first, key), seconds=LONG_S)
    assert (await decide(first, asked, allowed=False)).approval.decision is ApprovalDecision.DENIED
    assert await _ends(first, key) is RunStatus.REFUSED


async def test_decision_that_finds_no_room_is_acted_on_by_the_next_orchestrator(start_orchestrator: Start) -> None:
    bank = Bank()
    full = await start_orchestrator(worker=Pays(bank), max_concurrent_runs=1)
    key, asked = await parked(full)
    full.runs._starting = 1  # as many as it may have
    await decide(full, asked, allowed=True)
    assert await listed(full) == []
    assert await _has_status(full, key, RunStatus.RUNNING)
    assert bank.made == {}
    await full.stop()
    next_ = await start_orchestrator(worker=Pays(bank))
    assert await _ends(next_, key) is RunStatus.COMPLETED


async def test_of_two_who_decide_at_once_one_decides(start_orchestrator: Start) -> None:
    bank = Bank()
    worker = Pays(bank, may_decide=("ann", "bob"))
    one, other = await start_orchestrator(worker=worker), await start_orchestrator(worker=worker)
    key, asked = await parked(one)
    decided = await asyncio.gather(
        decide(one, asked, allowed=True), decide(other, asked, allowed=False, by=BOB), return_exceptions=True
    )
    (closed,) = [each for each in decided if isinstance(each, ApprovalClosed)]
    (won,) = [each for each in decided if not isinstance(each, BaseException)]
    assert closed.metadata["decision"] == won.approval.decision.value
    allowed = won.approval.decision is ApprovalDecision.ALLOWED
    assert await _ends(other, key) is (RunStatus.COMPLETED if allowed else RunStatus.REFUSED)
    assert len(bank.made) == allowed
    assert sum(isinstance(event.payload, Approval) for event in await collect(one.runs.attach(key, 0))) == 2


async def test_questions_of_one_run_are_decided_one_by_one(start_orchestrator: Start) -> None:
    bank = Bank()
    orchestrator = await start_orchestrator(worker=Pays(bank, amounts=(1, 2, 3)))
    key, _ = await parked(orchestrator)
    questions = {each.approval.arguments["amount"]: each.approval for each in await listed(orchestrator)}  # type: ignore[index]
    assert sorted(questions) == [1, 2, 3]
    await decide(orchestrator, questions[1], allowed=True)
    await until(lambda: _waits_for(orchestrator, 2), seconds=LONG_S)
    assert bank.made == {f"{key.run_id}/pay1/call": 1}, "what is allowed does not wait for the others"
    for _ in range(40):  # whoever repeats a decision wakes nobody
        await decide(orchestrator, questions[1], allowed=True)
    await decide(orchestrator, questions[2], allowed=False)
    await until(lambda: _waits_for(orchestrator, 1), seconds=LONG_S)
    await decide(orchestrator, questions[3], allowed=True)
    assert await _ends(orchestrator, key) is RunStatus.COMPLETED
    assert bank.made == {f"{key.run_id}/pay1/call": 1, f"{key.run_id}/pay3/call": 1}


async def _waits_for(orchestrator: Orchestrator, number: int) -> bool:
    return len(await listed(orchestrator)) == number


@pytest.mark.parametrize(
    ("by", "changes", "expected"),
    [
        (BOB, {}, ApprovalNotFound),
        (Principal("other", "ann"), {}, ApprovalNotFound),
        (Principal("other", "eve", frozenset({"operator"})), {}, ApprovalNotFound),
        (OPERATOR, {}, NotYoursToDecide),
        (ANN, {"arguments_hash": "0" * 64}, ApprovalNotFound),
        (ANN, {"approval_id": f"{'0' * 32}-{'0' * 12}"}, ApprovalNotFound),
        (ANN, {"approval_id": "pay3/approval"}, ApprovalNotFound),
        (ANN, {"approval_id": "*"}, ApprovalNotFound),
    ],
    ids=["foreign subject", "other tenant", "other operator", "operator", "hash", "unknown", "step", "wildcard"],
)
async def test_who_may_not_decide_or_names_what_was_not_asked_is_refused(
    start_orchestrator: Start, by: Principal, changes: dict[str, str], expected: type[GroundworkError]
) -> None:
    bank = Bank()
    orchestrator = await start_orchestrator(worker=Pays(bank))
    key, asked = await parked(orchestrator)
    names = {"approval_id": asked.approval_id, "arguments_hash": asked.arguments_hash, **changes}
    with pytest.raises(expected):
        await orchestrator.runs.approvals.resolve(by, **names, allowed=True)
    assert await is_listed(orchestrator, key)
    assert bank.made == {}


async def test_cancelled_run_can_no_longer_be_decided(start_orchestrator: Start) -> None:
    bank = Bank()
    orchestrator = await start_orchestrator(worker=Pays(bank))
    key, asked = await parked(orchestrator)
    await orchestrator.runs.cancel(key)
    with pytest.raises(ApprovalClosed):
        await decide(orchestrator, asked, allowed=True)
    assert await _ends(orchestrator, key) is RunStatus.CANCELLED
    with pytest.raises(ApprovalClosed, match="ended"):
        await decide(orchestrator, asked, allowed=True)
    assert await listed(orchestrator) == []
    assert bank.made == {}


class PaysBesideAnother(Pays):
    """Pays what it may beside a call that needs nobody's leave, at a bank that could not tell later whether it was made. That call
    takes until `gate` is set."""

    def __init__(self, bank: Bank) -> None:
        super().__init__(bank)
        self.gate, self.is_calling = asyncio.Event(), asyncio.Event()

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        run = await Run.begin(journal, RunStarted(record.request.mode, record.request.question))
        await run.all(self._pay(run, 3), run.effect("other", SlowTransfer(self)))
        return await run.end(RunStatus.COMPLETED)


class SlowTransfer(Transfer):
    def __init__(self, worker: PaysBesideAnother) -> None:
        super().__init__(worker.bank, EffectClass.ONCE)
        self.worker = worker

    async def run(self, call_id: str) -> ToolOutcome:
        self.worker.is_calling.set()
        await self.worker.gate.wait()
        return await super().run(call_id)


async def test_decision_that_comes_while_the_run_is_at_work_disturbs_no_call(start_orchestrator: Start) -> None:
    worker = PaysBesideAnother(Bank(forgetful=True))
    orchestrator, other = await start_orchestrator(worker=worker), await start_orchestrator(worker=worker)
    key, live = await orchestrator.runs.start(ANN, QUESTION)
    asked = [event.payload async for event in _first(live, Approval)]
    await worker.is_calling.wait()
    await decide(other, asked[0], allowed=True)
    worker.gate.set()
    events = await collect(other.runs.attach(key, 0))
    results = [event.payload for event in events if isinstance(event.payload, ToolResult)]
    assert [(each.ok, each.error_reason) for each in results] == [(True, "")] * 2
    assert worker.bank.made == {f"{key.run_id}/other": 1, f"{key.run_id}/pay3/call": 1}
    assert status_of(events) is RunStatus.COMPLETED


async def _first(events: AsyncIterator[RunEvent], kind: type) -> AsyncIterator[RunEvent]:
    async for event in events:
        if isinstance(event.payload, kind):
            yield event
            return
