"""The engines as operators see them: each call is a span below the request that makes it, and measured. No query, text or filter
goes into a span; names are those of OpenTelemetry for databases."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from opentelemetry.trace import Span, SpanKind

from kit.observability.telemetry import Attributes, span
from services.retriever import metrics
from services.retriever.indexes.engine_answer import DENSE, LEXICAL
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import (
    EmbeddingSpace,
    IndexBatch,
    Languages,
    LexicalQuery,
    RevisionKey,
    SearchScope,
    Vector,
    Vectors,
    WriteKey,
)
from services.retriever.ports import ChunkIndex, DenseIndex, LexicalIndex

_QUERIES, _FOUND = "db.operation.batch.size", "db.response.returned_rows"


@dataclass(frozen=True)
class Engine:
    """What an index is kept by."""

    system: str
    """Its name in OpenTelemetry, as far as it has one there: qdrant, elasticsearch; or qdrant-edge, tantivy in this process."""
    collection: str = ""
    """The collection or index on a server."""


class _Observed:
    """What both engines have in common."""

    def __init__(self, inner: ChunkIndex, part: str, engine: Engine) -> None:
        self._chunks = inner
        self._part = part
        self._engine = engine
        metrics.ENGINE_INFO.labels(part, engine.system).set(1)

    @asynccontextmanager
    async def _call(self, operation: str, counts: Mapping[str, int] | None = None) -> AsyncGenerator[Span, None]:
        attributes: Attributes = {
            "db.system.name": self._engine.system,
            "db.operation.name": operation,
            **({"db.collection.name": self._engine.collection} if self._engine.collection else {}),
            **(counts or {}),
        }
        kind = SpanKind.CLIENT if self._engine.collection else SpanKind.INTERNAL
        began = time.perf_counter()
        try:
            with span(f"{operation} {self._engine.system}", attributes, kind) as traced:
                yield traced
        except Exception:
            metrics.ENGINE_ERRORS.labels(self._part, operation).inc()
            raise
        finally:
            metrics.ENGINE_SECONDS.labels(self._part, operation).observe(time.perf_counter() - began)

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        async with self._call("write", {_QUERIES: len(batch.chunks)}):
            await self._chunks.write(key, batch)

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        async with self._call("commit"):
            return await self._chunks.commit(key, is_last=is_last)

    async def count(self, key: RevisionKey) -> int:
        async with self._call("count"):
            return await self._chunks.count(key)

    async def delete_revision(self, key: RevisionKey) -> None:
        async with self._call("delete_revision"):
            await self._chunks.delete_revision(key)

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        async with self._call("delete_document"):
            await self._chunks.delete_document(tenant_id, document_id)

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        async with self._call("fetch", {_QUERIES: len(chunk_ids)}) as traced:
            found = await self._chunks.fetch(tenant_id, chunk_ids)
            traced.set_attribute(_FOUND, len(found))
            return found

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        async with self._call("fetch_ordinals", {_QUERIES: len(ordinals)}) as traced:
            found = await self._chunks.fetch_ordinals(key, ordinals)
            traced.set_attribute(_FOUND, len(found))
            return found

    async def writes(self) -> list[WriteKey]:
        async with self._call("writes"):
            return await self._chunks.writes()


class ObservedDense(_Observed):
    """A DenseIndex around another."""

    def __init__(self, inner: DenseIndex, engine: Engine) -> None:
        super().__init__(inner, DENSE.name, engine)
        self._inner = inner

    @property
    def space(self) -> EmbeddingSpace | None:
        return self._inner.space

    async def prepare(self, space: EmbeddingSpace) -> None:
        async with self._call("prepare"):
            await self._inner.prepare(space)

    async def search(
        self, scope: SearchScope, vectors: Vectors, limit: int, languages: Languages | None = None
    ) -> list[list[Candidate]]:
        async with self._call("search", {_QUERIES: len(vectors)}) as traced:
            lists = await self._inner.search(scope, vectors, limit, languages)
            traced.set_attribute(_FOUND, sum(map(len, lists)))
            return lists

    async def cosines(self, tenant_id: str, chunk_ids: Sequence[str], vectors: Vectors) -> list[dict[str, float]]:
        async with self._call("cosines", {_QUERIES: len(chunk_ids)}):
            return await self._inner.cosines(tenant_id, chunk_ids, vectors)

    async def vectors(self, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        async with self._call("vectors", {_QUERIES: len(chunk_ids)}):
            return await self._inner.vectors(tenant_id, chunk_ids)


class ObservedLexical(_Observed):
    """A LexicalIndex around another."""

    def __init__(self, inner: LexicalIndex, engine: Engine) -> None:
        super().__init__(inner, LEXICAL.name, engine)
        self._inner = inner

    async def search(self, scope: SearchScope, queries: Sequence[LexicalQuery], limit: int) -> list[list[Candidate]]:
        async with self._call("search", {_QUERIES: len(queries)}) as traced:
            lists = await self._inner.search(scope, queries, limit)
            traced.set_attribute(_FOUND, sum(map(len, lists)))
            return lists

    async def revisions(self, tenant_id: str, document_id: str) -> set[RevisionKey]:
        async with self._call("revisions"):
            return await self._inner.revisions(tenant_id, document_id)

    async def drop_outdated(self) -> None:
        async with self._call("drop_outdated"):
            await self._inner.drop_outdated()
