"""Collections. "default" exists for every tenant without having been made; a collection being deleted takes no more uploads."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from kit.errors import AlreadyExists
from services.ingest.documents import naming
from services.ingest.documents.models import Collection
from services.ingest.errors import BadName, CollectionExists, CollectionNotFound, CollectionProtected
from services.ingest.ports import CollectionClearing, CollectionStore

DEFAULT_COLLECTION_ID = "default"
_MAX_NAME_CHARS = 200


class Catalog:
    """The use cases of collections."""

    def __init__(self, collections: CollectionStore, clearing: CollectionClearing, now: Callable[[], datetime]) -> None:
        self._collections = collections
        self._clearing = clearing
        self._now = now

    async def create(self, tenant_id: str, collection_id: str, name: str) -> Collection:
        """Makes a collection; without an id one is made from the name. Raises CollectionExists, BadName."""
        name = " ".join(name.split())
        if len(name) > _MAX_NAME_CHARS:
            raise BadName(f"the collection's name has {len(name)} characters; use at most {_MAX_NAME_CHARS}")
        collection_id = naming.collection_id(collection_id) if collection_id else naming.collection_id_from(name)
        collection = Collection(tenant_id, collection_id, name or collection_id, self._now())
        if collection_id == DEFAULT_COLLECTION_ID:
            raise CollectionExists(f"collection {collection_id} exists already; choose another id")
        try:
            await self._collections.create(collection)
        except AlreadyExists as error:
            raise await self._taken(tenant_id, collection_id) from error
        return collection

    async def _taken(self, tenant_id: str, collection_id: str) -> CollectionExists:
        there = await self._collections.get(tenant_id, collection_id)
        if there is not None and there.deleting:
            return CollectionExists(
                f"collection {collection_id} is still being deleted; try again in a minute, or choose another id"
            )
        return CollectionExists(f"collection {collection_id} exists already; choose another id")

    async def get(self, tenant_id: str, collection_id: str) -> Collection:
        """Raises CollectionNotFound."""
        if collection_id == DEFAULT_COLLECTION_ID:
            return _default(tenant_id)
        stored = await self._collections.get(tenant_id, naming.collection_id(collection_id))
        if stored is None:
            raise CollectionNotFound(f"there is no collection {collection_id}; create it first or use 'default'")
        if stored.deleting:
            raise CollectionNotFound(
                f"collection {collection_id} is being deleted; use another, or create it again in a minute"
            )
        return stored

    async def all_of(self, tenant_id: str) -> list[Collection]:
        """By id, "default" included."""
        found = {c.collection_id: c async for c in self._collections.all_of(tenant_id) if not c.deleting}
        found.setdefault(DEFAULT_COLLECTION_ID, _default(tenant_id))
        return [found[key] for key in sorted(found)]

    async def delete(self, tenant_id: str, collection_id: str) -> bool:
        """Nobody finds the collection from now on, and its documents are removed; False while that goes on. Raises
        CollectionNotFound, CollectionProtected."""
        if collection_id == DEFAULT_COLLECTION_ID:
            raise CollectionProtected("the collection 'default' cannot be deleted; delete its documents instead")
        collection = await self.get(tenant_id, collection_id)
        await self._collections.put(replace(collection, deleting=True))
        return await self._clearing.clear(tenant_id, collection_id)


def _default(tenant_id: str) -> Collection:
    return Collection(tenant_id, DEFAULT_COLLECTION_ID, "Default", None)
