"""The retriever's core over fakes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from services.retriever.concurrency import KeyedLock
from services.retriever.indexes.engine_answer import DENSE, LEXICAL
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.model_change.embedding_map import EmbeddingMap
from services.retriever.models import (
    Activation,
    Chunk,
    FusionMethod,
    IndexBatch,
    RevisionKey,
    SearchRequest,
    SearchResult,
    SearchScope,
)
from services.retriever.options import IndexingOptions, ReconcileOptions, SearchOptions
from services.retriever.revisions.activation import RevisionSwitch
from services.retriever.revisions.chunk_reader import ChunkReader
from services.retriever.revisions.copying import DenseCopier
from services.retriever.revisions.index_gaps import IndexGaps
from services.retriever.revisions.indexing import IndexHeader, RevisionWriter
from services.retriever.revisions.removal import Remover
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.revisions.revision_reader import RevisionReader
from services.retriever.revisions.written import WrittenRevisions
from services.retriever.searching.engines import Engines
from services.retriever.searching.query_language import QueryLanguages
from services.retriever.searching.reranking import RerankStage
from services.retriever.searching.result_cache import ResultCache
from services.retriever.searching.search import Searcher
from services.retriever.upkeep.reconciler import Reconciler
from services.retriever.upkeep.refill import Refiller
from tests.unit.retriever.fakes import (
    MODEL,
    FakeDense,
    FakeDetector,
    FakeLexical,
    FakeModels,
    FakeRevisions,
    FakeRights,
    FakeSpaces,
    make_batch,
    make_chunk,
)

OPTIONS = SearchOptions(
    min_candidates=10, fusion=FusionMethod.RRF, cache_bytes=0, engine_timeout_s=20.0, embed_timeout_s=20.0
)
"""With time limits that no busy machine reaches; a test of what hangs sets its own."""


@dataclass
class Core:
    """Everything wired as app.py wires it, with a clock of its own."""

    dense: FakeDense = field(default_factory=FakeDense)
    lexical: FakeLexical = field(default_factory=FakeLexical)
    models: FakeModels = field(default_factory=FakeModels)
    store: FakeRevisions = field(default_factory=FakeRevisions)
    revisions: RevisionMap = field(default_factory=RevisionMap)
    rights: FakeRights = field(default_factory=FakeRights)
    collection_models: EmbeddingMap = field(default_factory=EmbeddingMap)
    now_s: float = 1_000_000.0
    options: SearchOptions = field(default_factory=lambda: OPTIONS)
    _searcher: tuple[SearchOptions, Searcher] | None = None

    def __post_init__(self) -> None:
        clock = self.clock
        written = WrittenRevisions(clock)
        turns, writing = KeyedLock(), KeyedLock()
        self.gaps = IndexGaps(self.revisions)
        self.writing = writing
        self.spaces = DenseSpaces(FakeSpaces([self.dense]))
        self.copier = DenseCopier(self.spaces, self.lexical, self.models, self.rights)
        self.refiller = Refiller(
            self.spaces, self.lexical, self.copier, self.revisions, self.gaps, writing, (DENSE, LEXICAL), clock=clock
        )
        self.remover = Remover(self.spaces, self.lexical, self.store, self.revisions, written, turns)
        self.reader = ChunkReader((self.lexical, self.spaces), self.revisions, self.rights)
        self.switch = RevisionSwitch(
            self.spaces, self.lexical, self.store, self.revisions, self.remover, written, turns, clock=clock
        )
        indexing = IndexingOptions(batch_wait_s=0.2)
        self.writer = RevisionWriter(
            self.spaces, self.lexical, self.revisions, written, indexing, writing, self.switch.place, clock=clock
        )
        self.revision_reader = RevisionReader(self.spaces, self.lexical, self.revisions, self.refiller.is_filling)
        self.reconciler = Reconciler(
            self.spaces,
            self.lexical,
            self.store,
            self.revisions,
            self.gaps,
            self.remover,
            ReconcileOptions(orphan_age_s=3600),
            clock=clock,
        )

    def clock(self) -> float:
        return self.now_s

    async def index(self, key: RevisionKey, texts: Sequence[str], **fields: object) -> int:
        chunks = [make_chunk(text, ordinal, key=key, **fields) for ordinal, text in enumerate(texts)]
        return await self.index_chunks(key, chunks)

    async def index_chunks(self, key: RevisionKey, chunks: Sequence[Chunk]) -> int:
        async def batches() -> AsyncIterator[IndexBatch]:
            for start in range(0, len(chunks), 2):
                yield make_batch(chunks[start : start + 2])

        return await self.writer.index(IndexHeader(key, "default", MODEL), batches())

    async def activate(self, key: RevisionKey, number: int, chunk_count: int) -> int:
        return await self.switch.activate(Activation(key, "default", number, chunk_count))

    async def publish(self, key: RevisionKey, texts: Sequence[str], number: int = 1, **fields: object) -> None:
        await self.activate(key, number, await self.index(key, texts, **fields))

    async def search(self, query_text: str, *, tenant_id: str = "local", **fields: object) -> SearchResult:
        if self._searcher is None or self._searcher[0] != self.options:
            self._searcher = (self.options, self.make_searcher())
        request = {"scope": SearchScope(tenant_id, ("default",)), "queries": (query_text,), "top_k": 5} | fields
        return await self._searcher[1].search(SearchRequest(**request))  # type: ignore[arg-type]

    def make_searcher(self) -> Searcher:
        """With a cache of its own, which lives as long as the options stay the same."""
        return Searcher(
            Engines(self.spaces, self.lexical, self.models, QueryLanguages(FakeDetector()), self.options),
            RerankStage(self.models, self.options, clock=self.clock),
            self.reader,
            self.revisions,
            self.gaps,
            ResultCache(self.options, clock=self.clock),
            self.options,
            self.rights,
            self.collection_models,
        )


def texts(result: SearchResult) -> list[str]:
    return [hit.chunk.text for hit in result.hits]
