"""What is recorded of the collections' embedding models, in memory: every search asks.

It may lag. A search then goes by the model of before, in whose space the documents still lie, or, once they do not, by the one that
their pointers name: nothing wrong is shown, and nothing is left out.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing

import structlog

from kit.errors import GroundworkError
from services.retriever.model_change.collection_embedding import CollectionEmbedding
from services.retriever.ports import EmbeddingEntry, EmbeddingStore

_log = structlog.get_logger()
_RETRY_S = 0.5


class EmbeddingMap:
    """CollectionModels. Entries may arrive late or twice: the highest version wins."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], EmbeddingEntry] = {}
        self._loaded = asyncio.Event()
        self.changed = asyncio.Event()
        """Set after every change; cleared by the task that waits for one."""

    def chosen(self, tenant_id: str, collection_ids: Iterable[str]) -> Mapping[str, str]:
        records = {each: self.get(tenant_id, each) for each in collection_ids}
        return {collection_id: record.model for collection_id, record in records.items() if record is not None}

    def versions(self, tenant_id: str, collection_ids: Iterable[str]) -> tuple[int, ...]:
        entries = (self._entries.get((tenant_id, collection_id)) for collection_id in collection_ids)
        return tuple(entry.version if entry else 0 for entry in entries)

    def get(self, tenant_id: str, collection_id: str) -> CollectionEmbedding | None:
        """None of a collection that follows the installation: its documents' pointers name their models."""
        entry = self._entries.get((tenant_id, collection_id))
        return entry.record if entry else None

    def all(self) -> list[EmbeddingEntry]:
        """Of every collection that has a record, in no order."""
        return [entry for entry in self._entries.values() if entry.record is not None]

    def apply(self, entry: EmbeddingEntry) -> None:
        """Takes over what is stored unless something newer is known."""
        place = entry.tenant_id, entry.collection_id
        known = self._entries.get(place)
        if known is None or known.version < entry.version:
            self._entries[place] = entry
            self.changed.set()

    async def wait_loaded(self) -> None:
        """Returns once every record that was stored at the start is known."""
        await self._loaded.wait()

    async def follow(self, store: EmbeddingStore) -> None:
        """Keeps the map up to date until cancelled."""
        while True:
            try:
                await self._follow_once(store)
            except GroundworkError as error:
                _log.warning("embedding_watch_lost", reason=error.reason, error=error.message)
            await asyncio.sleep(_RETRY_S)

    async def _follow_once(self, store: EmbeddingStore) -> None:
        stored: set[tuple[str, str]] | None = set()
        async with aclosing(store.watch()) as changes:
            async for entry in changes:
                if entry is None:
                    for place in set(self._entries).difference(stored or ()):
                        del self._entries[place]
                    stored = None
                    self._loaded.set()
                    self.changed.set()
                    continue
                self.apply(entry)
                if stored is not None:
                    stored.add((entry.tenant_id, entry.collection_id))
