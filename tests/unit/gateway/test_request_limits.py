"""Limits of requests: what a gateway takes out of the count that all gateways share."""

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from nats.js.errors import APIError

from kit.access.principal import Principal
from kit.errors import FailedPrecondition, Unavailable
from kit.limits.counters import Counter
from kit.limits.errors import LimitReached
from kit.limits.rules import EACH, Limit, Per, Rules, Scope, What, Whose
from services.gateway.serving import request_limits
from services.gateway.serving.request_limits import RequestLimits, standing_headers
from tests.unit.orchestrator.limits.counting import AT, MemoryCounters

ANN = Principal("acme", "ann", frozenset({"query"}), key_id="0f" * 12)
EACH_USER, EACH_KEY = (Whose(scope, "acme", EACH) for scope in (Scope.SUBJECT, Scope.KEY))


class SilentCounters(MemoryCounters):
    asked = 0

    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        self.asked += 1
        raise Unavailable("the message store does not answer")


class HeldCounters(MemoryCounters):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.amounts: list[int] = []
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        self.amounts.append(amount)
        self.asked.set()
        await self.may_answer.wait()
        return await super().add(counter, amount, once)


class Gateways:
    """Gateways that share rules, counters and a clock."""

    def __init__(self) -> None:
        self.rules, self.counters = Rules(), MemoryCounters()
        self.now, self.seconds = AT, 0.0

    def begin(self) -> RequestLimits:
        limits = RequestLimits(lambda: self.now, lambda: self.seconds)
        limits.use(self.rules, self.counters)
        return limits

    def limit(self, whose: Whose, amount: float, per: Per) -> None:
        self.rules.set(whose, [Limit(What.REQUESTS, amount, per)])


async def let_in(pick: Callable[[], RequestLimits], tries: int, principal: Principal = ANN) -> int:
    count = 0
    for _ in range(tries):
        try:
            await pick().take(principal)
        except LimitReached:
            continue
        count += 1
    return count


async def test_four_gateways_let_in_no_more_than_the_limit_and_hardly_less_also_when_one_begins_anew() -> None:
    world, chance = Gateways(), random.Random(7)
    world.limit(EACH_USER, 1_000, Per.MINUTE)
    several = [world.begin() for _ in range(4)]
    first = await let_in(lambda: chance.choice(several), 500)
    several[0] = world.begin()
    rest = await let_in(lambda: chance.choice(several), 2_000)
    assert 980 <= first + rest <= 1_000
    assert sum(world.counters.sums.values()) < 1_050


async def test_refused_caller_is_told_which_limit_and_let_in_when_it_is_free_again() -> None:
    world = Gateways()
    world.limit(EACH_USER, 2, Per.SECOND)
    gateway = world.begin()
    world.now = AT + timedelta(seconds=7.25)
    assert await let_in(lambda: gateway, 5) == 2
    with pytest.raises(LimitReached, match="you may use 2 requests a second") as refused:
        await gateway.take(ANN)
    assert refused.value.retry_after_s == 0.75
    told = refused.value.metadata
    assert (told["limit"], told["whose"], told["free_in_s"]) == ("requests", "subject", "1")
    assert told["free_at"] == "2026-01-31T13:20:08+00:00"
    world.now = AT + timedelta(seconds=8)
    assert await let_in(lambda: gateway, 5) == 2


async def test_tightest_limit_holds_and_what_it_refuses_is_not_counted_under_the_others() -> None:
    world = Gateways()
    world.limit(EACH_USER, 10, Per.MINUTE)
    world.limit(EACH_KEY, 3, Per.MINUTE)
    gateway = world.begin()
    assert await let_in(lambda: gateway, 8) == 3
    other = Principal("acme", "ann", frozenset({"query"}))
    (standing,) = await gateway.take(other)
    assert standing_headers([standing]) == {
        "RateLimit-Policy": '"subject-requests-minute";q=10;w=60',
        "RateLimit": '"subject-requests-minute";r=6;t=60',
    }


async def test_raised_limit_holds_at_once() -> None:
    world = Gateways()
    world.limit(EACH_USER, 1, Per.DAY)
    gateway = world.begin()
    assert await let_in(lambda: gateway, 3) == 1
    world.limit(EACH_USER, 5, Per.DAY)
    assert await let_in(lambda: gateway, 9) >= 3
    world.rules.set(EACH_USER, [])
    assert await let_in(lambda: gateway, 9) == 9


async def test_gateway_counts_for_itself_while_the_shared_count_is_silent() -> None:
    world = Gateways()
    world.counters = SilentCounters()
    world.limit(EACH_USER, 5, Per.MINUTE)
    gateway = world.begin()
    assert await let_in(lambda: gateway, 20) == 5
    assert world.counters.asked == 1
    world.counters, world.seconds, world.now = MemoryCounters(), 2.0, AT + timedelta(minutes=1)
    gateway.use(world.rules, world.counters)
    assert await let_in(lambda: gateway, 20) == 5


async def test_most_checks_of_a_large_limit_ask_nobody() -> None:
    world = Gateways()
    world.limit(EACH_USER, 10_000, Per.MINUTE)
    world.counters = counters = MemoryCounters()
    gateway = world.begin()
    assert await let_in(lambda: gateway, 100) == 100
    assert list(counters.sums.values()) == [4 * 33]
    assert counters.sums.keys() == {
        Counter(Whose(Scope.SUBJECT, "acme", "ann"), What.REQUESTS, "minute-2026-01-31T13:20")
    }


async def test_forgotten_callers_are_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "_REMEMBERED", 10)
    world = Gateways()
    world.limit(EACH_USER, 3, Per.MINUTE)
    gateway = world.begin()
    people = [Principal("acme", f"u{number}") for number in range(50)]
    for _ in range(3):
        assert [await let_in(lambda: gateway, 1, each) for each in people] == [1] * 50
    assert [await let_in(lambda: gateway, 1, each) for each in people] == [0] * 50
    assert len(gateway._taken) == 10


@pytest.mark.parametrize(
    "error",
    [Unavailable("away"), FailedPrecondition("no cluster"), APIError(code=400, err_code=10013), ValueError("?")],
)
async def test_no_failure_of_the_shared_count_refuses_a_request(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> int:
        raise error

    world = Gateways()
    world.limit(EACH_USER, 5, Per.MINUTE)
    monkeypatch.setattr(world.counters, "add", fail)
    gateway = world.begin()
    assert await let_in(lambda: gateway, 20) == 5


async def test_requests_that_wait_are_taken_for_all_at_once() -> None:
    world = Gateways()
    world.limit(EACH_USER, 100, Per.MINUTE)
    world.counters = counters = HeldCounters()
    gateway = world.begin()
    several = [asyncio.create_task(gateway.take(ANN)) for _ in range(40)]
    await counters.asked.wait()
    counters.may_answer.set()
    await asyncio.gather(*several)
    assert counters.amounts == [1, 39]


async def test_slow_answer_lets_those_who_wait_go_on_alone() -> None:
    world = Gateways()
    world.limit(EACH_USER, 20, Per.MINUTE)
    world.counters = counters = HeldCounters()
    gateway = world.begin()
    several = [asyncio.create_task(let_in(lambda: gateway, 1)) for _ in range(40)]
    await counters.asked.wait()
    world.seconds = 0.3
    counters.may_answer.set()
    assert sum(await asyncio.gather(*several)) == 20
    assert counters.amounts == [1]


async def test_no_request_waits_longer_than_the_time_for_all_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_limits, "_ANSWERS_WITHIN_S", 0.01)
    world = Gateways()
    world.limit(EACH_USER, 40, Per.MINUTE)
    world.limit(EACH_KEY, 40, Per.SECOND)
    world.counters = counters = HeldCounters()
    gateway = world.begin()
    assert sum(await asyncio.gather(*(let_in(lambda: gateway, 1) for _ in range(50)))) == 40
    assert counters.amounts == [1]
