"""Decides whether questions are researched now: an operator may switch research off, too many may be under way, and after too many
failures it is left alone for a while and then tried with one run. What is not researched is answered by one search."""

import time
from collections import deque
from collections.abc import Callable

from kit.breaker import CircuitBreaker

_LAST_RUNS = 20
_LEAST_RUNS = 6
"""Fewer say nothing about a rate."""
_PAUSE_S = 30.0
_NEVER = 1_000_000
"""The breaker opens by the rate, not by a number of failures in a row."""


class ResearchGate:
    """One for all runs of a process."""

    def __init__(
        self,
        *,
        is_on: Callable[[], bool],
        most_runs: int = 0,
        failure_rate: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`most_runs` at once, 0 for no limit; at `failure_rate` of the last runs it closes."""
        self._is_on = is_on
        self._most_runs = most_runs
        self._failure_rate = failure_rate
        self._breaker = CircuitBreaker(failures=_NEVER, open_s=_PAUSE_S, clock=clock)
        self._failed: deque[bool] = deque(maxlen=_LAST_RUNS)
        self._running = 0

    def admits(self) -> bool:
        """Whether another run may be researched. The caller says how it went: `entered`, `succeeded` or `failed`, `left`."""
        if not self._is_on() or 0 < self._most_runs <= self._running:
            return False
        return self._breaker.allow()

    def entered(self) -> None:
        """A run is being researched."""
        self._running += 1

    def left(self) -> None:
        """It is not any more."""
        self._running -= 1
        self._breaker.abandoned()

    def succeeded(self) -> None:
        """A run was researched to its end."""
        self._failed.append(False)
        self._breaker.succeeded()

    def failed(self) -> None:
        """Research broke on the way."""
        self._failed.append(True)
        self._breaker.failed()
        if len(self._failed) >= _LEAST_RUNS and sum(self._failed) >= self._failure_rate * len(self._failed):
            self._failed.clear()
            self._breaker.pause(_PAUSE_S)
