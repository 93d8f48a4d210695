"""Group commit: callers who ask while a commit runs share the next one. A commit costs a file sync (20-40 ms in tantivy),
so ten documents that finish together pay for two, not ten. The idea is the one of DeWitt et al. 1984."""

import asyncio
from collections.abc import Awaitable, Callable


class GroupCommit:
    """Coalesces calls of a commit that covers everything written before it began."""

    def __init__(self, commit: Callable[[], Awaitable[None]]) -> None:
        self._commit = commit
        self._lock = asyncio.Lock()
        self._asked = 0
        self._covered = 0

    async def __call__(self) -> None:
        """Returns once a commit that began after this call has succeeded. A failed one is the failure of its caller
        alone: the next in line tries again for itself."""
        self._asked += 1
        ticket = self._asked
        async with self._lock:
            if self._covered >= ticket:
                return
            covers = self._asked
            await self._commit()
            self._covered = covers
