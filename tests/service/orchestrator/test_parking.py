"""Runs that ask a person, on a real NATS server: parked without an owner, woken by a decision, continued by any orchestrator."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from kit.jetstream import Nats
from services.orchestrator.adapters.event_log import JetStreamEventLog
from services.orchestrator.adapters.run_store import KeyValueRunStore
from services.orchestrator.log.events import Approval, Done, EffectClass, RunStarted, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.steps.approvals import ApprovalRequest, Approvals
from services.orchestrator.steps.run import Run
from tests.service.orchestrator.conftest import ANN, LEASE_S, QUESTION, Orchestrator, collect
from tests.service.orchestrator.test_runs import _has_status, until
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer

Start = Callable[..., Awaitable[Orchestrator]]


class Pays:
    """A worker that pays when it may."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        run = await Run.begin(journal, RunStarted(record.request.mode, record.request.question))
        call = Transfer(self.bank, EffectClass.ONCE)
        expires_at = datetime.now(UTC) + timedelta(hours=1)
        decision = await run.ask("pay/approval", ApprovalRequest(call.name, call.arguments, expires_at))
        if decision.allowed:
            await run.effect("pay/call", call)
        return await run.end(RunStatus.COMPLETED if decision.allowed else RunStatus.REFUSED)


async def paying(start_orchestrator: Start, bank: Bank) -> Orchestrator:
    orchestrator = await start_orchestrator()
    orchestrator.runs._worker = Pays(bank)
    return orchestrator


async def parked(orchestrator: Orchestrator) -> tuple[RunRecord, Approval]:
    """A run that waits, and what it asks."""
    key, events = await orchestrator.runs.start(ANN, QUESTION)
    asked = [event.payload async for event in events if isinstance(event.payload, Approval)]
    await until(lambda: _has_status(orchestrator, key, RunStatus.WAITING))
    return await orchestrator.runs.get(key), asked[0]


async def decide(jetstream: Nats, record: RunRecord, asked: Approval, *, allowed: bool) -> None:
    """A decision that comes in at a process that works on nothing."""
    store = await KeyValueRunStore.open(jetstream, lease_s=LEASE_S, retention_days=1)
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    approvals = Approvals(log, store.unpark, lambda: datetime.now(UTC))
    await approvals.decide(record, asked.approval_id, asked.arguments_hash, "ann", allowed=allowed)


async def test_decision_resumes_the_run_on_another_orchestrator(start_orchestrator: Start, jetstream: Nats) -> None:
    bank = Bank()
    first = await paying(start_orchestrator, bank)
    record, asked = await parked(first)
    await first.stop()
    second = await paying(start_orchestrator, bank)
    assert bank.made == {}
    await decide(jetstream, record, asked, allowed=True)
    events = await collect(second.runs.attach(record.key, 0))
    assert events[-1].payload == Done(RunStatus.COMPLETED)
    assert bank.made == {f"{record.key.run_id}/pay/call": 1}
    await until(lambda: _has_status(second, record.key, RunStatus.COMPLETED))


async def test_parked_run_holds_nothing_and_is_taken_over_by_nobody(start_orchestrator: Start, jetstream: Nats) -> None:
    orchestrator = await paying(start_orchestrator, Bank())
    record, _ = await parked(orchestrator)
    await until(lambda: _owns_nothing(orchestrator, record.key))
    await orchestrator.runs._take_over(record.key)
    log = await JetStreamEventLog.open(jetstream, retention_days=1)
    events, _ = await log.read(record.key)
    assert [type(event.payload).__name__ for event in events] == ["RunStarted", "Approval"]


async def test_parked_run_can_be_cancelled(start_orchestrator: Start) -> None:
    bank = Bank()
    orchestrator = await paying(start_orchestrator, bank)
    record, _ = await parked(orchestrator)
    await orchestrator.runs.cancel(record.key)
    events = await collect(orchestrator.runs.attach(record.key, 0))
    assert events[-1].payload == Done(RunStatus.CANCELLED)
    assert bank.made == {}


async def _owns_nothing(orchestrator: Orchestrator, key: RunKey) -> bool:
    if key in orchestrator.runs._executions or not await orchestrator.runs._store.acquire_lease(key):
        return False
    await orchestrator.runs._store.release_lease(key)
    return True
