"""The engines as one search sees them: queries embedded, phrases looked up, both lists, vectors and cosines by id. Each part within
its time; what fails is a degradation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kit.language.phrases import quoted_phrases
from services.retriever.engine_answer import (
    COSINES,
    DENSE,
    DIVERSITY,
    LEXICAL,
    EngineSearch,
    Lists,
    Part,
    Stopwatch,
    candidates,
    within,
)
from services.retriever.errors import EmbeddingSpaceMismatch
from services.retriever.models import Degradation, LexicalQuery, SearchRequest, Vector, Vectors
from services.retriever.options import SearchOptions
from services.retriever.ports import DenseIndex, Embedder, LexicalIndex
from services.retriever.stored_chunk import Candidate, StoredChunk

T = TypeVar("T")

MAX_PHRASE_CHUNKS = 1000
"""Chunks with a phrase that the dense engine is restricted to. Of a phrase that more have, what it finds is checked instead."""

IsVisible = Callable[[StoredChunk], bool]
Phrases = tuple[str, ...]


@dataclass
class Trace:
    """What one search has met with so far."""

    degraded: list[Degradation] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)

    def note(self, degradation: Degradation) -> None:
        """Notes it, once a part."""
        if all(known.part != degradation.part for known in self.degraded):
            self.degraded.append(degradation)


def phrases_by_query(request: SearchRequest) -> list[Phrases]:
    """What each hit of each query must contain."""
    return [
        request.must_phrases + (quoted_phrases(query_text) if request.exact_quotes else ())
        for query_text in request.queries
    ]


class Engines:
    """Both engines and the embedder."""

    def __init__(self, dense: DenseIndex, lexical: LexicalIndex, embedder: Embedder, options: SearchOptions) -> None:
        self._dense = dense
        self._lexical = lexical
        self._embedder = embedder
        self._options = options

    @property
    def dense(self) -> DenseIndex:
        return self._dense

    async def embed(self, queries: Sequence[str], trace: Trace) -> Vectors | None:
        """One row a query, in the space of the index; None when that cannot be had."""
        watch = Stopwatch()
        timeout_s = self._options.embed_timeout_s
        answer = await within(self._embed(queries, timeout_s), DENSE, timeout_s)
        trace.timings_ms["embed"] = watch.lap_ms()
        return _kept(answer, trace)

    async def _embed(self, queries: Sequence[str], timeout_s: float) -> Vectors:
        space, vectors = await self._embedder.embed_queries(queries, timeout_s)
        held = self._dense.space
        if held is not None and held != space:
            raise EmbeddingSpaceMismatch(
                f"queries are embedded by {space.model} ({space.dimension} dimensions) and the index by {held.model} "
                f"({held.dimension}); run the model that made the index, or index all documents again"
            )
        return vectors

    async def with_phrases(
        self, request: SearchRequest, is_visible: IsVisible, trace: Trace
    ) -> dict[Phrases, tuple[str, ...] | None]:
        """Visible chunks that contain them, for each set of phrases; None when they are too many to name, or not known."""
        wanted = [phrases for phrases in dict.fromkeys(phrases_by_query(request)) if phrases]
        if not wanted:
            return {}
        watch = Stopwatch()
        queries = [LexicalQuery("", phrases) for phrases in wanted]
        call = self._lexical.search(request.scope, queries, MAX_PHRASE_CHUNKS)
        lists = _kept(await within(call, LEXICAL, self._options.engine_timeout_s), trace)
        trace.timings_ms["phrases"] = watch.lap_ms()
        if lists is None:
            return dict.fromkeys(wanted)
        return {phrases: _ids(hits, is_visible) for phrases, hits in zip(wanted, lists, strict=True)}

    async def ask_lexical(
        self, request: SearchRequest, languages: Sequence[str], is_visible: IsVisible, limit: int, trace: Trace
    ) -> Lists | None:
        """One list a query, which is analysed in these languages; None when the engine failed."""
        queries = [
            LexicalQuery(query_text, phrases, tuple(languages))
            for query_text, phrases in zip(request.queries, phrases_by_query(request), strict=True)
        ]
        return await self._listed(
            LEXICAL, lambda wanted: self._lexical.search(request.scope, queries, wanted), is_visible, limit, trace
        )

    async def ask_dense(
        self,
        request: SearchRequest,
        vectors: Vectors,
        having: dict[Phrases, tuple[str, ...] | None],
        is_visible: IsVisible,
        limit: int,
        trace: Trace,
    ) -> Lists | None:
        """One list a query; None when the engine failed. `having` are the chunks with the phrases of a query."""
        phrases = phrases_by_query(request)

        async def search(wanted: int) -> list[list[Candidate]]:
            lists: list[list[Candidate]] = [[] for _ in phrases]
            for group in dict.fromkeys(phrases):
                chunk_ids = having.get(group)
                if chunk_ids == ():
                    continue  # nothing has the phrases, where an empty restriction would mean everything
                rows = [row for row, mine in enumerate(phrases) if mine == group]
                scope = replace(request.scope, chunk_ids=chunk_ids or ())
                for row, hits in zip(rows, await self._dense.search(scope, vectors[rows], wanted), strict=True):
                    lists[row] = hits
            return lists

        return await self._listed(DENSE, search, is_visible, limit, trace)

    async def cosines(
        self, tenant_id: str, chunk_ids: Sequence[str], queries: Vectors, trace: Trace
    ) -> list[dict[str, float]] | None:
        """Of each query with those of the chunks that have a vector, by chunk id; None when the engine failed."""
        if not chunk_ids:
            return [{} for _ in queries]
        watch = Stopwatch()
        call = self._dense.cosines(tenant_id, chunk_ids, queries)
        answer = await within(call, COSINES, self._options.engine_timeout_s)
        trace.timings_ms["cosines"] = watch.lap_ms()
        return _kept(answer, trace)

    async def vectors(self, tenant_id: str, chunk_ids: Sequence[str], trace: Trace) -> dict[str, Vector]:
        """For choosing diverse hits, by chunk id; without those that are not to be had."""
        watch = Stopwatch()
        answer = await within(self._dense.vectors(tenant_id, chunk_ids), DIVERSITY, self._options.engine_timeout_s)
        trace.timings_ms["vectors"] = watch.lap_ms()
        return _kept(answer, trace) or {}

    async def _listed(
        self, part: Part, search: EngineSearch, is_visible: IsVisible, limit: int, trace: Trace
    ) -> Lists | None:
        watch = Stopwatch()
        call = candidates(search, is_visible, limit)
        answer = await within(call, part, self._options.engine_timeout_s)
        trace.timings_ms[part.name] = watch.lap_ms()
        return _kept(answer, trace)


def _kept(answer: T | Degradation, trace: Trace) -> T | None:
    """The answer; a degradation is noted."""
    if not isinstance(answer, Degradation):
        return answer
    trace.note(answer)
    return None


def _ids(hits: Sequence[Candidate], is_visible: IsVisible) -> tuple[str, ...] | None:
    if len(hits) >= MAX_PHRASE_CHUNKS:
        return None
    return tuple(hit.stored.chunk_id for hit in hits if is_visible(hit.stored))
