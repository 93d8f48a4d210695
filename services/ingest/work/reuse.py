"""Embeds what has changed. A chunk whose embedded text stands in the document's active revision word for word keeps the vector that
it has there, and a text that stands in a document twice is embedded once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from kit.errors import GroundworkError
from services.ingest.models import Chunk, Document
from services.ingest.ports import SearchIndex, Vector, Vectors
from services.ingest.work.embedding import BatchEmbedder
from services.ingest.work.patience import Patience

_log = structlog.get_logger()


@dataclass(frozen=True)
class ChunkVectors:
    """Vectors in the order of the chunks, and how they were come by."""

    vectors: Vectors
    model: str
    batch_count: int
    reused_count: int
    """Chunks whose vector is that of the active revision."""


class ChangeEmbedder:
    """Embeds documents, sparing what the index has."""

    def __init__(self, batches: BatchEmbedder, index: SearchIndex, patience: Patience) -> None:
        self._batches = batches
        self._index = index
        self._patience = patience

    async def embed(
        self, document: Document, chunks: Sequence[Chunk], model: str, on_progress: Callable[[float], None]
    ) -> ChunkVectors:
        """One vector of `model` a chunk. Raises what BatchEmbedder raises."""
        known = await self._known(document, model)
        fresh = {chunk.content_hash: chunk for chunk in chunks if chunk.content_hash not in known}
        if not fresh:
            return ChunkVectors(_rows(chunks, known), model, 0, len(chunks))
        embedded = await self._batches.embed(list(fresh.values()), model, on_progress)
        made = dict(zip(fresh, embedded.vectors, strict=True))
        reused_count = sum(chunk.content_hash in known for chunk in chunks)
        return ChunkVectors(_rows(chunks, {**known, **made}), model, embedded.batch_count, reused_count)

    async def _known(self, document: Document, model: str) -> Mapping[str, Vector]:
        if document.active is None:
            return {}
        try:
            return await self._patience.call("vectors", lambda: self._index.vectors(document.document_id, model))
        except GroundworkError as error:
            # Sparing work is a convenience: whoever cannot say what it has gets everything anew.
            _log.warning("vectors_not_reused", document_id=document.document_id, error=error.message)
            return {}


def _rows(chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> Vectors:
    return np.stack([vectors[chunk.content_hash] for chunk in chunks]).astype(np.float32, copy=False)
