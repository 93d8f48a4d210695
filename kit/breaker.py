"""A circuit breaker: what keeps failing (a provider of models, a tool) is left alone for a while, then tried with one request."""

import time
from collections import deque
from collections.abc import Callable
from enum import Enum

_LONGEST_PAUSE_S = 60.0


class BreakerState(Enum):
    """closed → open after `failures` failures within `window_s`; open → half open after a pause; half open → closed when the one
    probe succeeds, → open when it fails."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CircuitBreaker:
    """Of one provider or tool. A caller that got True from `allow` says how it went: `succeeded`, `failed` or `abandoned`. A
    request that is repeated is `abandoned` each time but the last, unless it is the probe.

    The first pause is `open_s`; each probe that fails doubles it, up to a minute.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        window_s: float = 30.0,
        open_s: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._window_s = window_s
        self._open_s = open_s
        self._clock = clock
        self._failed_at: deque[float] = deque(maxlen=failures)
        self._opened = False
        self._open_until = 0.0
        self._pause_s = open_s
        self._probing = False

    @property
    def state(self) -> BreakerState:
        if not self._opened:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self.wait_s > 0 else BreakerState.HALF_OPEN

    @property
    def wait_s(self) -> float:
        """Seconds until a probe may be made."""
        return max(0.0, self._open_until - self._clock()) if self._opened else 0.0

    def would_allow(self) -> bool:
        """Whether `allow` would say yes now."""
        return self.state is BreakerState.CLOSED or (self.state is BreakerState.HALF_OPEN and not self._probing)

    def allow(self) -> bool:
        """Whether a request may be made now. Of an open breaker whose pause is over, one at a time: the probe."""
        if not self.would_allow():
            return False
        self._probing = self._opened
        return True

    def succeeded(self) -> None:
        self._probing = self._opened = False
        self._failed_at.clear()
        self._pause_s = self._open_s

    def failed(self) -> None:
        now = self._clock()
        if self._probing:
            self._pause_s = min(2 * self._pause_s, max(_LONGEST_PAUSE_S, self._open_s))
            self._open(self._pause_s)
            return
        self._failed_at.append(now)
        if len(self._failed_at) == self._failures and now - self._failed_at[0] <= self._window_s:
            self._open(self._pause_s)

    def pause(self, seconds: float) -> None:
        """It asked to be left alone for so long (Retry-After). A minute at most: then a probe asks again."""
        self._open(min(seconds, _LONGEST_PAUSE_S))

    def abandoned(self) -> None:
        """The request was given up for a reason that says nothing about who was asked: another may be the probe."""
        self._probing = False

    def _open(self, seconds: float) -> None:
        self._probing = False
        self._opened = True
        self._open_until = max(self._open_until, self._clock() + seconds)
        self._failed_at.clear()
