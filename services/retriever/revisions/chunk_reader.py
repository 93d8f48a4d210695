"""Chunks by id with their neighbours. Either index can give them, so one is enough."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from kit.errors import GroundworkError
from services.retriever.concurrency import engine_deadline
from services.retriever.indexes.chunk_encoding import readable
from services.retriever.indexes.stored_chunk import StoredChunk
from services.retriever.models import Chunk, ChunkWindow, RevisionKey, Section
from services.retriever.options import READ_TIMEOUT_S
from services.retriever.ports import ChunkIndex, CollectionRights
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.validation import check_fetch, check_scope_id, check_section

_log = structlog.get_logger()
Found = TypeVar("Found")


class ChunkReader:
    """Reads from the first index that answers."""

    def __init__(self, indexes: Sequence[ChunkIndex], revisions: RevisionMap, rights: CollectionRights) -> None:
        self._indexes = indexes
        self._revisions = revisions
        self._rights = rights

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str], window: int) -> list[ChunkWindow]:
        """In the order of the ids, without those that are unknown, not active, or not the caller's to read.
        Raises IndexUnavailable, RevisionsStale or CollectionsStale."""
        check_scope_id("tenant_id", tenant_id)
        check_fetch(chunk_ids, window)
        self._revisions.require_fresh()
        found = await self._from_any(lambda index: self._fetch_from(index, tenant_id, chunk_ids, window))
        readable = await self._rights.readable({each.chunk.collection_id for each in found})
        hidden = self._rights.hidden(readable)
        return [each for each in found if each.chunk.collection_id in readable and each.chunk.document_id not in hidden]

    async def section(self, tenant_id: str, document_id: str, first_ordinal: int, chunk_count: int) -> Section:
        """Chunks of the document's visible revision from a position on, in reading order; none of one that is not visible, or not
        to the caller. Raises IndexUnavailable, RevisionsStale or CollectionsStale."""
        check_scope_id("tenant_id", tenant_id)
        check_section(document_id, chunk_count)
        self._revisions.require_fresh()
        pointer = self._revisions.get(tenant_id, document_id)
        if pointer is None or pointer.deleted or not await self._rights.readable([pointer.collection_id]):
            return Section((), 0)
        if document_id in self._rights.hidden([pointer.collection_id]):
            return Section((), 0)
        key = RevisionKey(tenant_id, document_id, pointer.revision_id)
        ordinals = list(range(first_ordinal, min(first_ordinal + chunk_count, pointer.chunk_count)))
        if not ordinals:
            return Section((), pointer.chunk_count)
        chunks = await self._from_any(lambda index: self._section_from(index, key, ordinals))
        if not self._revisions.is_active(tenant_id, document_id, pointer.revision_id):
            return Section((), 0)  # deleted or replaced while the index was read
        return Section(chunks, pointer.chunk_count)

    async def with_neighbours(self, tenant_id: str, chunks: Sequence[Chunk], window: int) -> list[ChunkWindow]:
        """Chunks that are known already, each with its neighbours, in their order. Raises IndexUnavailable."""

        async def read(index: ChunkIndex) -> list[ChunkWindow]:
            async with engine_deadline(READ_TIMEOUT_S):
                neighbours = await self._neighbours(index, tenant_id, chunks, window)
            return [_window(chunk, neighbours, window) for chunk in chunks]

        return await self._from_any(read)

    async def _from_any(self, read: Callable[[ChunkIndex], Awaitable[list[Found]]]) -> list[Found]:
        *others, last = self._indexes
        for index in others:
            try:
                return await read(index)
            except GroundworkError as error:
                _log.warning("fetch_from_index_failed", reason=error.reason, error=error.message)
        return await read(last)

    async def _section_from(self, index: ChunkIndex, key: RevisionKey, ordinals: Sequence[int]) -> list[Chunk]:
        async with engine_deadline(READ_TIMEOUT_S):
            found = [chunk for _, chunk in readable(await index.fetch_ordinals(key, ordinals))]
        return sorted(found, key=lambda chunk: chunk.ordinal)

    async def _fetch_from(
        self, index: ChunkIndex, tenant_id: str, chunk_ids: Sequence[str], window: int
    ) -> list[ChunkWindow]:
        async with engine_deadline(READ_TIMEOUT_S):
            found = {
                stored.chunk_id: chunk
                for stored, chunk in readable(await index.fetch(tenant_id, list(dict.fromkeys(chunk_ids))))
                if self._is_active(tenant_id, stored)
            }
            wanted = [found[chunk_id] for chunk_id in chunk_ids if chunk_id in found]
            neighbours = await self._neighbours(index, tenant_id, wanted, window) if window else {}
        return [_window(chunk, neighbours, window) for chunk in wanted]

    async def _neighbours(
        self, index: ChunkIndex, tenant_id: str, chunks: Sequence[Chunk], window: int
    ) -> dict[tuple[str, int], Chunk]:
        """By revision and position."""
        positions: dict[RevisionKey, set[int]] = {}
        for chunk in chunks:
            key = RevisionKey(tenant_id, chunk.document_id, chunk.revision_id)
            around = range(max(0, chunk.ordinal - window), chunk.ordinal + window + 1)
            positions.setdefault(key, set()).update(around)
        return {
            (stored.revision_id, chunk.ordinal): chunk
            for key, ordinals in positions.items()
            for stored, chunk in readable(await index.fetch_ordinals(key, sorted(ordinals)))
        }

    def _is_active(self, tenant_id: str, stored: StoredChunk) -> bool:
        return self._revisions.is_active(tenant_id, stored.document_id, stored.revision_id)


def _window(chunk: Chunk, neighbours: dict[tuple[str, int], Chunk], window: int) -> ChunkWindow:
    def at(ordinals: range) -> tuple[Chunk, ...]:
        return tuple(neighbours[chunk.revision_id, n] for n in ordinals if (chunk.revision_id, n) in neighbours)

    return ChunkWindow(
        chunk=chunk,
        before=at(range(max(0, chunk.ordinal - window), chunk.ordinal)),
        after=at(range(chunk.ordinal + 1, chunk.ordinal + window + 1)),
    )
