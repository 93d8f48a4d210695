"""A fake per port of the retriever, and builders of its domain objects."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kit.errors import GroundworkError
from kit.language.phrases import contains_phrase
from services.retriever.errors import CollectionNotFound, EmbeddingSpaceMismatch, PointerConflict
from services.retriever.indexes import filters
from services.retriever.indexes.chunk_encoding import citable_text, decode, encode
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import (
    Chunk,
    EmbeddingSpace,
    IndexBatch,
    IndexedChunk,
    Languages,
    LexicalQuery,
    Pointer,
    PointerEntry,
    PointerRemoved,
    RevisionKey,
    SearchScope,
    Vector,
    Vectors,
    WriteKey,
)

DIMENSION = 32
MODEL = "fake-model"
SPACE = EmbeddingSpace(MODEL, DIMENSION)


def embed(texts: Sequence[str], dimension: int = DIMENSION) -> Vectors:
    """Bag of hashed words: texts that share words are near."""
    rows = np.zeros((len(texts), dimension), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % dimension] += 1.0
        if not row.any():
            row[0] = 1.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def make_chunk(
    text: str, ordinal: int = 0, *, key: RevisionKey, collection_id: str = "default", **fields: object
) -> Chunk:
    defaults: dict[str, object] = {
        "chunk_id": f"{key.revision_id}-{ordinal}",
        "document_id": key.document_id,
        "collection_id": collection_id,
        "revision_id": key.revision_id,
        "ordinal": ordinal,
        "document_name": f"{key.document_id}.md",
        "text": text,
    }
    return Chunk(**(defaults | fields))  # type: ignore[arg-type]


def make_batch(chunks: Sequence[Chunk]) -> IndexBatch:
    return IndexBatch([IndexedChunk(chunk, chunk.text) for chunk in chunks], embed([chunk.text for chunk in chunks]))


def write_key(key: RevisionKey, attempt: str = "a", started_at_ms: int = 0) -> WriteKey:
    return WriteKey(key, started_at_ms, attempt)


@dataclass(frozen=True)
class _Row:
    write: WriteKey
    item: IndexedChunk
    vector: Vectors
    stored: StoredChunk


@dataclass
class _FakeIndex:
    """Rows in a list. `error` is raised by every method while it is set; `gate` holds searches up until it is set."""

    rows: list[_Row] = field(default_factory=list)
    error: GroundworkError | None = None
    gate: asyncio.Event | None = None
    limits: list[int] = field(default_factory=list)
    lost: int = 0
    last_ones: list[bool] = field(default_factory=list)
    """Of each commit, whether it was said to be the last."""

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        self._fail()
        new_ids = {(key, item.chunk.chunk_id) for item in batch.chunks}
        self.rows = [row for row in self.rows if (row.write, row.item.chunk.chunk_id) not in new_ids]
        for item, vector in zip(batch.chunks, batch.vectors, strict=True):
            self.rows.append(_Row(key, item, vector, decode(encode(item.chunk))))

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        self._fail()
        self.last_ones.append(is_last)
        self.rows = [row for row in self.rows if row.write.revision != key.revision or row.write == key]
        return await self.count(key.revision) - self.lost

    async def count(self, key: RevisionKey) -> int:
        self._fail()
        return sum(row.write.revision == key for row in self.rows)

    async def delete_revision(self, key: RevisionKey) -> None:
        self._fail()
        self.rows = [row for row in self.rows if row.write.revision != key]

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        self._fail()
        gone = (tenant_id, document_id)
        self.rows = [row for row in self.rows if (row.write.revision.tenant_id, row.write.revision.document_id) != gone]

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        self._fail()
        return [
            row.stored
            for row in self.rows
            if row.write.revision.tenant_id == tenant_id and row.stored.chunk_id in chunk_ids
        ]

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        self._fail()
        return [row.stored for row in self.rows if row.write.revision == key and row.item.chunk.ordinal in ordinals]

    async def writes(self) -> list[WriteKey]:
        self._fail()
        return list({row.write for row in self.rows})

    async def revisions(self, tenant_id: str, document_id: str) -> set[RevisionKey]:
        keys = {write.revision for write in await self.writes()}
        return {key for key in keys if (key.tenant_id, key.document_id) == (tenant_id, document_id)}

    async def _in_scope(self, scope: SearchScope, limit: int) -> list[_Row]:
        self._fail()
        self.limits.append(limit)
        if self.gate is not None:
            await self.gate.wait()
        clauses = filters.compile_scope(scope)
        return [row for row in self.rows if all(_holds(clause, row) for clause in clauses)]

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeDense(_FakeIndex):
    space: EmbeddingSpace | None = None

    async def prepare(self, space: EmbeddingSpace) -> None:
        self._fail()
        if self.space not in (None, space):
            raise EmbeddingSpaceMismatch("another model")
        self.space = space

    async def search(
        self, scope: SearchScope, vectors: Vectors, limit: int, languages: Languages | None = None
    ) -> list[list[Candidate]]:
        rows = await self._in_scope(scope, limit)
        if languages is not None:
            rows = [row for row in rows if (row.item.chunk.language in languages.codes) != languages.are_left_out]
        return [_top([Candidate(row.stored, float(row.vector @ vector)) for row in rows], limit) for vector in vectors]

    async def cosines(self, tenant_id: str, chunk_ids: Sequence[str], vectors: Vectors) -> list[dict[str, float]]:
        rows = await self.vectors(tenant_id, chunk_ids)
        return [{chunk_id: float(row @ vector) for chunk_id, row in rows.items()} for vector in vectors]

    async def vectors(self, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        self._fail()
        return {
            row.stored.chunk_id: row.vector
            for row in self.rows
            if row.write.revision.tenant_id == tenant_id and row.stored.chunk_id in chunk_ids
        }


@dataclass
class FakeSpaces:
    """A SpaceStore whose first index is the given one. `unknown`: what other processes have begun."""

    indexes: list[FakeDense]
    unknown: list[FakeDense] = field(default_factory=list)

    async def find(self) -> None:
        self.indexes += self.unknown
        self.unknown = []

    async def make_room(self, space: EmbeddingSpace) -> None:
        room = next((each for each in self.indexes if each.space in (None, space)), None)
        if room is None:
            room = FakeDense()
            self.indexes.append(room)
        await room.prepare(space)


@dataclass
class FakeLexical(_FakeIndex):
    outdated_dropped = 0

    async def search(self, scope: SearchScope, queries: Sequence[LexicalQuery], limit: int) -> list[list[Candidate]]:
        rows = await self._in_scope(scope, limit)
        answers = []
        for query in queries:
            words = _words(query.text)
            found = [row for row in rows if all(_contains(row, phrase) for phrase in query.must_phrases)]
            scored = [Candidate(row.stored, float(len(words & _words(row.item.embedded_text)))) for row in found]
            answers.append(_top([hit for hit in scored if hit.score or query.must_phrases], limit))
        return answers

    async def drop_outdated(self) -> None:
        self.outdated_dropped += 1


def _holds(clause: filters.Clause, row: _Row) -> bool:
    if isinstance(clause, filters.AnyOf):
        return bool(set(filters.chunk_keywords(row.item.chunk, row.write)[clause.field]) & set(clause.values))
    if isinstance(clause, filters.NoneOf):
        return not set(filters.chunk_keywords(row.item.chunk, row.write)[clause.field]) & set(clause.values)
    number = filters.chunk_numbers(row.item.chunk).get(clause.field)
    return (
        number is not None
        and (clause.gte is None or number >= clause.gte)
        and (clause.lt is None or number < clause.lt)
    )


def _contains(row: _Row, phrase: str) -> bool:
    return contains_phrase(citable_text(row.item.chunk), phrase)


def _top(candidates: list[Candidate], limit: int) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: -candidate.score)[:limit]


def _words(text: str) -> set[str]:
    """Lower case, plural s cut: enough of a stemmer for the contract."""
    return {word.rstrip("s") for word in re.findall(r"\w+", text.lower())}


class FakeDetector:
    """LanguageDetector of texts that are known beforehand."""

    def __init__(self, known: dict[str, dict[str, float]] | None = None) -> None:
        self._known = known or {}

    def certainties(self, text: str) -> dict[str, float]:
        return self._known.get(text, {})


class FakeRights:
    """CollectionRights of a caller who may read everything but `closed`."""

    def __init__(self, closed: Iterable[str] = ()) -> None:
        self.closed = set(closed)
        self.gone: set[tuple[str, str]] = set()
        self.hidden_documents: frozenset[str] = frozenset()
        self.bound: set[str] = set()
        """Collections that allow local models only."""

    def allow_local_models_only(self, tenant_id: str, collection_ids: Iterable[str]) -> bool:
        return not self.bound.isdisjoint(collection_ids)

    def hidden(self, collection_ids: Iterable[str]) -> frozenset[str]:
        return self.hidden_documents

    async def readable(self, collection_ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in collection_ids if each not in self.closed)

    async def require_changeable(self, collection_id: str) -> None:
        if collection_id in self.closed:
            raise CollectionNotFound(collection_id)

    async def is_gone(self, tenant_id: str, collection_id: str) -> bool:
        return (tenant_id, collection_id) in self.gone


class FakeRevisions:
    """RevisionStore in a dict. `on_put` runs before a put, to play another writer; `error` is raised by what asks the store."""

    def __init__(self) -> None:
        self.error: GroundworkError | None = None
        self.entries: dict[tuple[str, str], PointerEntry] = {}
        self.on_put: list[PointerEntry] = []
        self._version = 0
        self._changed = asyncio.Condition()
        self._log: list[PointerEntry | PointerRemoved] = []

    async def get(self, tenant_id: str, document_id: str) -> PointerEntry | None:
        self._fail()
        return self.entries.get((tenant_id, document_id))

    async def remove(self, tenant_id: str, document_id: str) -> None:
        self._fail()
        del self.entries[tenant_id, document_id]
        self._version += 1
        await self._tell(PointerRemoved(tenant_id, document_id, self._version))

    async def latest_version(self) -> int:
        self._fail()
        return self._version

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error

    async def put(
        self, tenant_id: str, document_id: str, pointer: Pointer, expected_version: int | None
    ) -> PointerEntry:
        self._fail()
        if self.on_put:
            other = self.on_put.pop()
            await self._store(other.tenant_id, other.document_id, other.pointer)
        stored = self.entries.get((tenant_id, document_id))
        if (stored.version if stored else None) != expected_version:
            raise PointerConflict(document_id)
        return await self._store(tenant_id, document_id, pointer)

    async def _store(self, tenant_id: str, document_id: str, pointer: Pointer | None) -> PointerEntry:
        self._version += 1
        entry = PointerEntry(tenant_id, document_id, pointer, self._version)
        self.entries[tenant_id, document_id] = entry
        await self._tell(entry)
        return entry

    async def break_value(self, tenant_id: str, document_id: str) -> PointerEntry:
        """What is stored cannot be read any more."""
        return await self._store(tenant_id, document_id, None)

    async def _tell(self, change: PointerEntry | PointerRemoved) -> None:
        async with self._changed:
            self._log.append(change)
            self._changed.notify_all()

    async def watch(self) -> AsyncGenerator[PointerEntry | PointerRemoved | None]:
        seen = len(self._log)
        for entry in list(self.entries.values()):
            yield entry
        yield None
        while True:
            async with self._changed:
                while len(self._log) == seen:
                    await self._changed.wait()
            for change in self._log[seen:]:
                seen += 1
                yield change


@dataclass
class FakeModels:
    """Embedder and Reranker. Reranks by how short a passage is, so that its order differs from every other."""

    error: Exception | None = None
    space: EmbeddingSpace = SPACE
    calls: int = 0
    others: tuple[EmbeddingSpace, ...] = ()
    """Besides `space`, with which new texts are embedded."""

    async def embed_queries(
        self, queries: Sequence[str], model: str, timeout_s: float
    ) -> tuple[EmbeddingSpace, Vectors]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        space = next((each for each in (self.space, *self.others) if model in ("", each.model)), None)
        if space is None:
            raise EmbeddingSpaceMismatch(f"there is no {model}")
        return space, embed(queries, space.dimension)

    async def embedding_models(self) -> Sequence[str]:
        if self.error is not None:
            raise self.error
        return [space.model for space in (self.space, *self.others)]

    async def embed_passages(self, texts: Sequence[str], model: str) -> tuple[EmbeddingSpace, Vectors]:
        return await self.embed_queries(texts, model, 1.0)

    async def rerank(
        self, query_text: str, passages: Sequence[str], timeout_s: float, content_hashes: Sequence[str]
    ) -> list[float]:
        if self.error is not None:
            raise self.error
        return [-float(len(passage)) for passage in passages]
