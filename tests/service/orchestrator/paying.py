"""Runs that pay when a person allows it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from kit.access.principal import Principal
from services.orchestrator.log.events import Approval, EffectClass, RunStarted, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunRecord
from services.orchestrator.runs.approvals import PendingApproval
from services.orchestrator.steps.approvals import ApprovalRequest
from services.orchestrator.steps.run import Run
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, now
from tests.service.orchestrator.test_runs import until
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer

Start = Callable[..., Awaitable[Orchestrator]]
LONG_S = 60.0
BOB = Principal("acme", "bob")
OPERATOR = Principal("acme", "olga", frozenset({"operator"}))


class Pays:
    """A worker that asks whether it may pay each of the amounts, all at once, and pays those that it may."""

    def __init__(
        self, bank: Bank, *, life_s: float = 3600.0, amounts: Sequence[int] = (3,), may_decide: Sequence[str] = ()
    ) -> None:
        self.bank = bank
        self.life_s = life_s
        self.amounts = amounts
        self.may_decide = may_decide

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        run = await Run.begin(journal, RunStarted(record.request.mode, record.request.question))
        paid = await run.all(*(self._pay(run, amount) for amount in self.amounts))
        return await run.end(RunStatus.COMPLETED if any(paid) else RunStatus.REFUSED)

    async def _pay(self, run: Run, amount: int) -> bool:
        call = Transfer(self.bank, EffectClass.ONCE, {"amount": amount})
        expires_at = now() + timedelta(seconds=self.life_s)
        request = ApprovalRequest(call.name, call.arguments, expires_at, self.may_decide)
        decision = await run.ask(f"pay{amount}/approval", request)
        if decision.allowed:
            await run.effect(f"pay{amount}/call", call)
        return decision.allowed


async def parked(orchestrator: Orchestrator, principal: Principal = ANN) -> tuple[RunKey, Approval]:
    """A run that waits, and what it asks."""
    key, _ = await orchestrator.runs.start(principal, QUESTION)
    await until(lambda: is_parked(orchestrator, key), seconds=LONG_S)
    return key, (await _questions(orchestrator, key))[0].approval


async def is_parked(orchestrator: Orchestrator, key: RunKey) -> bool:
    marker = await orchestrator.runs.ownership._markers.read(key)
    return marker is not None and marker.parked


async def listed(orchestrator: Orchestrator, principal: Principal = ANN) -> Sequence[PendingApproval]:
    return (await orchestrator.runs.approvals.list(principal, 0, "")).questions


async def is_listed(orchestrator: Orchestrator, key: RunKey) -> bool:
    return bool(await _questions(orchestrator, key))


async def _questions(orchestrator: Orchestrator, key: RunKey) -> Sequence[PendingApproval]:
    operator = Principal(key.tenant_id, OPERATOR.subject, OPERATOR.scopes)
    return [each for each in await listed(orchestrator, operator) if each.run_id == key.run_id]


async def decide(at: Orchestrator, asked: Approval, *, allowed: bool, by: Principal = ANN) -> PendingApproval:
    return await at.runs.approvals.resolve(by, asked.approval_id, asked.arguments_hash, allowed=allowed)
