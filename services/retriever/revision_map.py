"""Which revision of each document is visible, in memory: every hit of every search is checked against it."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import structlog

from kit.errors import GroundworkError
from services.retriever.models import CollectionStats, Pointer, PointerEntry
from services.retriever.ports import RevisionStore

_log = structlog.get_logger()


class RevisionMap:
    """The pointers of all documents, by tenant. Entries may arrive late or twice: the highest version wins."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, PointerEntry]] = {}
        self._loaded = asyncio.Event()

    def apply(self, entry: PointerEntry) -> None:
        """Takes over a stored pointer unless a newer one is known."""
        documents = self._entries.setdefault(entry.tenant_id, {})
        known = documents.get(entry.document_id)
        if known is None or known.version < entry.version:
            documents[entry.document_id] = entry

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
