"""The dense index as the core sees it: an index for each embedding space, for vectors of two models never meet.

A revision lies in the space of the model that embedded it, and its pointer names that model. So a change of the model leaves what
is indexed as it is: it stays searchable in its own space until its document is indexed again, or
the model of its collection is changed: then it lies in two spaces for a while, and its pointer names both (docs/adr/0018).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.similarity import Group
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import (
    EmbeddingSpace,
    IndexBatch,
    RevisionKey,
    SearchScope,
    Vector,
    Vectors,
    WriteKey,
)
from services.retriever.ports import DenseIndex, SpaceStore

T = TypeVar("T")


class DenseSpaces:
    """ChunkIndex over all spaces of an engine; what is about vectors names its space."""

    def __init__(self, store: SpaceStore) -> None:
        self._store = store

    @property
    def held(self) -> list[EmbeddingSpace]:
        """The spaces that are known to have, or to have had, vectors; oldest first."""
        return [index.space for index in self._store.indexes if index.space is not None]

    async def spaces_of(self, model: str) -> list[EmbeddingSpace]:
        """The spaces of a model, which another process may have begun since; of all models when the name is empty."""
        found = self._named(model)
        if not found:
            await self._store.find()
            found = self._named(model)
        return found

    async def model_of(self, key: RevisionKey) -> str:
        """The model that embedded the revision; empty when it has no chunks."""
        if len(self.held) == 1:
            return self.held[0].model
        for index in self._store.indexes:
            if index.space is not None and await index.count(key):
                return index.space.model
        return ""

    async def prepare(self, space: EmbeddingSpace) -> None:
        """Makes room for vectors of `space`."""
        await self._store.make_room(space)

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        """Adds chunks to the batch's space, which was prepared. As ChunkIndex."""
        index = self._index(batch.space)
        if index is None:
            raise IndexUnavailable("the dense index has just begun anew; send the revision again", retry_after_s=1.0)
        await index.write(key, batch)

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        """As ChunkIndex. What earlier attempts left in another space goes, too."""
        return sum(await self._all(lambda index: index.commit(key, is_last=is_last)))

    async def commit_copy(self, key: WriteKey, space: EmbeddingSpace) -> int:
        """As ChunkIndex, of one space: what lies in others stays."""
        index = self._index(space)
        return await index.commit(key) if index is not None else 0

    async def count(self, key: RevisionKey, model: str = "") -> int:
        """As ChunkIndex, in the space of a model; without one, where most of the revision is. None is not believed before the
        spaces that other processes have begun are known."""
        if count := await self._count(key, model):
            return count
        known = len(self._store.indexes)
        await self._store.find()
        return 0 if len(self._store.indexes) == known else await self._count(key, model)

    async def delete_revision(self, key: RevisionKey) -> None:
        """As ChunkIndex."""
        await self._all(lambda index: index.delete_revision(key))

    async def delete_copy(self, key: RevisionKey, model: str) -> None:
        """Removes the revision from the space of a model durably, and from no other. Harmless when repeated."""
        await self.spaces_of(model)
        for index in self._indexes_of(model):
            await index.delete_revision(key)

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        """As ChunkIndex."""
        await self._all(lambda index: index.delete_document(tenant_id, document_id))

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        """As ChunkIndex."""
        return _once(await self._all(lambda index: index.fetch(tenant_id, chunk_ids)))

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        """As ChunkIndex."""
        return _once(await self._all(lambda index: index.fetch_ordinals(key, ordinals)))

    async def writes(self) -> list[WriteKey]:
        """As ChunkIndex."""
        return list(dict.fromkeys(chain(*(await self.writes_by_model()).values())))

    async def writes_by_model(self) -> dict[str, list[WriteKey]]:
        """Every attempt that has chunks in the spaces of each model."""
        await self._store.find()
        found: dict[str, list[WriteKey]] = {}
        for index in self._store.indexes:
            # Also of one that does not know yet what it holds: it says whether it can be reached.
            found.setdefault(index.space.model if index.space else "", []).extend(await index.writes())
        return found

    async def search(self, scope: SearchScope, group: Group, vectors: Vectors, limit: int) -> list[list[Candidate]]:
        """As DenseIndex, of one group."""
        index = self._index(group.space) or self._unknown()
        return await index.search(scope, vectors, limit, group.languages) if index else [[] for _ in vectors]

    async def cosines(
        self, tenant_id: str, chunk_ids: Sequence[str], space: EmbeddingSpace, vectors: Vectors
    ) -> list[dict[str, float]]:
        """As DenseIndex, of one space."""
        index = self._index(space) or self._unknown()
        return await index.cosines(tenant_id, chunk_ids, vectors) if index else [{} for _ in vectors]

    async def vectors(
        self, tenant_id: str, chunk_ids: Sequence[str], models: Mapping[str, str] | None = None
    ) -> dict[str, Vector]:
        """As DenseIndex. Where several spaces have some of the chunks, in their direct sum: across spaces cosines are 0. `models`:
        by chunk id that in whose space it is looked for; chunks without one, or with an empty one, in all."""
        indexes, wanted = list(self._store.indexes), models or {}
        answers = await asyncio.gather(*(index.vectors(tenant_id, chunk_ids) for index in indexes))
        found = [
            {chunk_id: row for chunk_id, row in answer.items() if _is_of(index, wanted.get(chunk_id, ""))}
            for index, answer in zip(indexes, answers, strict=True)
        ]
        found = [each for each in found if each]
        if len(found) < 2:
            return found[0] if found else {}
        sizes = [len(next(iter(each.values()))) for each in found]
        places = np.cumsum([0, *sizes])
        return {
            chunk_id: np.pad(vector, (start, places[-1] - start - size))
            for each, start, size in zip(found, places, sizes, strict=False)
            for chunk_id, vector in each.items()
        }

    async def _count(self, key: RevisionKey, model: str) -> int:
        if not model:
            return max(await self._all(lambda index: index.count(key)))
        return sum([await index.count(key) for index in self._indexes_of(model)])

    def _indexes_of(self, model: str) -> list[DenseIndex]:
        """The indexes of a model: more than one where its dimension was changed; and those that nothing is known of yet."""
        return [index for index in self._store.indexes if _is_of(index, model)]

    def _named(self, model: str) -> list[EmbeddingSpace]:
        return [space for space in self.held if not model or space.model == model]

    def _index(self, space: EmbeddingSpace | None) -> DenseIndex | None:
        return next((index for index in self._store.indexes if space is not None and index.space == space), None)

    def _unknown(self) -> DenseIndex | None:
        """An index whose content is not known yet: it says whether it can be reached."""
        return next((index for index in self._store.indexes if index.space is None), None)

    async def _all(self, call: Callable[[DenseIndex], Awaitable[T]]) -> list[T]:
        indexes = self._store.indexes
        return [await call(indexes[0])] if len(indexes) == 1 else await asyncio.gather(*map(call, indexes))


def _is_of(index: DenseIndex, model: str) -> bool:
    return not model or index.space is None or index.space.model == model


def _once(found: Iterable[Sequence[StoredChunk]]) -> list[StoredChunk]:
    """Each chunk once, though several spaces have it."""
    return list({each.chunk_id: each for each in chain(*found)}.values())
