"""Embeds what has changed. A chunk whose embedded text stands in the document's active revision word for word keeps the vector that
it has there, and a text that stands twice in a window is embedded once."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np
import structlog

from kit.errors import GroundworkError
from services.ingest.documents.models import Document
from services.ingest.errors import DocumentRejected, SpoolFull
from services.ingest.fairness import FairShares
from services.ingest.ports import Scratch, SearchIndex, Vector, Vectors
from services.ingest.reading.models import Chunk, PreparedFile
from services.ingest.spool import Spool
from services.ingest.work.embedding import BatchEmbedder
from services.ingest.work.patience import Patience
from services.ingest.work.put_aside import KnownVectors, VectorRows, memory_bytes, plan_windows

_log = structlog.get_logger()

WINDOW_CHUNKS = 512
"""Chunks of a document that are embedded together, sorted by length: enough for batches of like length."""
_WINDOWS_AT_ONCE = 2
"""While the last batches of one window are made, the next one's are under way."""


@dataclass(frozen=True)
class EmbeddingReport:
    """How the vectors of a document were come by."""

    batch_count: int
    reused_count: int
    """Chunks whose vector is that of the active revision."""


class ChangeEmbedder:
    """Embeds documents window by window, sparing what the index has. A window waits until there is `memory` for it."""

    def __init__(
        self, batches: BatchEmbedder, index: SearchIndex, patience: Patience, spool: Spool, memory: FairShares
    ) -> None:
        self._batches = batches
        self._index = index
        self._patience = patience
        self._spool = spool
        self._memory = memory

    async def embed(
        self,
        document: Document,
        prepared: PreparedFile,
        model: str,
        vectors: VectorRows,
        on_progress: Callable[[float], None],
    ) -> EmbeddingReport:
        """Writes one vector of `model` a chunk to `vectors`. Raises what BatchEmbedder raises."""
        with self._spool.scratch() as scratch:
            known = await self._known(document, model, scratch)
            windows = plan_windows(prepared.chunks, WINDOW_CHUNKS)
            reports: list[EmbeddingReport] = []
            done = 0

            def on_tokens(count: int) -> None:
                nonlocal done
                done += count
                on_progress(done / max(1, prepared.token_count))

            async def work() -> None:
                for start, stop in windows:  # shared: each window is taken once
                    size = memory_bytes(prepared.chunks, start, stop)
                    async with self._memory.hold(document.tenant_id, document.document_id, size, document.lane):
                        chunks = await prepared.chunks.read(start, stop)
                        rows, report = await self._window(document, chunks, model, known, on_tokens)
                        await vectors.write(start, rows)
                    reports.append(report)

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(_WINDOWS_AT_ONCE):
                        group.create_task(work())
            except ExceptionGroup as failures:
                raise _rejection_in(failures) or failures from None
        return EmbeddingReport(
            sum(report.batch_count for report in reports), sum(report.reused_count for report in reports)
        )

    async def _window(
        self,
        document: Document,
        chunks: Sequence[Chunk],
        model: str,
        known: KnownVectors,
        on_tokens: Callable[[int], None],
    ) -> tuple[Vectors, EmbeddingReport]:
        found = await known.find([chunk.content_hash for chunk in chunks])
        fresh = {chunk.content_hash: chunk for chunk in chunks if chunk.content_hash not in found}
        reused_count = sum(chunk.content_hash in found for chunk in chunks)
        if not fresh:
            return _rows(chunks, found), EmbeddingReport(0, reused_count)
        embedded = await self._batches.embed(document, list(fresh.values()), model, on_tokens)
        made = dict(zip(fresh, embedded.vectors, strict=True))
        return _rows(chunks, {**found, **made}), EmbeddingReport(embedded.batch_count, reused_count)

    async def _known(self, document: Document, model: str, scratch: Scratch) -> KnownVectors:
        if document.active is None:
            return KnownVectors(scratch)
        try:
            return await self._patience.call("vectors", lambda: self._loaded(document.document_id, model, scratch))
        except GroundworkError as error:
            # Sparing work is a convenience: a store that cannot say what it has gets everything anew.
            _log.warning("vectors_not_reused", document_id=document.document_id, error=error.message)
            return KnownVectors(scratch)

    async def _loaded(self, document_id: str, model: str, scratch: Scratch) -> KnownVectors:
        known = KnownVectors(scratch)
        try:
            async with aclosing(self._index.vectors(document_id, model)) as parts:
                async for hashes, vectors in parts:
                    await known.add(hashes, vectors)
        except SpoolFull:  # not the index's fault: asking it again would not help
            return KnownVectors(scratch)
        known.complete()
        return known


def _rows(chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> Vectors:
    return np.stack([vectors[chunk.content_hash] for chunk in chunks]).astype(np.float32, copy=False)


def _rejection_in(group: ExceptionGroup[Exception]) -> DocumentRejected | None:
    """The answer to a document that is among the failures of its parts."""
    for each in group.exceptions:
        found = _rejection_in(each) if isinstance(each, ExceptionGroup) else each
        if isinstance(found, DocumentRejected):
            return found
    return None
