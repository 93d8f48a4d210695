"""Keeps runs within the limits of their users. What a run may use is reserved before it begins and bounds the run, so that several
runs at once do not use more together than is left. What it did not use is given back at its end."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from kit.access.principal import Principal
from services.orchestrator.errors import LimitReached
from services.orchestrator.limits.rules import Applied, Limit, Per, Rules, Scope, What, Whose
from services.orchestrator.log.events import Budgets, RunMode, RunStatus, Usage
from services.orchestrator.models import Reserved, RunRecord

_UNIT = {What.RUNS: 1, What.RESEARCH_RUNS: 1, What.TOKENS: 1, What.DOLLARS: 1_000_000}
"""Counters count whole numbers: of dollars, millionths."""
_USUAL = {What.TOKENS: 8_000, What.DOLLARS: 50_000}
"""What most runs need at most."""
_USUAL_OF_RESEARCH = {What.TOKENS: 64_000, What.DOLLARS: 500_000}
_LEAST = {What.TOKENS: 500, What.DOLLARS: 100}
"""With less left a run would end before it has said anything."""
_SHARE = 16
"""A run reserves this part of a limit where that is more than usual."""
_FREED_WITHIN_S = 60.0
"""By then runs that go on have given back most of what they had reserved."""


@dataclass(frozen=True)
class Counter:
    """The sum of what was used of something in one window."""

    whose: Whose
    what: What
    window: str


@dataclass(frozen=True)
class LimitState:
    """A limit that holds for a caller, and how much of it is used."""

    applied: Applied
    used: float
    """With what runs that go on have reserved."""
    free_at: datetime
    """When the window ends and counting begins anew."""


class Counters(Protocol):
    """Counts across all orchestrators. Both raise Unavailable."""

    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        """Adds `amount`, which may be negative. A second call with the same `once` adds nothing. Returns the sum after it."""
        ...

    async def value(self, counter: Counter) -> int:
        """The sum; 0 where nothing was counted."""
        ...


class Reservations:
    """Reserves for runs what they may use, and gives back what they did not."""

    def __init__(self, rules: Rules, counters: Counters, most: Budgets, now: Callable[[], datetime]) -> None:
        """`most`: the most that any run may use."""
        self._rules = rules
        self._counters = counters
        self._most = most
        self._now = now

    async def reserve(self, record: RunRecord) -> RunRecord:
        """The run with what was reserved for it, which its budgets do not exceed. Raises LimitReached, Unavailable."""
        now, request = self._now(), record.request
        wanted = {each: _wanted(each.limit, record, self._most) for each in self._rules.of(record.principal)}
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
            used = {What.TOKENS: usage.prompt_tokens + usage.completion_tokens, What.DOLLARS: usage.cost_usd}
            left = [(each, _left_of(each, used, status)) for each in record.reserved]
            await self._add(
                record, [(each, amount) for each, amount in left if amount], once=f"{record.key.run_id}.settle"
            )

    async def give_back(self, record: RunRecord) -> None:
        """Gives back all that was reserved for a run that did not begin. Raises Unavailable."""
        await self._add(record, [(each, -each.amount) for each in record.reserved])

    async def states(self, principal: Principal) -> Sequence[LimitState]:
        """The limits that hold for a caller. Raises Unavailable."""
        now, found = self._now(), self._rules.of(principal)
        values = await asyncio.gather(*(self._counters.value(_counter(each, now)) for each in found))
        return [
            LimitState(each, max(0, value) / _UNIT[each.limit.what], each.limit.per.end(now))
            for each, value in zip(found, values, strict=True)
        ]

    async def _take(self, applied: Applied, amount: int, now: datetime) -> Reserved:
        """Counts at each try: a refused request that comes again with its key has the same run id. Raises LimitReached."""
        counter, what = _counter(applied, now), applied.limit.what
        limit = _units(applied.limit)
        total = await self._counters.add(counter, amount)
        granted = amount - max(0, total - limit)
        if granted >= min(amount, _LEAST.get(what, 1)):
            reserved = Reserved(counter.whose.scope.value, what.value, counter.window, granted)
            if granted < amount:
                await self._counters.add(counter, granted - amount)
            return reserved
        await self._counters.add(counter, -amount)
        raise _reached(applied, now)

    async def _add(self, record: RunRecord, amounts: Sequence[tuple[Reserved, int]], once: str = "") -> None:
        await asyncio.gather(*(self._counters.add(_counter_of(record, each), amount, once) for each, amount in amounts))


def _wanted(limit: Limit, record: RunRecord, most: Budgets) -> int:
    """How many units a run reserves; 0 where the limit is not about it."""
    is_research = record.request.mode is RunMode.AGENT
    match limit.what:
        case What.RUNS:
            return 1
        case What.RESEARCH_RUNS:
            return int(is_research)
        case What.TOKENS:
            bounds = [record.request.budgets.tokens, most.tokens]
        case What.DOLLARS:
            bounds = [_micro(record.request.budgets.cost_usd), _micro(most.cost_usd)]
    usual = (_USUAL_OF_RESEARCH if is_research else _USUAL)[limit.what]
    wanted = max(usual, _units(limit) // _SHARE)
    return max(1, min([wanted, _units(limit), *(bound for bound in bounds if bound)]))


def _bounded(budgets: Budgets, reserved: Sequence[Reserved]) -> Budgets:
    """The budgets, and no more than was reserved."""
    tokens = [each.amount for each in reserved if each.what == What.TOKENS.value]
    dollars = [each.amount / _UNIT[What.DOLLARS] for each in reserved if each.what == What.DOLLARS.value]
    return replace(
        budgets,
        tokens=min([*tokens, *([budgets.tokens] if budgets.tokens else [])], default=0),
        cost_usd=min([*dollars, *([budgets.cost_usd] if budgets.cost_usd else [])], default=0.0),
    )


def _left_of(reserved: Reserved, used: dict[What, float], status: RunStatus) -> int:
    """What is to be added to the counter: less than nothing where the run did not use all."""
    what = What(reserved.what)
    if what in used:
        return math.ceil(used[what] * _UNIT[what]) - reserved.amount
    return -reserved.amount if status is RunStatus.FAILED else 0


def _counter(applied: Applied, now: datetime) -> Counter:
    return Counter(applied.whose, applied.limit.what, applied.limit.per.window(now))


def _counter_of(record: RunRecord, reserved: Reserved) -> Counter:
    scope = Scope(reserved.scope)
    tenant_id = "" if scope is Scope.ALL else record.key.tenant_id
    whose = Whose(scope, tenant_id, record.subject if scope is Scope.SUBJECT else "")
    return Counter(whose, What(reserved.what), reserved.window)


def _units(limit: Limit) -> int:
    return round(limit.amount * _UNIT[limit.what])


def _micro(dollars: float) -> int:
    return int(dollars * _UNIT[What.DOLLARS])


_OF = {Scope.ALL: "this installation", Scope.TENANT: "your tenant", Scope.SUBJECT: "you"}
_EVERY = {Per.HOUR: "an hour", Per.DAY: "a day", Per.MONTH: "a month"}


def _reached(applied: Applied, now: datetime) -> LimitReached:
    limit, end = applied.limit, applied.limit.per.end(now)
    what = limit.what.value.replace("_", " ")
    wait_s = (end - now).total_seconds()
    return LimitReached(
        f"{_OF[applied.whose.scope]} may use {limit.amount:g} {what} {_EVERY[limit.per]}, and that is reached. It is free again at "
        f"{end.isoformat()}, or sooner when questions that are being answered give back what they reserved. Who set the limit can "
        "raise it: groundwork limits",
        retry_after_s=min(wait_s, _FREED_WITHIN_S),
        limit=limit.what.value,
        whose=applied.whose.scope.value,
        amount=f"{limit.amount:g}",
        per=limit.per.value,
        free_at=end.isoformat(),
        free_in_s=f"{wait_s:.0f}",
    )
