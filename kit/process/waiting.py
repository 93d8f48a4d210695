"""Waiting for what a process cannot do without, such as the message store. The order of starting does not matter: who waits stays
alive, says in its readiness what for, and goes on by itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from kit.errors import GroundworkError, Unavailable
from kit.observability.ops import Trouble

_log = structlog.get_logger()
T = TypeVar("T")

_FIRST_RETRY_S = 0.1
_LONGEST_RETRY_S = 2.0
_SLOW_AFTER_S = 1.0
"""An attempt that takes longer counts as waiting while it goes on: it may itself be as patient as a client of a cluster must be."""
_QUIET_S = 2.0
"""A wait this short is not logged: services that start together wait for each other."""
_REMIND_EVERY_S = 30.0


@dataclass
class _Wait:
    since_s: float
    problem: str
    logged_at_s: float | None = None


class Waiting:
    """What this process waits for at the moment. Several things may be waited for at once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waits: dict[str, _Wait] = {}

    @property
    def is_waiting(self) -> bool:
        return bool(self._waits)

    @property
    def longest_s(self) -> float:
        """How long what has been waited for longest has been waited for; 0 when nothing is."""
        now = self._clock()
        return max((now - wait.since_s for wait in self._waits.values()), default=0.0)

    def troubles(self) -> Sequence[Trouble]:
        """One for each thing that is waited for, with how long and why."""
        return tuple(
            Trouble(
                name, f"waits for it since {self._clock() - wait.since_s:.0f} s: {wait.problem}", stops_service=True
            )
            for name, wait in self._waits.items()
        )

    async def until(
        self,
        name: str,
        attempt: Callable[[], Awaitable[T]],
        *,
        again_after: tuple[type[Exception], ...] = (Unavailable,),
        longest_retry_s: float = _LONGEST_RETRY_S,
    ) -> T:
        """What `attempt` returns, which is made again and again while it raises one of `again_after`.

        One line is logged when that begins to take long, one every half minute, and one when it goes on.
        """
        retry_s = _FIRST_RETRY_S
        try:
            while True:
                slow = asyncio.get_running_loop().call_later(_SLOW_AFTER_S, self._note, name, "it has not answered yet")
                try:
                    answer = await attempt()
                except again_after as error:
                    self._note(name, _text(error))
                else:
                    self._is_over(name)
                    return answer
                finally:
                    slow.cancel()
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, longest_retry_s)
        finally:
            self._waits.pop(name, None)

    def _note(self, name: str, problem: str) -> None:
        now = self._clock()
        wait = self._waits.setdefault(name, _Wait(now, ""))
        wait.problem = problem
        is_due = (
            now - wait.since_s >= _QUIET_S if wait.logged_at_s is None else now - wait.logged_at_s >= _REMIND_EVERY_S
        )
        if is_due:
            wait.logged_at_s = now
            _log.warning("waiting", dependency=name, since_s=round(now - wait.since_s), problem=wait.problem)

    def _is_over(self, name: str) -> None:
        wait = self._waits.get(name)
        if wait is not None and wait.logged_at_s is not None:
            _log.info("waiting_over", dependency=name, waited_s=round(self._clock() - wait.since_s))


class FailureLogLimit:
    """Limits the log of a loop that fails while something is away: the first failure is logged, then one every half minute."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged_at_s: float | None = None

    def is_due(self) -> bool:
        """Whether this failure is to be logged."""
        now = self._clock()
        if self._logged_at_s is not None and now - self._logged_at_s < _REMIND_EVERY_S:
            return False
        self._logged_at_s = now
        return True

    def is_over(self) -> bool:
        """After a success: whether a failure was logged, so that this is news."""
        was_logged, self._logged_at_s = self._logged_at_s is not None, None
        return was_logged


def _text(error: Exception) -> str:
    if isinstance(error, GroundworkError):
        return error.message
    return str(error) or type(error).__name__
