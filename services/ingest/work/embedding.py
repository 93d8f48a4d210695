"""Embeds a document's chunks in batches of like length, several calls at once, so that the model server always has the next one
waiting. All documents of a worker share what is in flight, and small ones share calls."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kit.network.local_models import is_bound_to_local_models
from services.ingest.documents.models import Document
from services.ingest.errors import BadVectors, ModelChanged
from services.ingest.fairness import FairShares
from services.ingest.ports import Embedder, Vectors
from services.ingest.reading.models import Chunk
from services.ingest.work.patience import Patience
from services.ingest.work.shared_calls import Embedded, SharedCalls

_NORM_TOLERANCE = 0.02
"""The retriever's: int8 and bf16 embedders normalise before they round, so that their rows are off by up to 1 %."""


@dataclass(frozen=True)
class EmbeddedChunks:
    """Vectors in the order of the chunks, and how they were made."""

    vectors: Vectors
    model: str
    batch_count: int


class BatchEmbedder:
    """Embeds chunks. `in_flight` full batches bound what is under way over all documents; small calls count as little."""

    def __init__(
        self, embedder: Embedder, patience: Patience, *, batch_tokens: int, batch_texts: int, in_flight: int
    ) -> None:
        self._embedder = embedder
        self._patience = patience
        self._batch_tokens = batch_tokens
        self._batch_texts = batch_texts
        self._in_flight = in_flight
        self._shared_calls = SharedCalls(embedder, batch_tokens=batch_tokens, batch_texts=batch_texts)
        # Half of it keeps the model server as full as all of it does; the rest is there for other documents.
        self._shares = FairShares(in_flight * batch_tokens, -(-in_flight // 2) * batch_tokens)

    async def embed(
        self, document: Document, chunks: Sequence[Chunk], model: str, on_tokens: Callable[[int], None]
    ) -> EmbeddedChunks:
        """Vectors of the chunks, which are the document's. `on_tokens` gets the number of further tokens that are done. Raises
        ModelChanged when the server answers with another model than `model`."""
        batches = plan_batches([chunk.token_count for chunk in chunks], self._batch_tokens, self._batch_texts)
        rows: list[Vectors | None] = [None] * len(chunks)
        waiting = iter(batches)

        async def work() -> None:
            for batch in waiting:  # shared: each batch is taken once
                size = sum(chunks[i].token_count for i in batch)
                async with self._shares.hold(document.tenant_id, document.document_id, size, document.lane):
                    texts = [chunks[i].embedded_text for i in batch]
                    if len(batches) == 1 and size <= self._shared_calls.max_tokens:
                        key = (document.tenant_id, document.lane, is_bound_to_local_models())
                        call = partial(self._shared_calls.embed, key, texts, size)
                    else:
                        call = partial(self._embedder.embed, texts)
                    vectors = await self._batch(call, len(texts), model)
                for i, vector in zip(batch, vectors, strict=True):
                    rows[i] = vector
                on_tokens(size)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._in_flight, len(batches))):
                group.create_task(work())
        return EmbeddedChunks(_stacked(rows), model, len(batches))

    async def _batch(self, call: Callable[[], Awaitable[Embedded]], count: int, model: str) -> Vectors:
        vectors, answered = await self._patience.call("embed", call)
        if answered != model:
            raise ModelChanged(f"the embedding model changed from {model} to {answered} while a document was embedded")
        check_vectors(vectors, count)
        return vectors


def plan_batches(token_counts: Sequence[int], max_tokens: int, max_texts: int) -> list[list[int]]:
    """Indices in batches of at most `max_texts` texts and `max_tokens` tokens, padding to the longest included; a longer text
    goes alone. Sorted by length, longest first: like lengths together waste no padding, and the longest batch is not last."""
    batches: list[list[int]] = []
    for i in sorted(range(len(token_counts)), key=lambda i: (-token_counts[i], i)):
        longest = token_counts[batches[-1][0]] if batches else 0
        if batches and len(batches[-1]) < max_texts and (len(batches[-1]) + 1) * longest <= max_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def check_vectors(vectors: Vectors, count: int) -> None:
    """What an index of cosines needs: one finite, normalised row a text. Raises BadVectors: a broken model is not the document's
    fault, and must not get into an index."""
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
        raise BadVectors(f"the model server returned vectors of shape {vectors.shape} for {count} texts")
    norms = np.linalg.norm(vectors, axis=1)
    if not np.all(np.abs(norms - 1.0) <= _NORM_TOLERANCE):  # false for NaN and infinity too
        raise BadVectors("the model server returned a vector that is not finite or not of length 1; check its model")


def _stacked(rows: Sequence[Vectors | None]) -> Vectors:
    complete = [row for row in rows if row is not None]
    if len(complete) != len(rows) or len({len(row) for row in complete}) > 1:
        raise BadVectors("the model server returned vectors of different lengths or left some out")
    return np.stack(complete).astype(np.float32, copy=False)
