"""A run that asks a person: parked without a worker, continued by any worker once there is a decision, or there can be none."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import pytest

from kit.access.principal import Principal
from kit.errors import GroundworkError, Unavailable
from services.orchestrator.errors import (
    ApprovalClosed,
    ApprovalNotFound,
    NotYoursToDecide,
    Parked,
    ReadOnlyRun,
    StepDiverged,
)
from services.orchestrator.log.events import (
    Approval,
    ApprovalDecision,
    Done,
    EffectClass,
    RunEvent,
    RunMode,
    RunParked,
    RunStarted,
    RunStatus,
    ToolCall,
    ToolResult,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import approval_id
from services.orchestrator.models import RunKey, RunRecord, RunRequest, Wait
from services.orchestrator.ports import RunStore
from services.orchestrator.runs.approvals import Approvals
from services.orchestrator.runs.ownership import Ownership
from services.orchestrator.runs.parking import Parking
from services.orchestrator.steps.approvals import ApprovalRequest
from services.orchestrator.steps.calls import arguments_hash
from services.orchestrator.steps.run import Run
from tests.unit.orchestrator.cutting import AT, KEY, Cut, Died, DyingLog, cuts, told
from tests.unit.orchestrator.fakes import MemoryLog
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer

RECORD = RunRecord(KEY, "ann", RunRequest(RunMode.CHAT, "Pay them."), RunStatus.WAITING, AT)
HASH = arguments_hash({"amount": 3})
ASK = "pay/approval"


class WakeUps:
    """What parking and decisions need of RunStore, Ownership and Runs."""

    def __init__(self) -> None:
        self.resumed: list[RunKey] = []
        self.wakes: list[datetime] = []
        self.cancelled = False
        self.broken = False
        self.status = RunStatus.RUNNING
        self.is_listed = False

    async def get(self, key: RunKey) -> RunRecord | None:
        return RECORD if key == KEY else None

    async def is_cancelled(self, key: RunKey) -> bool:
        return self.cancelled

    async def set_status(self, record: RunRecord) -> None:
        self.status = record.status

    async def note_wait(self, key: RunKey, wait: Wait) -> None:
        self.is_listed = True

    async def park(self, key: RunKey, wait: Wait) -> None:
        """As Ownership does."""

    async def adopt(self, key: RunKey, *, resume: bool) -> None:
        self.resumed.append(key)

    async def wake_by(self, key: RunKey, at: datetime) -> None:
        self.wakes.append(at)

    async def resume(self, key: RunKey) -> None:
        self.resumed.append(key)
        if self.broken:
            raise Unavailable("the store is down")

    async def parked(self, tenant_id: str) -> Mapping[RunKey, Wait]:
        return {}


@dataclass
class Office:
    """A run that pays when it may, the bank, and the person who decides."""

    log: DyingLog = field(default_factory=DyingLog)
    bank: Bank = field(default_factory=Bank)
    store: WakeUps = field(default_factory=WakeUps)
    at: datetime = AT
    amount: int = 3
    may_decide: tuple[str, ...] = ()

    def now(self) -> datetime:
        return self.at

    async def work(self, cut: Cut | None = None) -> list[RunEvent]:
        """A worker, to its end or until it is parked."""
        self.log.cut = cut
        with suppress(Died):
            journal = await Journal.open(KEY, self.log, self.now)
            try:
                await self._pay(journal)
            except Parked as parked:
                await self.park(journal, parked.until)
        self.log.revive()
        return self.log.events.get(KEY, [])

    async def park(self, journal: Journal, until: datetime) -> None:
        parking = Parking(cast("RunStore", self.store), self.log, cast("Ownership", self.store))
        await parking.park(RECORD, journal, until)

    async def _pay(self, journal: Journal) -> None:
        if journal.progress.done is not None:
            return
        run = await Run.begin(journal, RunStarted(RunMode.CHAT, "Pay them."))
        call = Transfer(self.bank, EffectClass.ONCE, {"amount": self.amount})
        expires_at = AT + timedelta(hours=1)
        decision = await run.ask(ASK, ApprovalRequest(call.name, call.arguments, expires_at, self.may_decide))
        if decision.allowed:
            await run.effect("pay/call", call)
        await run.end(RunStatus.COMPLETED if decision.allowed else RunStatus.REFUSED)

    async def decide(self, *, allowed: bool, subject: str = "ann", hash_: str = HASH, step: str = ASK) -> Approval:
        approvals = Approvals(cast("RunStore", self.store), self.log, self.store, self.now)
        asked = approval_id(KEY.run_id, step)
        decided = await approvals.resolve(Principal(KEY.tenant_id, subject), asked, hash_, allowed=allowed)
        return decided.approval

    def last(self) -> object:
        return self.log.events[KEY][-1].payload


async def test_run_waits_until_somebody_allows_it_and_then_acts_once() -> None:
    office = Office()
    await office.work()
    asked = approval_id(KEY.run_id, ASK)
    assert office.last() == RunParked("approval", (asked,), AT + timedelta(hours=1))
    assert office.bank.made == {}
    decided = await office.decide(allowed=True)
    assert (decided.decision, decided.decided_by) == (ApprovalDecision.ALLOWED, "ann")
    assert office.store.resumed == [KEY]
    office.at += timedelta(days=2)  # the decision came in time; when it is found does not matter
    await office.work()
    assert office.last() == Done(RunStatus.COMPLETED)
    assert office.bank.made == {f"{KEY.run_id}/pay/call": 1}


async def test_run_that_nobody_decided_on_stays_parked_however_often_it_is_looked_at() -> None:
    office = Office()
    for _ in range(3):
        await office.work()
    asked = [event for event in office.log.events[KEY] if isinstance(event.payload, Approval)]
    assert len(asked) == 1
    assert office.bank.made == {}


async def test_denied_and_expired_calls_are_not_made() -> None:
    denied, expired = Office(), Office()
    await denied.work()
    await denied.decide(allowed=False)
    await denied.work()
    await expired.work()
    expired.at += timedelta(hours=1)
    with pytest.raises(ApprovalClosed, match="expired"):
        await expired.decide(allowed=True)
    await expired.work()
    for office in (denied, expired):
        assert office.last() == Done(RunStatus.REFUSED)
        assert office.bank.made == {}
    decisions = [event.payload.decision for event in expired.log.events[KEY] if isinstance(event.payload, Approval)]
    assert decisions == [ApprovalDecision.PENDING, ApprovalDecision.EXPIRED]


@pytest.mark.parametrize("forgetful", [False, True], ids=["bank that knows", "bank that forgets"])
async def test_run_that_asks_ends_the_same_wherever_its_workers_die(forgetful: bool) -> None:
    whole = Office()
    await whole.work()
    await whole.decide(allowed=True)
    events = list(await whole.work())
    for cut in cuts(events):
        office = Office(bank=Bank(forgetful=forgetful))
        await office.work(cut)
        await office.work()
        assert isinstance(office.last(), RunParked), cut
        await office.decide(allowed=True)
        await office.work(cut)
        ended = await office.work()
        assert sum(office.bank.made.values()) <= 1, cut
        results = [event.payload for event in ended if isinstance(event.payload, ToolResult)]
        in_doubt = any(each.error_reason == "IN_DOUBT" for each in results)
        assert in_doubt or told(ended) == told(events), cut
        assert in_doubt <= forgetful, cut
        assert len(results) == len([event for event in ended if isinstance(event.payload, ToolCall)]) == 1, cut
        assert ended[-1].payload == Done(RunStatus.COMPLETED), cut


async def test_client_that_learns_that_the_run_waits_finds_it_waiting_and_listed() -> None:
    office = Office()
    append, seen = office.log.append, []

    async def noted(key: RunKey, event: RunEvent, last_position: int) -> int:
        seen.append((type(event.payload), office.store.status, office.store.is_listed))
        return await append(key, event, last_position)

    office.log.append = noted  # type: ignore[method-assign]
    await office.work()
    assert seen[-1] == (RunParked, RunStatus.WAITING, True)


async def test_run_that_is_decided_about_while_it_is_parked_goes_on_without_saying_that_it_waits() -> None:
    office = Office()
    append = office.log.append

    async def late(key: RunKey, event: RunEvent, last_position: int) -> int:
        if isinstance(event.payload, RunParked):
            office.log.append = append  # type: ignore[method-assign]
            await office.decide(allowed=True)
        return await append(key, event, last_position)

    office.log.append = late  # type: ignore[method-assign]
    events = list(await office.work())
    assert not any(isinstance(each.payload, RunParked) for each in events)
    assert office.store.resumed == [KEY, KEY], "by the one who decided, and by the one who parked it"
    assert list(await office.work())[-1].payload == Done(RunStatus.COMPLETED)


async def test_run_whose_log_cannot_say_that_it_waits_is_not_parked() -> None:
    office = Office()
    append = office.log.append

    async def down(key: RunKey, event: RunEvent, last_position: int) -> int:
        office.log.down = isinstance(event.payload, RunParked)
        return await append(key, event, last_position)

    office.log.append = down  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await office.work()


async def test_decision_may_be_repeated_but_not_changed() -> None:
    office = Office()
    await office.work()
    for _ in range(2):
        await office.decide(allowed=True)
    assert len(office.store.resumed) == 2, "whoever died before waking the run is helped by asking again"
    with pytest.raises(ApprovalClosed, match="allowed"):
        await office.decide(allowed=False)
    assert sum(isinstance(event.payload, Approval) for event in office.log.events[KEY]) == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"subject": "bob"}, ApprovalNotFound),
        ({"hash_": arguments_hash({"amount": 4})}, ApprovalNotFound),
        ({"step": "pay/another"}, ApprovalNotFound),
    ],
    ids=["not his to see", "other arguments", "never asked"],
)
async def test_decision_is_about_one_call_and_by_those_who_may(
    changes: dict[str, str], expected: type[GroundworkError]
) -> None:
    office = Office()
    await office.work()
    with pytest.raises(expected):
        await office.decide(allowed=True, **changes)  # type: ignore[arg-type]
    assert office.store.resumed == []


async def test_named_people_decide_instead_of_the_asker() -> None:
    office = Office(may_decide=("bob",))
    await office.work()
    with pytest.raises(NotYoursToDecide):
        await office.decide(allowed=True)
    assert (await office.decide(allowed=True, subject="bob")).decided_by == "bob"


async def test_arguments_that_changed_since_they_were_allowed_are_not_used() -> None:
    office = Office()
    await office.work()
    await office.decide(allowed=True)
    office.amount = 4
    with pytest.raises(StepDiverged):
        await office.work()
    assert office.bank.made == {}


async def test_decision_that_cannot_be_written_is_not_taken() -> None:
    office = Office()
    await office.work()
    office.log.down = True
    with pytest.raises(Unavailable):
        await office.decide(allowed=True)
    assert office.store.resumed == []


async def test_decision_looks_again_when_another_one_came_first() -> None:
    office = Office()
    await office.work()
    read = office.log.read

    async def late(key: RunKey) -> object:
        """The log as it was, while another decision is appended behind it."""
        seen = await read(key)
        office.log.read = read  # type: ignore[method-assign]
        await office.decide(allowed=False)
        return seen

    office.log.read = late  # type: ignore[assignment,method-assign]
    with pytest.raises(ApprovalClosed, match="denied"):
        await office.decide(allowed=True)


async def test_run_without_its_log_neither_asks_nor_acts_but_may_look() -> None:
    log, bank = MemoryLog(), Bank()
    log.down = True
    run = await Run.begin(await Journal.open(KEY, log, lambda: AT), RunStarted(RunMode.CHAT, "?"))
    live = run.journal.follow()
    for effect in (EffectClass.ONCE, EffectClass.IDEMPOTENT):
        outcome = await run.effect(f"pay/{effect.value}", Transfer(bank, effect))
        assert (outcome.ok, outcome.error_reason) == (False, "RUN_READ_ONLY")
    assert bank.made == {}
    assert (await run.effect("look", Transfer(bank, EffectClass.NONE))).ok
    with pytest.raises(ReadOnlyRun):
        await run.ask(ASK, ApprovalRequest("transfer", {}, AT + timedelta(hours=1)))
    await run.end(RunStatus.COMPLETED)
    kinds = [type(event.payload).__name__ async for event in live]
    assert kinds[:4] == ["ToolCall", "ToolResult"] * 2
    assert KEY not in log.events


async def test_log_that_is_lost_at_the_intent_stops_the_effect() -> None:
    log, bank = MemoryLog(), Bank()
    run = await Run.begin(await Journal.open(KEY, log, lambda: AT), RunStarted(RunMode.CHAT, "?"))
    log.down = True
    assert (await run.effect("pay", Transfer(bank, EffectClass.ONCE))).error_reason == "RUN_READ_ONLY"
    assert bank.made == {}


async def test_decision_that_was_heeded_wakes_nobody_when_it_is_repeated() -> None:
    office = Office()
    await office.work()
    await office.decide(allowed=True)
    await office.work()
    assert (await office.decide(allowed=True)).decision is ApprovalDecision.ALLOWED
    assert office.store.resumed == [KEY]


async def test_decision_stands_when_the_run_cannot_be_woken() -> None:
    office = Office()
    await office.work()
    office.store.broken = True
    assert (await office.decide(allowed=True)).decision is ApprovalDecision.ALLOWED
    assert office.store.wakes == [AT + timedelta(seconds=10)], "said before, so that somebody finds the run"


async def test_run_that_is_being_cancelled_is_not_decided_about() -> None:
    office = Office()
    await office.work()
    office.store.cancelled = True
    with pytest.raises(ApprovalClosed, match="cancelled"):
        await office.decide(allowed=True)


@pytest.mark.parametrize("days", [-30, 30])
async def test_clock_that_jumps_makes_no_question_stand_for_longer_and_allows_nothing(days: int) -> None:
    office = Office()
    await office.work()
    office.at += timedelta(days=days)
    with pytest.raises(ApprovalClosed, match="expired"):
        await office.decide(allowed=True)
    await office.work()
    assert office.last() == Done(RunStatus.REFUSED)
    assert office.bank.made == {}


async def test_clock_that_is_set_back_a_little_expires_nothing() -> None:
    office = Office()
    await office.work()
    office.at -= timedelta(minutes=30)
    await office.work()
    await office.decide(allowed=True)
    await office.work()
    assert office.last() == Done(RunStatus.COMPLETED)


async def test_run_with_several_questions_waits_for_the_first_to_expire() -> None:
    office = Office()
    run = await Run.begin(await Journal.open(KEY, office.log, office.now), RunStarted(RunMode.CHAT, "?"))
    asks = [
        run.ask(f"call{hours}/approval", ApprovalRequest("transfer", {"n": hours}, AT + timedelta(hours=hours)))
        for hours in (5, 2, 3)
    ]
    with pytest.raises(Parked) as parked:
        await run.all(*asks)
    assert parked.value.until == AT + timedelta(hours=2)
    assert len(run.journal.progress.pending) == 3
