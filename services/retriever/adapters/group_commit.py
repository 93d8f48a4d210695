"""Group commit: callers who ask while a commit runs, or in the rest after it, share the next one: documents that finish together
pay once. The idea is the one of DeWitt et al. 1984."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rest:
    """How long an engine rests after a commit, so that the next covers more callers. The first after a rest starts at once."""

    per_commit: float
    """In durations of the commit before: 32 leaves commits a thirtieth of the time."""

    short_per_commit: float
    """The same where nobody else is to come, though somebody may, or where enough wait."""

    longest_s: float
    """Nobody waits longer than this for the others."""

    enough: int
    """Callers that make a commit worth its while."""

    def after(self, took_s: float) -> tuple[float, float]:
        """Seconds of rest after a commit that took so long: the short one, and the one in which others are waited for."""
        short_s, long_s = self.short_per_commit * took_s, self.per_commit * took_s
        return min(self.longest_s, short_s), min(self.longest_s, long_s)


IN_PROCESS = Rest(per_commit=32, short_per_commit=2, longest_s=1.5, enough=16)
"""For the embedded engines, whose commits take the CPU that embeds and searches: a file sync and, in tantivy, a segment with all
its dictionaries, 10-30 ms. Sixteen callers pay 1 to 2 ms each."""


class GroupCommit:
    """Coalesces calls of a commit that covers everything written before it began. `rest` is the engine's: it depends on what a
    commit costs there, and whom."""

    def __init__(self, commit: Callable[[], Awaitable[None]], rest: Rest) -> None:
        self._commit = commit
        self._rest = rest
        self._lock = asyncio.Lock()
        self._asked = 0
        self._covered = 0
        self._ended_at = 0.0
        self._took_s = 0.0
        self._no_more = asyncio.Event()

    async def __call__(self, *, is_last: bool = False) -> None:
        """Returns once a commit that began after this call has succeeded. `is_last`: nobody else is to come soon, so nobody is
        waited for. A failed commit is the failure of its caller alone: the next in line tries again for itself."""
        clock = asyncio.get_running_loop().time
        self._asked += 1
        ticket = self._asked
        if is_last or self._asked - self._covered >= self._rest.enough:
            self._no_more.set()
        async with self._lock:
            if self._covered >= ticket:
                return
            await self._take_rest()
            covers, began = self._asked, clock()
            self._no_more.clear()
            await self._commit()
            self._covered = covers
            self._ended_at, self._took_s = clock(), clock() - began

    async def _take_rest(self) -> None:
        short, long = (self._ended_at + rest_s for rest_s in self._rest.after(self._took_s))
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(short - clock())
        if clock() < long:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(long):
                    await self._no_more.wait()
