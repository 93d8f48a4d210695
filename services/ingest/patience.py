"""Waiting for a busy neighbour. Backpressure is not a failure of the document: it is waited out here, while the queue's heartbeats
keep the job, and never costs a delivery."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from kit.errors import DeadlineExceeded, ResourceExhausted, Unavailable

_log = structlog.get_logger()
_T = TypeVar("_T")
_MAX_TIMEOUTS = 5


class Patience:
    """Repeats a call while the callee is full or away. `sleep` and `jitter` are injected for tests."""

    def __init__(
        self,
        *,
        first_wait_s: float = 0.1,
        longest_wait_s: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._sleep = sleep
        self._jitter = jitter

    async def call(self, what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """The answer of `attempt`. ResourceExhausted and Unavailable are waited out for as long as they last; five
        time-outs in a row are the caller's to handle."""
        tries = timeouts = 0
        while True:
            try:
                return await attempt()
            except (ResourceExhausted, Unavailable, DeadlineExceeded) as error:
                timeouts = timeouts + 1 if isinstance(error, DeadlineExceeded) else 0
                if timeouts >= _MAX_TIMEOUTS:
                    raise
                wait_s = error.retry_after_s or min(self._longest_wait_s, self._first_wait_s * 2**tries)
                if tries % 20 == 5:
                    _log.warning("waiting_for_backend", backend=what, reason=error.reason, error=error.message)
                tries += 1
                await self._sleep(wait_s * (0.5 + self._jitter()))
