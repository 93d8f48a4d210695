"""Group commit: callers who ask while a commit runs, or in the rest after it, share the next one. A commit costs a file sync and,
in tantivy, a segment with all its dictionaries (10-30 ms of CPU): documents that finish together pay once. The idea is the one
of DeWitt et al. 1984."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

REST_PER_COMMIT = 32
"""A commit is followed by a rest of this many times its own duration, so that commits take a thirtieth of the time."""
LONGEST_REST_S = 1.5
"""Nobody waits longer than this for the others. The first commit after a rest starts at once."""
SHORT_REST_PER_COMMIT = 2
"""The rest where nobody else is to come, though somebody may, or where enough wait."""
ENOUGH = 16
"""Callers that make a commit worth its while: each pays 1 to 2 ms."""


class GroupCommit:
    """Coalesces calls of a commit that covers everything written before it began."""

    def __init__(self, commit: Callable[[], Awaitable[None]]) -> None:
        self._commit = commit
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
        if is_last or self._asked - self._covered >= ENOUGH:
            self._no_more.set()
        async with self._lock:
            if self._covered >= ticket:
                return
            await self._rest()
            covers, began = self._asked, clock()
            self._no_more.clear()
            await self._commit()
            self._covered = covers
            self._ended_at, self._took_s = clock(), clock() - began

    async def _rest(self) -> None:
        short, long = (
            self._ended_at + min(LONGEST_REST_S, times * self._took_s)
            for times in (SHORT_REST_PER_COMMIT, REST_PER_COMMIT)
        )
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(short - clock())
        if clock() < long:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(long):
                    await self._no_more.wait()
