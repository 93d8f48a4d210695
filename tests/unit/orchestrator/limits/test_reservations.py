"""What runs may use: reserved before, bounded while, given back behind."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kit.access.principal import Principal
from kit.errors import Unavailable
from kit.limits.counters import Counter
from kit.limits.errors import LimitReached
from kit.limits.rules import EACH, Limit, Per, Rules, Scope, What, Whose
from services.orchestrator.limits.reservations import Reservations
from services.orchestrator.log.events import Budgets, RunMode, RunStatus, Usage
from services.orchestrator.models import RunKey, RunRecord, RunRequest
from tests.unit.orchestrator.limits.counting import AT, MemoryCounters

EACH_USER = Whose(Scope.SUBJECT, "acme", EACH)
ANN = Whose(Scope.SUBJECT, "acme", "ann")
TOKENS = Counter(ANN, What.TOKENS, "hour-2026-01-31T13")


def run(number: int = 1, **request: object) -> RunRecord:
    asked = replace(RunRequest(RunMode.QA, "How long?", ("default",)), **request)  # type: ignore[arg-type]
    return RunRecord(RunKey("acme", f"{number:032x}"), "ann", asked, RunStatus.RUNNING, AT)


class Desk:
    """Reservations under some rules."""

    def __init__(self, **limits: Limit) -> None:
        self.rules, self.counters = Rules(), MemoryCounters()
        self.now = AT
        self.reservations = Reservations(self.rules, self.counters, Budgets(tokens=200_000), lambda: self.now)
        for whose, limit in limits.items():
            self.rules.set({"ann": ANN, "each": EACH_USER, "all": Whose(Scope.ALL)}[whose], [limit])

    async def used(self) -> list[float]:
        return [each.used for each in await self.reservations.states(Principal("acme", "ann"))]


def tokens(amount: float, per: Per = Per.HOUR) -> Limit:
    return Limit(What.TOKENS, amount, per)


async def test_run_reserves_what_it_may_use_and_gives_back_what_it_did_not() -> None:
    desk = Desk(each=tokens(100_000))
    record = await desk.reservations.reserve(run())
    assert record.request.budgets.tokens == 8_000
    assert await desk.used() == [8_000]
    for _ in range(2):  # whoever ends the run again gives nothing back twice
        await desk.reservations.settle(record, RunStatus.COMPLETED, Usage(prompt_tokens=1_000, completion_tokens=500))
        assert await desk.used() == [1_500]


async def test_last_run_gets_what_is_left_and_the_next_is_told_when_it_is_free_again() -> None:
    desk = Desk(each=tokens(9_000))
    assert (await desk.reservations.reserve(run(1))).request.budgets.tokens == 8_000
    last = await desk.reservations.reserve(run(2))
    assert last.request.budgets.tokens == 1_000
    with pytest.raises(LimitReached, match=r"you may use 9000 tokens an hour.*or sooner") as refused:
        await desk.reservations.reserve(run(3))
    assert refused.value.retry_after_s == 60.0
    told = refused.value.metadata
    assert (told["free_at"], told["free_in_s"]) == ("2026-01-31T14:00:00+00:00", "2400")
    assert desk.counters.sums == {TOKENS: 9_000}
    desk.now = datetime(2026, 1, 31, 14, 0, tzinfo=UTC)
    assert (await desk.reservations.reserve(run(4))).request.budgets.tokens == 8_000


async def test_request_that_was_refused_is_refused_again_under_the_same_run_id() -> None:
    desk = Desk(each=Limit(What.RUNS, 1, Per.DAY))
    await desk.reservations.reserve(run(1))
    for _ in range(3):
        with pytest.raises(LimitReached):
            await desk.reservations.reserve(run(2))
    assert await desk.used() == [1]


async def test_all_limits_hold_and_one_that_refuses_leaves_the_others_as_they_were() -> None:
    desk = Desk(each=tokens(100_000), all=Limit(What.RUNS, 1, Per.DAY))
    await desk.reservations.reserve(run(1))
    before = dict(desk.counters.sums)
    with pytest.raises(LimitReached, match="this installation may use 1 runs a day"):
        await desk.reservations.reserve(run(2))
    assert desk.counters.sums == before


async def test_rule_of_a_user_stands_instead_of_the_one_for_each_and_removing_it_brings_that_back() -> None:
    desk = Desk(each=Limit(What.RUNS, 0, Per.DAY), ann=Limit(What.RUNS, 1, Per.DAY))
    await desk.reservations.reserve(run(1))
    desk.rules.set(ANN, [])
    with pytest.raises(LimitReached):
        await desk.reservations.reserve(run(2))


@pytest.mark.parametrize(
    ("status", "used"), [(RunStatus.FAILED, 0), (RunStatus.CANCELLED, 1), (RunStatus.COMPLETED, 1)]
)
async def test_failed_run_is_not_counted(status: RunStatus, used: int) -> None:
    desk = Desk(each=Limit(What.RUNS, 5, Per.MONTH))
    await desk.reservations.settle(await desk.reservations.reserve(run()), status, Usage())
    assert await desk.used() == [used]


async def test_only_research_counts_as_research_and_may_reserve_more() -> None:
    desk = Desk(ann=tokens(100_000), all=Limit(What.RESEARCH_RUNS, 1, Per.DAY))
    asked = run(1, mode=RunMode.AGENT)
    assert (await desk.reservations.reserve(asked)).request.budgets.tokens == 64_000
    await desk.reservations.reserve(run(2))
    with pytest.raises(LimitReached, match="research runs"):
        await desk.reservations.reserve(run(3, mode=RunMode.AGENT))


async def test_dollars_are_counted_in_millionths_and_bound_the_run() -> None:
    desk = Desk(each=Limit(What.DOLLARS, 0.02, Per.DAY))
    record = await desk.reservations.reserve(run())
    assert record.request.budgets.cost_usd == pytest.approx(0.02)
    await desk.reservations.settle(record, RunStatus.COMPLETED, Usage(cost_usd=0.0123456))
    assert await desk.used() == [pytest.approx(0.012346)]


async def test_run_asks_for_no_more_than_its_own_budget() -> None:
    desk = Desk(each=tokens(100_000))
    assert (await desk.reservations.reserve(run(budgets=Budgets(tokens=700)))).request.budgets.tokens == 700
    assert await desk.used() == [700]


STAFF, KEY = Whose(Scope.GROUP, "acme", "/staff"), Whose(Scope.KEY, "acme", "0f" * 12)


async def test_members_of_a_group_use_its_limit_together_and_an_api_key_has_its_own() -> None:
    desk = Desk()
    desk.rules.set(STAFF, [Limit(What.RUNS, 3, Per.DAY)])
    desk.rules.set(Whose(Scope.KEY, "acme", EACH), [Limit(What.RUNS, 1, Per.DAY)])
    ann, bob = (replace(run(), subject=name, groups=frozenset({"/staff", "/other"})) for name in ("ann", "bob"))
    await desk.reservations.reserve(ann, KEY.member)
    with pytest.raises(LimitReached, match="this API key may use 1 runs a day"):
        await desk.reservations.reserve(bob, KEY.member)
    await desk.reservations.reserve(bob, "1f" * 12)
    last = await desk.reservations.reserve(bob)
    with pytest.raises(LimitReached, match="the group /staff may use 3 runs") as refused:
        await desk.reservations.reserve(ann)
    assert refused.value.metadata["whose"] == "group:/staff"
    await desk.reservations.reserve(replace(run(), groups=frozenset({"/other"})))
    await desk.reservations.settle(last, RunStatus.FAILED, Usage())
    assert desk.counters.sums[Counter(STAFF, What.RUNS, "day-2026-01-31")] == 2
    assert desk.counters.sums[Counter(KEY, What.RUNS, "day-2026-01-31")] == 1


async def test_calls_of_tools_and_seconds_bound_a_run_and_what_is_left_is_given_back() -> None:
    desk = Desk(each=Limit(What.TOOL_CALLS, 10, Per.DAY), all=Limit(What.SECONDS, 60, Per.HOUR))
    record = await desk.reservations.reserve(run(1, mode=RunMode.CHAT, budgets=Budgets(wall_clock_s=45.5)))
    assert (record.request.budgets.tool_calls, record.request.budgets.wall_clock_s) == (6, 45.5)
    assert await desk.used() == [46, 6]
    await desk.reservations.settle(record, RunStatus.CANCELLED, Usage(tool_calls=2, worked_seconds=3.2))
    assert await desk.used() == [4, 2]
    await desk.reservations.reserve(run(2))
    assert await desk.used() == [60, 2]  # one search and one answer: no tools
    with pytest.raises(LimitReached, match="60 seconds an hour"):
        await desk.reservations.reserve(run(3))


class SilentRates(MemoryCounters):
    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        if counter.is_rate:
            raise Unavailable("the message store does not answer")
        return await super().add(counter, amount, once)


async def test_run_begins_and_ends_though_its_rate_cannot_be_counted() -> None:
    desk = Desk(each=Limit(What.RUNS, 5, Per.DAY), all=Limit(What.RUNS, 5, Per.MINUTE))
    reservations = Reservations(desk.rules, SilentRates(), Budgets(), lambda: AT)
    record = await reservations.reserve(run())
    assert [each.window for each in record.reserved] == ["day-2026-01-31"]
    counted = await desk.reservations.reserve(run())
    assert len(counted.reserved) == 2
    await reservations.settle(counted, RunStatus.FAILED, Usage())


def test_windows_end_with_the_second_the_minute_the_hour_the_day_and_the_month() -> None:
    at = datetime(2026, 12, 31, 23, 59, 59, 400_000, tzinfo=UTC)
    new_year = datetime(2027, 1, 1, tzinfo=UTC)
    assert [per.end(at) for per in Per] == [*[new_year] * 5, None]
    assert [per.window(at) for per in Per] == [
        "second-2026-12-31T23:59:59",
        "minute-2026-12-31T23:59",
        "hour-2026-12-31T23",
        "day-2026-12-31",
        "month-2026-12",
        "ever",
    ]


async def test_credits_are_a_balance_that_failed_and_cancelled_answers_leave_as_it_was() -> None:
    desk = Desk(ann=Limit(What.CREDITS, 12, Per.EVER))
    research = await desk.reservations.reserve(run(1, mode=RunMode.AGENT))
    await desk.reservations.settle(research, RunStatus.COMPLETED, Usage())
    assert await desk.used() == [10]
    for number, status in ((2, RunStatus.FAILED), (3, RunStatus.CANCELLED)):
        await desk.reservations.settle(await desk.reservations.reserve(run(number)), status, Usage(prompt_tokens=9))
    assert await desk.used() == [10]
    desk.now = datetime(2027, 1, 31, tzinfo=UTC)
    with pytest.raises(LimitReached, match=r"you got 12 credits, and too few are left") as refused:
        await desk.reservations.reserve(run(4, mode=RunMode.AGENT))
    assert (refused.value.retryable, refused.value.retry_after_s) == (False, None)
    await desk.reservations.reserve(run(5))
    desk.rules.set(ANN, [Limit(What.CREDITS, 21, Per.EVER)])
    await desk.reservations.reserve(run(6, mode=RunMode.AGENT))
    (state,) = await desk.reservations.states(Principal("acme", "ann"))
    assert (state.used, state.free_at) == (21, None)
