"""Emptying collections that are being deleted. Nobody can name such a collection any more, so that its documents may go behind the
call that deletes it: thousands of them take a minute."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.models import Status
from services.ingest.ports import CollectionStore, DocumentStore, Leases

PATIENCE_S = 5.0
"""Longest that a caller waits to hear that a collection is empty."""

_AT_ONCE = 2
_SUBJECT = "ingest-clearing"

_log = structlog.get_logger()


@dataclass(frozen=True)
class _Order:
    tenant_id: str
    collection_id: str
    cleared: asyncio.Event = field(default_factory=asyncio.Event)


class Clearing:
    """Empties marked collections. What a failure or a kill interrupts, the sweep takes up again."""

    def __init__(
        self, collections: CollectionStore, documents: DocumentStore, deletion: Deletion, leases: Leases
    ) -> None:
        self._collections = collections
        self._documents = documents
        self._deletion = deletion
        self._leases = leases
        self._queue: asyncio.Queue[_Order] = asyncio.Queue()

    async def clear(self, tenant_id: str, collection_id: str) -> bool:
        """Has a marked collection emptied; says whether that is done already. `run` must be running."""
        order = _Order(tenant_id, collection_id)
        self._queue.put_nowait(order)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await order.cleared.wait()
        return order.cleared.is_set()

    async def run(self) -> None:
        """Works until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            order = await self._queue.get()
            try:
                with use_principal(Principal(order.tenant_id, _SUBJECT)):
                    await self.finish(order.tenant_id, order.collection_id)
            except GroundworkError as error:
                _log.warning("clearing_failed", collection_id=order.collection_id, error=error.message)
            else:
                order.cleared.set()

    async def finish(self, tenant_id: str, collection_id: str) -> None:
        """Deletes what is left of a collection if it is marked as being deleted. Two who do this take turns."""
        async with self._leases.hold(f"collection.{tenant_id}.{collection_id}"):
            collection = await self._collections.get(tenant_id, collection_id)
            if collection is None or not collection.deleting:
                return
            left = [
                stored
                async for stored in self._documents.all_of(tenant_id)
                if stored.document.collection_id == collection_id
                and not (stored.document.status is Status.DELETED and stored.document.swept)
            ]
            await self._deletion.delete_all(tenant_id, left)
            await self._collections.delete(tenant_id, collection_id)
            _log.info("collection_cleared", collection_id=collection_id, documents=len(left))
