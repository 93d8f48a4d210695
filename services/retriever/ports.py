"""What the core needs from outside. Indexes raise IndexUnavailable when they cannot answer, the others a GroundworkError
that says so; none is called without a deadline around it."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.model_change.collection_embedding import CollectionEmbedding
from services.retriever.models import (
    EmbeddingSpace,
    IndexBatch,
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


class ChunkIndex(Protocol):
    """What both engines do alike: hold the chunks of revisions durably and give them back."""

    async def write(self, key: WriteKey, batch: IndexBatch) -> None:
        """Adds chunks. A chunk id that the same attempt wrote before is undefined; the caller refuses it."""

    async def commit(self, key: WriteKey, *, is_last: bool = False) -> int:
        """Removes what other attempts left of the revision; returns its chunks once all of it survives a SIGKILL. `is_last`: no
        other is to come soon that could share the work."""

    async def count(self, key: RevisionKey) -> int:
        """Chunks of the revision, over all attempts."""

    async def delete_revision(self, key: RevisionKey) -> None:
        """Removes the revision's chunks durably. Harmless when repeated."""

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        """Removes every revision of the document durably. Harmless when repeated."""

    async def fetch(self, tenant_id: str, chunk_ids: Sequence[str]) -> list[StoredChunk]:
        """Those of the chunks that exist, in any order, of active revisions or not."""

    async def fetch_ordinals(self, key: RevisionKey, ordinals: Sequence[int]) -> list[StoredChunk]:
        """The revision's chunks at these positions, in any order."""

    async def writes(self) -> list[WriteKey]:
        """Every attempt that has chunks in the index, over all tenants: for the reconciler."""


class ChunkRemoval(Protocol):
    """What the remover needs of an index."""

    async def delete_revision(self, key: RevisionKey) -> None:
        """As ChunkIndex."""

    async def delete_document(self, tenant_id: str, document_id: str) -> None:
        """As ChunkIndex."""


class DenseIndex(ChunkIndex, Protocol):
    """Vectors of one embedding space, searched by cosine similarity."""

    @property
    def space(self) -> EmbeddingSpace | None:
        """What its vectors are; None while nothing was ever written."""

    async def prepare(self, space: EmbeddingSpace) -> None:
        """Makes the index ready for vectors of `space`. Raises EmbeddingSpaceMismatch when it holds others."""

    async def search(
        self, scope: SearchScope, vectors: Vectors, limit: int, languages: Languages | None = None
    ) -> list[list[Candidate]]:
        """One list a query vector, best first, at most `limit` each, of chunks in these languages. Scores are cosines."""

    async def cosines(self, tenant_id: str, chunk_ids: Sequence[str], vectors: Vectors) -> list[dict[str, float]]:
        """Of each query vector with those of the chunks that exist, of active revisions or not, by chunk id."""

    async def vectors(self, tenant_id: str, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of those of the chunks that exist, of active revisions or not, by chunk id; float16 precision is enough."""


class SpaceStore(Protocol):
    """The dense indexes of an engine, one for each embedding space."""

    @property
    def indexes(self) -> Sequence[DenseIndex]:
        """Those that are known, oldest first; never none, but the first may still be without vectors."""

    async def find(self) -> None:
        """Gets to know those that other processes have begun. Raises IndexUnavailable."""

    async def make_room(self, space: EmbeddingSpace) -> None:
        """Has an index ready for vectors of `space`. Raises EmbeddingSpaceMismatch where there can be no other."""


class LexicalIndex(ChunkIndex, Protocol):
    """Text, searched by BM25."""

    async def search(self, scope: SearchScope, queries: Sequence[LexicalQuery], limit: int) -> list[list[Candidate]]:
        """One list a query, best first, at most `limit` each. Any text is a valid query. Scores are BM25."""

    async def revisions(self, tenant_id: str, document_id: str) -> set[RevisionKey]:
        """Every revision of the document that has chunks in the index, whether it was ever active or not."""

    async def drop_outdated(self) -> None:
        """Removes what was indexed in earlier formats of this index. Harmless when repeated. It is called when the index lacks
        nothing: until then a release before may still be running, or come back."""


class OwnIndex(Protocol):
    """An index whose files belong to this process."""

    @property
    def suspected(self) -> asyncio.Event:
        """Set when a call failed, so that its files should be looked at; cleared by who does."""

    async def inspect(self) -> str | None:
        """Reads all files; returns what is damaged, for an operator. Raises IndexUnavailable when nobody can say now."""

    async def start_anew(self, problem: str) -> None:
        """Sets the files aside and goes on with an empty index. What is being written at the moment fails, and may be tried
        again. Raises IndexUnavailable or OSError."""

    @property
    def removed(self) -> asyncio.Event:
        """Set when files may hold texts that were removed, also before this process began; cleared by who erases them."""

    async def erase(self) -> None:
        """Rewrites files that hold removed texts, in small pieces while the index is in use; afterwards no file has a text that was
        removed before the call. Harmless when repeated. Raises IndexUnavailable or OSError."""


class RevisionStore(Protocol):
    """The pointers: one value a document, changed by compare-and-set, watched by every retriever."""

    async def get(self, tenant_id: str, document_id: str) -> PointerEntry | None:
        """The pointer as stored now, never as a replica that lags has it: removals are decided by it."""

    async def put(
        self, tenant_id: str, document_id: str, pointer: Pointer, expected_version: int | None
    ) -> PointerEntry:
        """Stores the pointer if its version still is `expected_version` (None: does not exist); else PointerConflict."""

    async def remove(self, tenant_id: str, document_id: str) -> None:
        """Removes the pointer. Harmless when repeated."""

    async def latest_version(self) -> int:
        """The version of the newest change that is stored, as `get` would see it."""

    def watch(self) -> AsyncGenerator[PointerEntry | PointerRemoved | None]:
        """All pointers, then None once, then every change, in the order of versions. Ends or raises when the connection is
        lost."""


class CollectionRights(Protocol):
    """Which collections and documents may be read by the principal of the request in hand."""

    async def readable(self, collection_ids: Iterable[str]) -> tuple[str, ...]:
        """Those of the tenant's collections that the caller may read, in their order. One of somebody else is left out like one
        that never was. Raises a GroundworkError rather than guess."""

    def hidden(self, collection_ids: Iterable[str]) -> frozenset[str]:
        """Ids of the documents in these collections that the caller may not read, though the collection is theirs to read. Raises a
        GroundworkError rather than guess."""

    def allow_local_models_only(self, tenant_id: str, collection_ids: Iterable[str]) -> bool:
        """Whether one of the collections allows local models only."""

    async def require_changeable(self, collection_id: str) -> None:
        """Raises CollectionNotFound, or NotYours, unless the caller may change the collection."""

    async def is_gone(self, tenant_id: str, collection_id: str) -> bool:
        """Whether the collection was deleted. False for one that is there without a record."""


class CollectionModels(Protocol):
    """Which embedding model each collection is searched with."""

    def chosen(self, tenant_id: str, collection_ids: Iterable[str]) -> Mapping[str, str]:
        """Of those collections that have a model of their own, as of now."""

    def versions(self, tenant_id: str, collection_ids: Iterable[str]) -> tuple[int, ...]:
        """One number a collection, another one after every change of what is known of its model."""


@dataclass(frozen=True)
class EmbeddingEntry:
    """What is stored of a collection's embedding model; None where nothing is, any more, or what cannot be read. `version` is what
    a compare-and-set compares, higher after every change."""

    tenant_id: str
    collection_id: str
    record: CollectionEmbedding | None
    version: int


class EmbeddingStore(Protocol):
    """The embedding models of the collections, changed by compare-and-set, watched by every retriever."""

    async def get(self, tenant_id: str, collection_id: str) -> EmbeddingEntry | None:
        """As stored now."""

    async def put(
        self, tenant_id: str, collection_id: str, record: CollectionEmbedding, expected_version: int | None
    ) -> EmbeddingEntry:
        """Stores the record if its version still is `expected_version` (None: does not exist); else PointerConflict."""

    async def remove(self, tenant_id: str, collection_id: str) -> None:
        """Harmless when repeated."""

    def watch(self) -> AsyncGenerator[EmbeddingEntry | None]:
        """All records, then None once, then every change, in the order of versions. Ends or raises when the connection is lost."""


class EmbeddingModels(Protocol):
    """What texts can be embedded with."""

    async def embedding_models(self) -> Sequence[str]:
        """Names, that for new texts first. Raises EmbedderUnavailable."""


class Embedder(Protocol):
    """Turns query texts into vectors."""

    async def embed_queries(
        self, queries: Sequence[str], model: str, timeout_s: float
    ) -> tuple[EmbeddingSpace, Vectors]:
        """Vectors [len(queries), dimension], L2-normalised, and the space they live in. `model`: its name; empty for the one that
        new texts are embedded with. Raises EmbeddingSpaceMismatch where it cannot be had."""


class PassageEmbedder(Protocol):
    """Turns texts of chunks into the vectors that the dense index holds."""

    async def embed_passages(self, texts: Sequence[str], model: str) -> tuple[EmbeddingSpace, Vectors]:
        """Vectors [len(texts), dimension], L2-normalised, and the space they live in. Within bounded time. `model`: as Embedder."""


class Reranker(Protocol):
    """Scores passages against a query."""

    async def rerank(
        self, query_text: str, passages: Sequence[str], timeout_s: float, content_hashes: Sequence[str]
    ) -> list[float]:
        """One score a passage, in their order; higher is better. `content_hashes` are those of the passages' chunks, under which
        the reranker may know them from their ingestion; empty where a chunk has none."""


class LanguageDetector(Protocol):
    """Tells languages apart."""

    def certainties(self, text: str) -> dict[str, float]:
        """How certain each language (ISO 639-1) is, from 0 to 1, of one line of lower-case text; those that are out of the question
        are left out. Takes less than a millisecond."""


class TextForgetter(Protocol):
    """A service that keeps what was computed of texts."""

    async def forget(self, tenant_id: str, content_hashes: Sequence[str]) -> None:
        """Removes what is kept of these texts, given by the hashes that chunks carry. Raises a GroundworkError when nobody did."""
