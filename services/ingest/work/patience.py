"""Waiting for a busy neighbour. Backpressure is not a failure of the document: it is waited out here, while the queue's heartbeats
keep the job, and never counts as a failed try."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from kit.errors import Cancelled, DeadlineExceeded, GroundworkError, ResourceExhausted, Unavailable
from kit.jetstream.leases import LeaseLost

_log = structlog.get_logger()
_T = TypeVar("_T")
_TIMEOUTS_MIN = 5


class Patience:
    """Repeats a call while the callee is full or away. `sleep`, `jitter` and `clock` are injected for tests.

    For `silence_s`, nothing but time-outs is put down to a callee that hangs: after it, it may be this call that is too much.
    """

    def __init__(
        self,
        *,
        first_wait_s: float = 0.1,
        longest_wait_s: float = 5.0,
        silence_s: float = 3600.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._sleep = sleep
        self._jitter = jitter
        self._silence_s = silence_s
        self._clock = clock

    async def call(self, what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """The answer of `attempt`. A callee that is full, away or stopping is waited out for as long as that lasts; time-outs in a
        row for longer than `silence_s` are the caller's to handle."""
        tries = timeouts = 0
        silent_since = self._clock()
        while True:
            try:
                return await attempt()
            except LeaseLost:
                raise  # waiting does not bring it back: another worker may have the document
            except DeadlineExceeded as error:
                timeouts += 1
                if timeouts >= _TIMEOUTS_MIN and self._clock() - silent_since > self._silence_s:
                    raise
                wait_s = self._wait_s(what, error, tries)
            except (ResourceExhausted, Unavailable, Cancelled) as error:
                timeouts, silent_since = 0, self._clock()
                wait_s = self._wait_s(what, error, tries)
            tries += 1
            await self._sleep(wait_s * (0.5 + self._jitter()))

    def _wait_s(self, what: str, error: GroundworkError, tries: int) -> float:
        if tries % 20 == 5:
            _log.warning("waiting_for_backend", backend=what, reason=error.reason, error=error.message)
        return error.retry_after_s or min(self._longest_wait_s, self._first_wait_s * 2.0 ** min(tries, 20))
