"""Whether the map of pointers is all that is stored. A watch that is silent looks the same whether nothing changes or nothing gets
through: so the store's leader is asked now and then for its newest change, and that must have arrived here."""

import asyncio
from collections.abc import Sequence

import structlog

from kit.errors import GroundworkError
from kit.observability.ops import Trouble
from services.retriever.ports import RevisionStore
from services.retriever.revisions.revision_map import RevisionMap

_log = structlog.get_logger()
_CHECKS_PER_BOUND = 6
"""Two or three of them may be lost or late before the map counts as stale."""
_RETRY_S = 0.5
"""After a failure: searches begin again as soon as the store is back."""


class Freshness:
    """Confirms the map every sixth of the time after which it would be stale."""

    def __init__(self, store: RevisionStore, revisions: RevisionMap, *, staleness_s: float) -> None:
        self._store = store
        self._revisions = revisions
        self._interval_s = staleness_s / _CHECKS_PER_BOUND
        self._is_confirmed = asyncio.Event()

    async def wait_confirmed(self) -> None:
        """Returns once the map has been all that is stored."""
        await self._is_confirmed.wait()

    def troubles(self) -> Sequence[Trouble]:
        """For operators: who is cut off shows nothing, so other retrievers should be asked."""
        if not (self._is_confirmed.is_set() and self._revisions.is_stale):
            return ()
        since = f"for {self._revisions.age_s:.0f} s it has not heard which documents were deleted or replaced"
        message = f"{since}, so every search fails; the message store does not answer"
        return (Trouble("revisions", message, stops_service=True),)

    async def run(self) -> None:
        """Checks until cancelled."""
        was_stale = False
        while True:
            is_confirmed = await self._check()
            if self._is_confirmed.is_set() and self._revisions.is_stale != was_stale:
                was_stale = not was_stale
                event = "revisions_stale" if was_stale else "revisions_fresh_again"
                (_log.error if was_stale else _log.info)(event)
            await asyncio.sleep(self._interval_s if is_confirmed else min(_RETRY_S, self._interval_s))

    async def _check(self) -> bool:
        asked_at_s = self._revisions.now_s
        try:
            async with asyncio.timeout(self._interval_s):
                await self._revisions.wait_followed(await self._store.latest_version())
        except (GroundworkError, TimeoutError):
            return False
        self._revisions.confirm(asked_at_s)
        self._is_confirmed.set()
        return True
