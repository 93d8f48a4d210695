"""Which revision of each document is visible, in memory: every hit of every search is checked against it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from kit.errors import GroundworkError
from services.retriever.models import CollectionStats, Pointer, PointerEntry
from services.retriever.ports import RevisionStore

_log = structlog.get_logger()


@dataclass
class _Size:
    """What is active in a collection, and how often that has changed. `languages` counts documents."""

    chunk_count: int = 0
    version: int = 0
    languages: Counter[str] = field(default_factory=Counter)

    def change(self, pointer: Pointer, sign: int) -> None:
        self.version += 1
        if not pointer.deleted:
            self.chunk_count += sign * pointer.chunk_count
            self.languages.update(dict.fromkeys(pointer.languages, sign))


class RevisionMap:
    """The pointers of all documents, by tenant. Entries may arrive late or twice: the highest version wins."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, PointerEntry]] = {}
        self._sizes: dict[tuple[str, str], _Size] = {}
        self._loaded = asyncio.Event()

    def apply(self, entry: PointerEntry) -> None:
        """Takes over a stored pointer unless a newer one is known."""
        documents = self._entries.setdefault(entry.tenant_id, {})
        known = documents.get(entry.document_id)
        if known is None or known.version < entry.version:
            documents[entry.document_id] = entry
            if known is not None:
                self._size(known).change(known.pointer, -1)
            self._size(entry).change(entry.pointer, 1)

    def get(self, tenant_id: str, document_id: str) -> Pointer | None:
        entry = self._entries.get(tenant_id, {}).get(document_id)
        return entry.pointer if entry else None

    def is_active(self, tenant_id: str, document_id: str, revision_id: str) -> bool:
        """Whether a search may show chunks of this revision."""
        pointer = self.get(tenant_id, document_id)
        return pointer is not None and not pointer.deleted and pointer.revision_id == revision_id

    def stats(self, tenant_id: str, collection_ids: Sequence[str]) -> list[CollectionStats]:
        """Sizes over active revisions, by collection id. No collections means all of the tenant."""
        wanted = set(collection_ids)
        sizes: dict[str, tuple[int, int]] = {}
        for entry in self._entries.get(tenant_id, {}).values():
            pointer = entry.pointer
            if pointer.deleted or (wanted and pointer.collection_id not in wanted):
                continue
            documents, chunks = sizes.get(pointer.collection_id, (0, 0))
            sizes[pointer.collection_id] = (documents + 1, chunks + pointer.chunk_count)
        return [CollectionStats(collection_id, *size) for collection_id, size in sorted(sizes.items())]

    def chunk_count(self, tenant_id: str, collection_ids: Sequence[str]) -> int:
        """Active chunks in the collections together, counted beforehand: every search asks."""
        sizes = (self._sizes.get((tenant_id, collection_id)) for collection_id in collection_ids)
        return sum(size.chunk_count for size in sizes if size)

    def languages(self, tenant_id: str, collection_ids: Sequence[str]) -> tuple[str, ...]:
        """Languages of the documents in the collections, most common first; empty when none is known."""
        documents: Counter[str] = Counter()
        for collection_id in collection_ids:
            if size := self._sizes.get((tenant_id, collection_id)):
                documents.update(size.languages)
        return tuple(language for language, count in documents.most_common() if count > 0)

    def versions(self, tenant_id: str, collection_ids: Sequence[str]) -> tuple[int, ...]:
        """One number a collection, higher after every change of a pointer in it. Of this process only."""
        sizes = (self._sizes.get((tenant_id, collection_id)) for collection_id in collection_ids)
        return tuple(size.version if size else 0 for size in sizes)

    def _size(self, entry: PointerEntry) -> "_Size":
        return self._sizes.setdefault((entry.tenant_id, entry.pointer.collection_id), _Size())

    async def wait_loaded(self) -> None:
        """Returns once every pointer that was stored at the start is known."""
        await self._loaded.wait()

    async def follow(self, store: RevisionStore, *, retry_s: float, resync_s: float) -> None:
        """Keeps the map up to date until cancelled.

        Reads everything again after `retry_s` when the store is lost, and every `resync_s` in any case, so that a change
        which a broken connection swallowed is seen at last.
        """
        while True:
            try:
                async with asyncio.timeout(resync_s):
                    await self._follow_once(store)
            except TimeoutError:
                continue
            except GroundworkError as error:
                _log.warning("revision_watch_lost", reason=error.reason, error=error.message)
            await asyncio.sleep(retry_s)

    async def _follow_once(self, store: RevisionStore) -> None:
        async with aclosing(store.watch()) as changes:
            async for entry in changes:
                if entry is None:
                    self._loaded.set()
                else:
                    self.apply(entry)
