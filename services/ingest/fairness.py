"""Shares of what is scarce. A plain semaphore serves its callers in the order in which they came: a book that asks for a hundred
shares at once keeps a note waiting for all of them, and a tenant with a thousand notes keeps everybody waiting."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from services.ingest.documents.models import Lane

_Key = tuple[str, Lane, str]
"""Tenant, lane and document."""


@dataclass(frozen=True, eq=False)
class _Turn:
    size: int
    given: "asyncio.Future[None]"


class FairShares:
    """At most `limit` in use at once, at most `per_document` of it by one document. What falls free goes to the tenants in turn, to
    each tenant's lanes in turn, and to each lane's documents in turn, however much of each is waiting."""

    def __init__(self, limit: int, per_document: int) -> None:
        self._free = limit
        self._per_document = per_document
        self._held: Counter[_Key] = Counter()
        self._waiting: dict[str, dict[Lane, dict[str, deque[_Turn]]]] = {}
        """By tenant, lane and document, all in the order of their turns."""

    @asynccontextmanager
    async def hold(
        self, tenant_id: str, document_id: str, size: int, lane: Lane = Lane.INTERACTIVE
    ) -> AsyncIterator[None]:
        """Waits for `size`, or all that a document may have if that is less, and holds it for the block."""
        turn = _Turn(max(0, min(size, self._per_document)), asyncio.get_running_loop().create_future())
        key = (tenant_id, lane, document_id)
        lanes = self._waiting.setdefault(tenant_id, {})
        lanes.setdefault(lane, {}).setdefault(document_id, deque()).append(turn)
        self._hand_out()
        try:
            await turn.given
        except asyncio.CancelledError:
            if turn.given.done() and not turn.given.cancelled():
                self._give_back(key, turn.size)  # it was handed out in the same moment
            else:
                self._leave(key, turn)
            raise
        try:
            yield
        finally:
            self._give_back(key, turn.size)

    def _hand_out(self) -> None:
        while (key := self._next()) is not None:
            tenant_id, lane, document_id = key
            lanes = self._waiting.pop(tenant_id)
            documents = lanes.pop(lane)
            turns = documents.pop(document_id)
            turn = turns.popleft()
            if turns:
                documents[document_id] = turns  # behind the lane's others
            if documents:
                lanes[lane] = documents  # behind the tenant's other lane
            if lanes:
                self._waiting[tenant_id] = lanes  # behind all other tenants
            if turn.given.cancelled():
                continue
            self._free -= turn.size
            self._held[key] += turn.size
            turn.given.set_result(None)

    def _next(self) -> _Key | None:
        """Whose turn it is, once enough is free for them: nobody is passed over for asking for much, only for having it."""
        for tenant_id, lanes in self._waiting.items():
            for lane, documents in lanes.items():
                for document_id, turns in documents.items():
                    key = (tenant_id, lane, document_id)
                    if self._held[key] + turns[0].size <= self._per_document:
                        return key if turns[0].size <= self._free else None
        return None

    def _give_back(self, key: _Key, size: int) -> None:
        self._free += size
        self._held[key] -= size
        if not self._held[key]:
            del self._held[key]
        self._hand_out()

    def _leave(self, key: _Key, turn: _Turn) -> None:
        tenant_id, lane, document_id = key
        lanes = self._waiting.get(tenant_id, {})
        documents = lanes.get(lane, {})
        turns = documents.get(document_id, deque())
        with suppress(ValueError):  # it was passed over already
            turns.remove(turn)
        if not turns:
            documents.pop(document_id, None)
        if not documents:
            lanes.pop(lane, None)
        if not lanes:
            self._waiting.pop(tenant_id, None)
        self._hand_out()
