"""Limits of how many requests a caller may make in a second, a minute, an hour, a day or a month, over all gateways.

A gateway takes requests out of a count that all gateways share, a few at a time where a limit is large: most checks ask nobody. The
ranges that gateways take are disjoint, so together they never let in more than the limit. What one of them took and did not use by
the end of a window is lost: at most a three-hundredth of the limit each.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from nats.js.errors import APIError

from kit import deadline
from kit.access.principal import Principal
from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.limits.counters import Counter, Counters
from kit.limits.errors import limit_reached
from kit.limits.rules import Applied, Rules, What
from kit.limits.store import JetStreamCounters, LimitRules
from kit.process.waiting import FailureLogLimit

_log = structlog.get_logger()
_BATCH = 1 / 300
"""The part of a limit that a gateway takes at once: four gateways, one of them restarted, are 2 % short at most."""
_REMEMBERED = 20_000
"""Limits in use at a time, about 700 bytes each. What was taken under the least recently used is lost, and counted again when it
is needed."""
_ANSWERS_WITHIN_S = 0.5
"""Longest that a request waits for the shared count, under all its limits. Then the gateway counts for itself."""
_SLOW_S = 0.1
"""It does so too after an answer that took longer: each request would wait as long."""
_RETRY_S = 1.0
_ALONE_FOR_S = 1.0
"""How long it does, before it asks again."""


@dataclass(slots=True)
class _Taken:
    """What this gateway has taken out of one window of a limit."""

    window: str
    left: int = 0
    """Requests that may be let in without asking."""
    total: int = 0
    """Taken by all gateways, when this one asked last."""
    own: int = 0
    """Taken by this gateway, also while the shared count was silent."""
    waiting: int = 0
    """Requests that wait for more: the one that asks takes one for each of them."""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def needs_more(self, limit: int) -> bool:
        """Whether none is left here and there may be some elsewhere."""
        return not self.left and self.total < limit


@dataclass(frozen=True, slots=True)
class Standing:
    """How many requests are left under one limit."""

    applied: Applied
    left: int
    """As far as this gateway knows."""
    free_in_s: float
    """Until the window ends."""


class RequestLimits:
    """Lets a request in, or says which limit is reached. Nothing is limited before the rules are known."""

    def __init__(self, now: Callable[[], datetime], clock: Callable[[], float] = time.monotonic) -> None:
        """`now` is the time of day, by which windows begin; `clock` counts seconds."""
        self._now = now
        self._clock = clock
        self._rules = Rules()
        self._counters: Counters | None = None
        self._taken: OrderedDict[Applied, _Taken] = OrderedDict()
        self._alone_until = -math.inf

    async def run(self, nats: Nats) -> None:
        """Follows the rules until cancelled, waiting for a message store that is not up yet."""
        complaints = FailureLogLimit()
        while True:
            try:
                rules, counters = await LimitRules.open(nats), await JetStreamCounters.open(nats)
                break
            except (GroundworkError, APIError) as error:
                if complaints.is_due():
                    _log.warning("request_limits_not_opened", error=str(error))
                await asyncio.sleep(_RETRY_S)
        self.use(rules.rules, counters)
        await rules.settings.follow()

    def use(self, rules: Rules, counters: Counters) -> None:
        """From now on these rules hold, counted there."""
        self._rules, self._counters = rules, counters

    async def take(self, principal: Principal) -> Sequence[Standing]:
        """Counts a request; what is left under each limit about it. Raises LimitReached."""
        limits = [each for each in self._rules.of(principal) if each.limit.what is What.REQUESTS]
        if not limits or self._counters is None:
            return ()
        now = self._now()
        used: list[_Taken] = []
        standings = []
        with deadline.limited_to(_ANSWERS_WITHIN_S):
            for each in limits:
                taken = self._current_count(each, now)
                if not await self._take(self._counters, each, taken):
                    for other in used:
                        other.left += 1
                    raise limit_reached(each, now)
                used.append(taken)
                left = max(0, math.floor(each.limit.amount) - max(taken.total, taken.own)) + taken.left
                standings.append(Standing(each, left, each.limit.per.ends_in_s(now)))
        return standings

    def _current_count(self, applied: Applied, now: datetime) -> _Taken:
        window = applied.limit.per.window(now)
        taken = self._taken.get(applied)
        if taken is None or taken.window != window:
            taken = self._taken[applied] = _Taken(window)
            if len(self._taken) > _REMEMBERED:
                self._taken.popitem(last=False)
        self._taken.move_to_end(applied)
        return taken

    async def _take(self, counters: Counters, applied: Applied, taken: _Taken) -> bool:
        """Whether there was one left."""
        limit = math.floor(applied.limit.amount)
        if taken.needs_more(limit) and not self._is_alone():
            taken.waiting += 1
            try:
                async with asyncio.timeout(deadline.remaining_s()), taken.asking:
                    # Who waited here uses what the one before has taken.
                    if taken.needs_more(limit) and not self._is_alone():
                        taken.left += await self._more(counters, applied, taken, limit)
            except TimeoutError:
                self._count_alone("no answer in time")
            finally:
                taken.waiting -= 1
        if taken.needs_more(limit) and taken.own < limit and self._is_alone():
            taken.own += 1
            taken.total += 1
            return True
        if not taken.left:
            return False
        taken.left -= 1
        return True

    async def _more(self, counters: Counters, applied: Applied, taken: _Taken, limit: int) -> int:
        """Takes some out of the shared count; how many of these are within the limit."""
        batch = max(1, math.floor(limit * _BATCH), taken.waiting)
        counter = Counter(applied.whose, What.REQUESTS, taken.window)
        began = self._clock()
        try:
            taken.total = await counters.add(counter, batch)
        except Exception as error:  # whatever it is, requests go on
            self._count_alone(str(error) or type(error).__name__)
            return 0
        if self._clock() - began > _SLOW_S:
            self._count_alone("a slow answer")
        more = max(0, batch - max(0, taken.total - limit))
        taken.own += more
        return more

    def _is_alone(self) -> bool:
        return self._clock() < self._alone_until

    def _count_alone(self, why: str) -> None:
        """From now on, for a while."""
        if not self._is_alone():
            _log.warning("requests_counted_alone", error=why)
        self._alone_until = self._clock() + _ALONE_FOR_S


def standing_headers(standings: Sequence[Standing]) -> dict[str, str]:
    """What is left, as the IETF's draft of RateLimit fields has it."""
    names = [f'"{each.applied.whose.scope.value}-requests-{each.applied.limit.per.value}"' for each in standings]
    policies = [f"q={math.floor(each.applied.limit.amount)};w={each.applied.limit.per.seconds}" for each in standings]
    left = [f"r={each.left};t={math.ceil(each.free_in_s)}" for each in standings]
    return {
        "RateLimit-Policy": ", ".join(f"{name};{policy}" for name, policy in zip(names, policies, strict=True)),
        "RateLimit": ", ".join(f"{name};{each}" for name, each in zip(names, left, strict=True)),
    }
