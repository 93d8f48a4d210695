"""Embeds a document's chunks in batches of like length, several calls at once, so that the model server always has the next one
waiting. All documents of a worker share the calls in flight."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from services.ingest.errors import BadVectors, ModelChanged
from services.ingest.models import Chunk
from services.ingest.patience import Patience
from services.ingest.ports import Embedder, Vectors


@dataclass(frozen=True)
class EmbeddedChunks:
    """Vectors in the order of the chunks, and how they were made."""

    vectors: Vectors
    model: str
    batch_count: int


class BatchEmbedder:
    """Embeds whole documents. `in_flight` bounds the open calls over all of them."""

    def __init__(
        self, embedder: Embedder, patience: Patience, *, batch_tokens: int, batch_texts: int, in_flight: int
    ) -> None:
        self._embedder = embedder
        self._patience = patience
        self._batch_tokens = batch_tokens
        self._batch_texts = batch_texts
        self._in_flight = in_flight
        self._slots = asyncio.Semaphore(in_flight)

    async def embed(self, chunks: Sequence[Chunk], model: str, on_progress: Callable[[float], None]) -> EmbeddedChunks:
        """Vectors of all chunks. Raises ModelChanged when the server answers with another model than `model`."""
        batches = plan_batches([chunk.token_count for chunk in chunks], self._batch_tokens, self._batch_texts)
        rows: list[Vectors | None] = [None] * len(chunks)
        waiting = iter(batches)
        total, done = sum(chunk.token_count for chunk in chunks), 0

        async def work() -> None:
            nonlocal done
            for batch in waiting:  # shared: each batch is taken once
                vectors = await self._batch([chunks[i].embedded_text for i in batch], model)
                for i, vector in zip(batch, vectors, strict=True):
                    rows[i] = vector
                done += sum(chunks[i].token_count for i in batch)
                on_progress(done / total)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._in_flight, len(batches))):
                group.create_task(work())
        return EmbeddedChunks(_stacked(rows), model, len(batches))

    async def _batch(self, texts: list[str], model: str) -> Vectors:
        async with self._slots:
            vectors, answered = await self._patience.call("embed", lambda: self._embedder.embed(texts))
        if answered != model:
            raise ModelChanged(f"the embedding model changed from {model} to {answered} while a document was embedded")
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise BadVectors(f"the model server returned {len(vectors)} vectors for {len(texts)} texts")
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


def _stacked(rows: Sequence[Vectors | None]) -> Vectors:
    complete = [row for row in rows if row is not None]
    if len(complete) != len(rows) or len({len(row) for row in complete}) > 1:
        raise BadVectors("the model server returned vectors of different lengths or left some out")
    return np.stack(complete).astype(np.float32, copy=False)
