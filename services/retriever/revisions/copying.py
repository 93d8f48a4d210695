"""A revision copied into the space of a model: its texts are read from the lexical index and embedded. This is how a lost dense
index is filled again, and how a shadow index is built."""

from collections.abc import AsyncIterator

from kit.access.principal import Principal, use_principal
from kit.network.local_models import use_local_models
from services.retriever.concurrency import engine_deadline
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.chunk_encoding import readable
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.models import Chunk, EmbeddingSpace, IndexBatch, IndexedChunk, RevisionKey, WriteKey
from services.retriever.options import READ_TIMEOUT_S, REMOVAL_TIMEOUT_S
from services.retriever.ports import ChunkIndex, CollectionRights, LexicalIndex, PassageEmbedder

_SUBJECT = "retriever-refill"
_CHUNKS_PER_BATCH = 32


class NotRefillable(Exception):
    """The other engine does not have what is missing."""


class DenseCopier:
    """Writes revisions into a space, and leaves the other spaces alone."""

    def __init__(
        self, dense: DenseSpaces, lexical: LexicalIndex, embedder: PassageEmbedder, rights: CollectionRights
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._embedder = embedder
        self._rights = rights

    async def copy(self, write_key: WriteKey, chunk_count: int, model: str) -> None:
        """Embeds the revision's chunks with `model` (empty: that for new texts) and has them on disk in its space, in place of
        what other attempts left there. Raises NotRefillable, IndexUnavailable, or what the embedder raises."""
        key = write_key.revision
        space: EmbeddingSpace | None = None
        async for chunks in batches(self._lexical, key, chunk_count):
            items = [IndexedChunk(chunk, _embedded_text(chunk)) for chunk in chunks]
            is_bound = self._rights.allow_local_models_only(key.tenant_id, {chunk.collection_id for chunk in chunks})
            with use_principal(Principal(key.tenant_id, _SUBJECT)), use_local_models(is_bound):
                space, vectors = await self._embedder.embed_passages([item.embedded_text for item in items], model)
            async with engine_deadline(REMOVAL_TIMEOUT_S):
                await self._dense.prepare(space)
                await self._dense.write(write_key, IndexBatch(items, vectors, space))
        if space is None:
            return
        async with engine_deadline(REMOVAL_TIMEOUT_S):
            count = await self._dense.commit_copy(write_key, space)
        if count != chunk_count:
            raise IndexUnavailable(f"of {chunk_count} chunks of revision {key.revision_id} the index kept {count}")


async def batches(source: ChunkIndex, key: RevisionKey, chunk_count: int) -> AsyncIterator[list[Chunk]]:
    """All chunks of a revision in reading order. Raises NotRefillable when one cannot be had."""
    for start in range(0, chunk_count, _CHUNKS_PER_BATCH):
        ordinals = range(start, min(start + _CHUNKS_PER_BATCH, chunk_count))
        async with engine_deadline(READ_TIMEOUT_S):
            stored = await source.fetch_ordinals(key, ordinals)
        chunks = {chunk.ordinal: chunk for _, chunk in readable(stored)}
        if len(chunks) != len(ordinals):
            raise NotRefillable
        yield [chunks[ordinal] for ordinal in ordinals]


def _embedded_text(chunk: Chunk) -> str:
    """The text that was embedded: a vector must be that of the text whose hash it goes by."""
    if chunk.embedded_prefix is None:
        raise NotRefillable
    return chunk.embedded_prefix + chunk.text


def searched_text(chunk: Chunk) -> str:
    """What words are searched in. Where the text that was embedded is not known, they are searched in the text all the same."""
    if chunk.embedded_prefix is not None:
        return chunk.embedded_prefix + chunk.text
    return "\n".join((chunk.document_name, *chunk.heading_path, chunk.text))
