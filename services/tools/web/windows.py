"""How often web servers are asked: so many requests a minute to one host, and so many in one run. A host that asks to be left alone
for a while (Retry-After) is. Requests to hosts of the web are also counted by all processes together (SharedWindows)."""

import time
from collections import deque
from collections.abc import Callable
from datetime import datetime

import structlog
from cachetools import TTLCache

from kit import deadline
from kit.errors import Unavailable
from kit.limits.counters import Counter, Counters
from kit.limits.rules import Per, Scope, What, Whose
from services.tools.web.pages import WebBusy

_WINDOW_S = 60.0
_HOSTS_MAX = 4_096
_RUNS_MAX = 4_096
_RUN_S = 3_600.0
"""How long a run is remembered after its first request."""
_LEFT_ALONE_S_MAX = 3_600.0
_ANSWERS_WITHIN_S = 0.5
"""Longest wait for the count of all processes."""
_ALONE_FOR_S = 1.0
"""How long a process counts for itself before it asks again."""

_log = structlog.get_logger()


class Windows:
    """Counts requests by host and by run."""

    def __init__(self, per_host: int, per_run: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`per_host` in a minute, `per_run` in all."""
        self._per_host, self._per_run = per_host, per_run
        self._clock = clock
        self._hosts: TTLCache[str, deque[float]] = TTLCache(_HOSTS_MAX, 2 * _WINDOW_S, timer=clock)
        self._runs: TTLCache[str, int] = TTLCache(_RUNS_MAX, _RUN_S, timer=clock)
        self._left_alone: TTLCache[str, float] = TTLCache(_HOSTS_MAX, _LEFT_ALONE_S_MAX, timer=clock)

    def take(self, host: str, run: str) -> None:
        """Counts a request. Raises WebBusy, and counts nothing then."""
        if (wait_s := self.wait_s(host)) > 0.0:
            raise _busy(host, wait_s)
        if self._runs.get(run, 0) >= self._per_run:
            raise WebBusy(
                f"this conversation has read {self._per_run} pages, as many as one may; go on with what was read"
            )
        self._runs[run] = self._runs.get(run, 0) + 1
        self._hosts[host] = self._recent(host)  # kept for as long again
        self._hosts[host].append(self._clock())

    def wait_s(self, host: str) -> float:
        """Until a request to the host may be made; 0 when it may now."""
        recent, now = self._recent(host), self._clock()
        full_s = recent[0] + _WINDOW_S - now if len(recent) >= self._per_host else 0.0
        return max(full_s, self._left_alone.get(host, 0.0) - now, 0.0)

    def since_s(self, host: str, delay_s: float) -> float:
        """Until the last request to the host is so long ago."""
        recent = self._recent(host)
        return max(recent[-1] + delay_s - self._clock(), 0.0) if recent else 0.0

    def leave_alone(self, host: str, seconds: float) -> None:
        """Asks nothing of the host for so long, at most an hour."""
        self._left_alone[host] = self._clock() + min(seconds, _LEFT_ALONE_S_MAX)

    def _recent(self, host: str) -> deque[float]:
        recent = self._hosts.get(host) or deque()
        while recent and recent[0] <= self._clock() - _WINDOW_S:
            recent.popleft()
        return recent


class SharedWindows(Windows):
    """Windows whose requests to a host are counted by all processes together, in minutes by the clock. While the message store is
    silent each process counts for itself, so that up to the limit for each may be asked."""

    def __init__(
        self,
        per_host: int,
        per_run: int,
        counters: Counters,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is the time of day, by which minutes begin."""
        super().__init__(per_host, per_run, clock)
        self._counters = counters
        self._now = now
        self._alone_until = 0.0

    async def take_shared(self, host: str, run: str) -> None:
        """As `take`, for all processes. What was refused here is not asked again before the next minute. Raises WebBusy, and counts
        nothing for the run then."""
        self.take(host, run)
        now = self._now()
        counter = Counter(Whose(Scope.HOST, member=host), What.REQUESTS, Per.MINUTE.window(now))
        if await self._total(counter) > self._per_host:
            self._runs[run] = max(self._runs.get(run, 0) - 1, 0)
            rest_s = Per.MINUTE.ends_in_s(now)
            self.leave_alone(host, max(rest_s, self.wait_s(host)))
            raise _busy(host, rest_s)

    async def _total(self, counter: Counter) -> int:
        """Requests of all processes in the minute; 0 where they are not counted."""
        if self._clock() < self._alone_until:
            return 0
        try:
            with deadline.within(_ANSWERS_WITHIN_S):
                return await self._counters.add(counter, 1)
        except Unavailable as error:
            self._alone_until = self._clock() + _ALONE_FOR_S
            _log.warning("web_requests_not_counted", error=error.message)
            return 0


def _busy(host: str, wait_s: float) -> WebBusy:
    return WebBusy(f"{host} was asked as often as it may be for now; try again in {max(1, round(wait_s))} s")
