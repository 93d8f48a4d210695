"""Which collections and documents a caller may read, by the records that ingestion keeps of them."""

import asyncio
from collections.abc import Iterable

from kit.access.principal import current_principal
from kit.jetstream import Entry, Nats
from kit.stores.collection_map import CollectionMap
from kit.stores.collections import CollectionAccess, decode_access, is_implicit, may_manage
from kit.stores.document_access import DocumentAccessMap
from services.retriever.errors import CollectionNotFound, NotYours


class NatsCollections:
    """CollectionRights over maps of both buckets, which this service never writes."""

    def __init__(self, known: CollectionMap[CollectionAccess], documents: DocumentAccessMap) -> None:
        self._known = known
        self._documents = documents

    @classmethod
    async def open(cls, nats: Nats) -> "NatsCollections":
        return cls(await CollectionMap.open_to_read(nats, _decode), await DocumentAccessMap.open_to_read(nats))

    async def follow(self) -> None:
        """Keeps what is known up to date, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._known.run())
            group.create_task(self._documents.run())

    async def wait_known(self) -> None:
        """Returns once everything that is stored is known: for readiness."""
        await self._known.wait_confirmed()
        await self._documents.wait_confirmed()

    async def readable(self, collection_ids: Iterable[str]) -> tuple[str, ...]:
        return await self._known.readable(current_principal(), collection_ids)

    def hidden(self, collection_ids: Iterable[str]) -> frozenset[str]:
        caller = current_principal()
        if caller.sees_all:
            self._documents.require_fresh()
            return frozenset()
        closed = [
            self._documents.hidden(caller, each)
            for each in collection_ids
            if not may_manage(caller, each, self._known.known(caller.tenant_id, each))
        ]
        return closed[0] if len(closed) == 1 else frozenset().union(*closed)

    def allow_local_models_only(self, tenant_id: str, collection_ids: Iterable[str]) -> bool:
        return any(self._known.allows_local_models_only(tenant_id, each) for each in collection_ids)

    async def require_changeable(self, collection_id: str) -> None:
        caller = current_principal()
        record = self._known.known(caller.tenant_id, collection_id)
        if record is None:
            record = await self._known.stored(caller.tenant_id, collection_id)
        is_there = record is not None or is_implicit(collection_id)
        if not (is_there and await self._known.readable(caller, (collection_id,))):
            raise CollectionNotFound(f"there is no collection {collection_id}, or it is not yours to see")
        if not may_manage(caller, collection_id, record):
            raise NotYours(f"only the owner of collection {collection_id} may change its embedding model")

    async def is_gone(self, tenant_id: str, collection_id: str) -> bool:
        if is_implicit(collection_id) or self._known.known(tenant_id, collection_id) is not None:
            return False
        return await self._known.stored(tenant_id, collection_id) is None


def _decode(entry: Entry) -> CollectionAccess | None:
    return decode_access(entry.value or b"")
