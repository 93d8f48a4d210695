"""What the indexes hold of a revision, for ingestion: its vectors, so that unchanged text is not embedded again, and whether it is
still visible and whole."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from services.retriever.concurrency import both, engine_deadline
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.chunk_encoding import readable
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import Pointer, RevisionKey, Vectors
from services.retriever.options import READ_TIMEOUT_S
from services.retriever.ports import LexicalIndex
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.validation import check_id, check_revision, check_revision_count, check_scope_id

_CHUNKS_PER_READ = 128
"""200 KB of vectors at 384 dimensions: far below what a message may hold, and a few milliseconds of an engine."""


class RevisionState(Enum):
    """What the indexes hold of a revision."""

    ACTIVE = "active"
    INCOMPLETE = "incomplete"
    INACTIVE = "inactive"
    DELETED = "deleted"


@dataclass(frozen=True)
class HeldRevision:
    """The state of a revision, and the number of the document's visible one; 0 when there is none."""

    document_id: str
    state: RevisionState
    active_number: int


class RevisionReader:
    """Reads both indexes and the map of pointers; changes nothing."""

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        revisions: RevisionMap,
        is_filling: Callable[[RevisionKey], bool] = lambda _: False,
    ) -> None:
        """`is_filling`: whether the revision is just being filled in where it is missing."""
        self._dense = dense
        self._lexical = lexical
        self._revisions = revisions
        self._is_filling = is_filling

    async def vectors(self, tenant_id: str, document_id: str, model: str) -> AsyncIterator[tuple[list[str], Vectors]]:
        """Content hashes of the document's active revision with their vectors, some at a time, in reading order.

        Nothing when no revision is active or the index holds vectors of another model. Raises IndexUnavailable.
        """
        check_scope_id("tenant_id", tenant_id)
        check_id("document_id", document_id)
        pointer = self._revisions.get(tenant_id, document_id)
        if pointer is None or pointer.deleted:
            return
        key = RevisionKey(tenant_id, document_id, pointer.revision_id)
        async with engine_deadline(READ_TIMEOUT_S):
            models = pointer.models if pointer.embedding_model else (await self._dense.model_of(key), *pointer.copies)
        if model not in models:
            return
        for start in range(0, pointer.chunk_count, _CHUNKS_PER_READ):
            ordinals = range(start, min(start + _CHUNKS_PER_READ, pointer.chunk_count))
            hashes, vectors = await self._read(key, ordinals, model)
            if hashes:
                yield hashes, vectors

    async def _read(self, key: RevisionKey, ordinals: Sequence[int], model: str) -> tuple[list[str], Vectors]:
        async with engine_deadline(READ_TIMEOUT_S):
            stored = await self._lexical.fetch_ordinals(key, ordinals)
            chunk_ids = [each.chunk_id for each in stored]
            found = await self._dense.vectors(key.tenant_id, chunk_ids, dict.fromkeys(chunk_ids, model))
        rows = {
            chunk.content_hash: found[each.chunk_id]
            for each, chunk in readable(stored)
            if each.chunk_id in found and chunk.content_hash
        }
        return list(rows), np.stack(list(rows.values())) if rows else np.zeros((0, 0), np.float32)

    async def check(self, keys: Sequence[RevisionKey]) -> list[HeldRevision]:
        """The state of each revision, in their order. Raises IndexUnavailable or RevisionsStale rather than guess."""
        check_revision_count(keys)
        self._revisions.require_fresh()
        for key in keys:
            check_revision(key)
        return [await self._check(key) for key in keys]

    def visible(self, tenant_id: str) -> list[str]:
        """Ids of all documents that searches can show. Raises RevisionsStale rather than guess."""
        check_scope_id("tenant_id", tenant_id)
        self._revisions.require_fresh()
        return self._revisions.visible(tenant_id)

    async def _check(self, key: RevisionKey) -> HeldRevision:
        pointer = self._revisions.get(key.tenant_id, key.document_id)
        if pointer is None:
            return HeldRevision(key.document_id, RevisionState.INACTIVE, 0)
        if pointer.deleted:
            return HeldRevision(key.document_id, RevisionState.DELETED, 0)
        if pointer.revision_id != key.revision_id:
            return HeldRevision(key.document_id, RevisionState.INACTIVE, pointer.number)
        whole = await self._is_whole(key, pointer)
        if not whole and self._is_filling(key):
            raise IndexUnavailable(
                f"document {key.document_id} is being filled into an index that lost it; ask again later",
                retry_after_s=30.0,
            )
        state = RevisionState.ACTIVE if whole else RevisionState.INCOMPLETE
        return HeldRevision(key.document_id, state, pointer.number)

    async def _is_whole(self, key: RevisionKey, pointer: Pointer) -> bool:
        dense_count, lexical_count = await both(
            self._least_held(key, pointer), self._lexical.count(key), timeout_s=READ_TIMEOUT_S
        )
        return dense_count == lexical_count == pointer.chunk_count

    async def _least_held(self, key: RevisionKey, pointer: Pointer) -> int:
        """Over the spaces that its pointer names."""
        return min([await self._dense.count(key, model) for model in pointer.models])
