"""Group commit: callers who ask while a commit runs, or in the rest after it, share the next one. A commit costs a file sync and,
in tantivy, a segment with all its dictionaries (10-30 ms of CPU): documents that finish together pay once. The idea is the one
of DeWitt et al. 1984."""

import asyncio
from collections.abc import Awaitable, Callable

REST_PER_COMMIT = 16
"""A commit is followed by a rest of this many times its own duration, so that commits take at most a ninth of the time."""
LONGEST_REST_S = 0.7
"""Nobody waits longer than this for the others. The first commit after a rest starts at once."""


class GroupCommit:
    """Coalesces calls of a commit that covers everything written before it began."""

    def __init__(self, commit: Callable[[], Awaitable[None]]) -> None:
        self._commit = commit
        self._lock = asyncio.Lock()
        self._asked = 0
        self._covered = 0
        self._rested_at = 0.0

    async def __call__(self) -> None:
        """Returns once a commit that began after this call has succeeded. A failed one is the failure of its caller
        alone: the next in line tries again for itself."""
        clock = asyncio.get_running_loop().time
        self._asked += 1
        ticket = self._asked
        async with self._lock:
            if self._covered >= ticket:
                return
            await asyncio.sleep(max(0.0, self._rested_at - clock()))
            covers, began = self._asked, clock()
            await self._commit()
            self._covered = covers
            self._rested_at = clock() + min(LONGEST_REST_S, REST_PER_COMMIT * (clock() - began))
