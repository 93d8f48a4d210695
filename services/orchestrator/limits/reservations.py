"""Keeps runs within the limits of their users. What a run may use is reserved before it begins and bounds the run, so that several
runs at once do not use more together than is left. What it did not use is given back at its end."""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from kit import deadline
from kit.access.principal import Principal
from kit.errors import Unavailable
from kit.limits.counters import UNITS, Counter, Counters
from kit.limits.errors import limit_reached
from kit.limits.rules import STORED, Applied, Limit, Rules, Scope, What, Whose
from services.orchestrator.log.events import Budgets, RunMode, RunStatus, Usage
from services.orchestrator.models import Reserved, RunRecord

_log = structlog.get_logger()
_RATES_ANSWER_WITHIN_S = 0.5
"""Longest wait for the counter of a second or a minute."""
_USUAL = {What.TOKENS: 8_000, What.DOLLARS: 50_000, What.TOOL_CALLS: 6}
"""What most runs need at most. Of seconds, what any run may take."""
_USUAL_OF_RESEARCH = {What.TOKENS: 64_000, What.DOLLARS: 500_000, What.TOOL_CALLS: 50}
_LEAST = {What.TOKENS: 500, What.DOLLARS: 100, What.SECONDS: 5}
"""With less left a run would end before it has said anything."""
_CALLING = (RunMode.CHAT, RunMode.AGENT)
"""Modes that call tools."""
_SHARE = 16
"""A run reserves this part of a limit of tokens or dollars where that is more than usual."""


@dataclass(frozen=True)
class Prices:
    """How many credits an answer takes."""

    run: int = 1
    research: int = 10


@dataclass(frozen=True)
class LimitState:
    """A limit that holds for a caller, and how much of it is used."""

    applied: Applied
    used: float
    """With what runs that go on have reserved."""
    free_at: datetime | None
    """When the window ends and counting begins anew; None of credits."""


class Reservations:
    """Reserves for runs what they may use, and gives back what they did not."""

    def __init__(
        self, rules: Rules, counters: Counters, most: Budgets, now: Callable[[], datetime], prices: Prices = Prices()
    ) -> None:
        """`most`: the most that any run may use."""
        self._rules = rules
        self._counters = counters
        self._most = most
        self._now = now
        self._prices = prices

    async def reserve(self, record: RunRecord, key_id: str = "") -> RunRecord:
        """The run, asked for with that API key, with what was reserved for it, which its budgets do not exceed.
        Raises LimitReached, Unavailable."""
        now, request = self._now(), record.request
        asker = replace(record.principal, key_id=key_id)
        wanted = {each: _wanted(each.limit, record, self._most, self._prices) for each in self._rules.of(asker)}
        asked = [(each, amount) for each, amount in wanted.items() if amount]
        answers = await asyncio.gather(
            *(self._take(each, amount, now) for each, amount in asked), return_exceptions=True
        )
        taken = [each for each in answers if isinstance(each, Reserved)]
        if failed := [each for each in answers if isinstance(each, BaseException)]:
            await self.give_back(replace(record, reserved=taken))
            raise failed[0]
        return replace(
            record, request=replace(request, budgets=_bounded(request.budgets, taken)), reserved=tuple(taken)
        )

    async def settle(self, record: RunRecord, status: RunStatus, usage: Usage | None) -> None:
        """Gives back what an ended run did not use. Harmless when repeated. Raises Unavailable."""
        if usage is not None:
            used = {
                What.TOKENS: usage.prompt_tokens + usage.completion_tokens,
                What.DOLLARS: usage.cost_usd,
                What.TOOL_CALLS: usage.tool_calls,
                What.SECONDS: usage.worked_seconds,
            }
            left = [(each, _left_of(each, used, status)) for each in record.reserved]
            await self._add(
                record, [(each, amount) for each, amount in left if amount], once=f"{record.key.run_id}.settle"
            )

    async def give_back(self, record: RunRecord) -> None:
        """Gives back all that was reserved for a run that did not begin. Raises Unavailable."""
        await self._add(record, [(each, -each.amount) for each in record.reserved])

    async def states(self, principal: Principal) -> Sequence[LimitState]:
        """The limits that hold for a caller, but for those of what is stored, which ingest knows. Raises Unavailable."""
        now = self._now()
        found = [each for each in self._rules.of(principal) if each.limit.what not in STORED]
        values = await asyncio.gather(*(self._counters.value(_counter(each, now)) for each in found))
        return [
            LimitState(each, _used(each, value), each.limit.per.end(now))
            for each, value in zip(found, values, strict=True)
        ]

    async def _take(self, applied: Applied, amount: int, now: datetime) -> Reserved | None:
        """None where the counter of a second or a minute does not answer: no run waits for it. Raises LimitReached, Unavailable."""
        if not _counter(applied, now).is_rate:
            return await self._taken(applied, amount, now)
        try:
            with deadline.within(_RATES_ANSWER_WITHIN_S):
                return await self._taken(applied, amount, now)
        except Unavailable as error:
            _log.warning("rate_not_counted", error=error.message)
            return None

    async def _taken(self, applied: Applied, amount: int, now: datetime) -> Reserved:
        """Counts at each try: a refused request that comes again with its key has the same run id. Raises LimitReached."""
        counter, what = _counter(applied, now), applied.limit.what
        limit = _units(applied.limit)
        total = await self._counters.add(counter, amount)
        granted = amount - max(0, total - limit)
        if granted >= (amount if what is What.CREDITS else min(amount, _LEAST.get(what, 1))):
            reserved = Reserved(counter.whose.scope.value, what.value, counter.window, granted, counter.whose.member)
            if granted < amount:
                await self._counters.add(counter, granted - amount)
            return reserved
        await self._counters.add(counter, -amount)
        raise limit_reached(applied, now)

    async def _add(self, record: RunRecord, amounts: Sequence[tuple[Reserved, int]], once: str = "") -> None:
        await asyncio.gather(*(self._change(_counter_of(record, each), amount, once) for each, amount in amounts))

    async def _change(self, counter: Counter, amount: int, once: str) -> None:
        if not counter.is_rate:
            await self._counters.add(counter, amount, once)
            return
        with suppress(Unavailable), deadline.within(_RATES_ANSWER_WITHIN_S):
            await self._counters.add(counter, amount, once)


def _wanted(limit: Limit, record: RunRecord, most: Budgets, prices: Prices) -> int:
    """How many units a run reserves; 0 where the limit is not about it."""
    asked, mode = record.request.budgets, record.request.mode
    is_research = mode is RunMode.AGENT
    match limit.what:
        case What.REQUESTS | What.DOCUMENTS | What.STORAGE | What.STORED_DOCUMENTS:
            return 0
        case What.CREDITS:
            return prices.research if is_research else prices.run
        case What.RUNS:
            return 1
        case What.RESEARCH_RUNS:
            return int(is_research)
        case What.TOKENS:
            bounds = [asked.tokens, most.tokens]
        case What.DOLLARS:
            bounds = [_micro(asked.cost_usd), _micro(most.cost_usd)]
        case What.TOOL_CALLS if mode not in _CALLING:
            return 0
        case What.TOOL_CALLS:
            bounds = [asked.tool_calls, most.tool_calls]
        case What.SECONDS:
            bounds = [math.ceil(asked.wall_clock_s), math.ceil(most.wall_clock_s)]
    usual = (_USUAL_OF_RESEARCH if is_research else _USUAL).get(limit.what, _units(limit))
    shared = _units(limit) // _SHARE if limit.what in (What.TOKENS, What.DOLLARS) else 0
    wanted = asked.tool_calls if limit.what is What.TOOL_CALLS and asked.tool_calls else max(usual, shared)
    return max(1, min([wanted, _units(limit), *(bound for bound in bounds if bound)]))


def _bounded(budgets: Budgets, reserved: Sequence[Reserved]) -> Budgets:
    """The budgets, and no more than was reserved."""

    def least(what: What, asked: float) -> float:
        amounts = [each.amount / _unit(what) for each in reserved if each.what == what.value]
        return min([*amounts, *([asked] if asked else [])], default=0)

    return replace(
        budgets,
        tokens=int(least(What.TOKENS, budgets.tokens)),
        cost_usd=float(least(What.DOLLARS, budgets.cost_usd)),
        tool_calls=int(least(What.TOOL_CALLS, budgets.tool_calls)),
        wall_clock_s=float(least(What.SECONDS, budgets.wall_clock_s)),
    )


def _left_of(reserved: Reserved, used: dict[What, float], status: RunStatus) -> int:
    """What is to be added to the counter: less than nothing where the run did not use all."""
    what = What(reserved.what)
    if what in used:
        return math.ceil(used[what] * _unit(what)) - reserved.amount
    given_back = [RunStatus.FAILED, *([RunStatus.CANCELLED] if what is What.CREDITS else [])]
    return -reserved.amount if status in given_back else 0


def _counter(applied: Applied, now: datetime) -> Counter:
    return Counter(applied.whose, applied.limit.what, applied.limit.per.window(now))


def _counter_of(record: RunRecord, reserved: Reserved) -> Counter:
    scope = Scope(reserved.scope)
    tenant_id = "" if scope is Scope.ALL else record.key.tenant_id
    # Earlier releases did not write the name: theirs were of users, tenants and all.
    member = record.subject if scope is Scope.SUBJECT else reserved.member
    return Counter(Whose(scope, tenant_id, member), What(reserved.what), reserved.window)


def _used(applied: Applied, value: int) -> float:
    """Gateways count also requests that they refuse."""
    used = max(0, value) / _unit(applied.limit.what)
    return min(used, applied.limit.amount) if applied.limit.what is What.REQUESTS else used


def _units(limit: Limit) -> int:
    return round(limit.amount * _unit(limit.what))


def _unit(what: What) -> int:
    return UNITS.get(what, 1)


def _micro(dollars: float) -> int:
    return int(dollars * _unit(What.DOLLARS))
