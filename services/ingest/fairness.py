"""Shares of what is scarce. A plain semaphore serves whoever came first: a book that asks for a hundred shares at once keeps a note
waiting for all of them, and a tenant with a thousand notes keeps everybody waiting."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class _Turn:
    size: int
    given: "asyncio.Future[None]"


class FairShares:
    """At most `limit` in use at once, at most `per_document` of it by one document. What falls free goes to the tenants in turn,
    and to each tenant's documents in turn, however much of each is waiting."""

    def __init__(self, limit: int, per_document: int) -> None:
        self._free = limit
        self._per_document = per_document
        self._held: Counter[tuple[str, str]] = Counter()
        self._waiting: dict[str, dict[str, deque[_Turn]]] = {}
        """By tenant and document, both in the order of their turns."""

    @asynccontextmanager
    async def hold(self, tenant_id: str, document_id: str, size: int) -> AsyncIterator[None]:
        """Waits for `size`, or all that a document may have if that is less, and holds it for the block."""
        turn = _Turn(max(0, min(size, self._per_document)), asyncio.get_running_loop().create_future())
        self._waiting.setdefault(tenant_id, {}).setdefault(document_id, deque()).append(turn)
        self._hand_out()
        try:
            await turn.given
        except asyncio.CancelledError:
            if turn.given.done() and not turn.given.cancelled():
                self._give_back(tenant_id, document_id, turn.size)  # it was handed out in the same moment
            else:
                self._leave(tenant_id, document_id, turn)
            raise
        try:
            yield
        finally:
            self._give_back(tenant_id, document_id, turn.size)

    def _hand_out(self) -> None:
        while (key := self._next()) is not None:
            tenant_id, document_id = key
            documents = self._waiting.pop(tenant_id)
            turns = documents.pop(document_id)
            turn = turns.popleft()
            if turns:
                documents[document_id] = turns  # behind the tenant's others
            if documents:
                self._waiting[tenant_id] = documents  # behind all other tenants
            if turn.given.cancelled():
                continue
            self._free -= turn.size
            self._held[key] += turn.size
            turn.given.set_result(None)

    def _next(self) -> tuple[str, str] | None:
        """Whose turn it is, once enough is free for them: nobody is passed over for asking for much, only for having it."""
        for tenant_id, documents in self._waiting.items():
            for document_id, turns in documents.items():
                if self._held[tenant_id, document_id] + turns[0].size <= self._per_document:
                    return (tenant_id, document_id) if turns[0].size <= self._free else None
        return None

    def _give_back(self, tenant_id: str, document_id: str, size: int) -> None:
        self._free += size
        self._held[tenant_id, document_id] -= size
        if not self._held[tenant_id, document_id]:
            del self._held[tenant_id, document_id]
        self._hand_out()

    def _leave(self, tenant_id: str, document_id: str, turn: _Turn) -> None:
        documents = self._waiting.get(tenant_id, {})
        turns = documents.get(document_id, deque())
        with suppress(ValueError):  # it was passed over already
            turns.remove(turn)
        if not turns:
            documents.pop(document_id, None)
        if not documents:
            self._waiting.pop(tenant_id, None)
        self._hand_out()
