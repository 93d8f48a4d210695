"""The engines as one search sees them: queries embedded, phrases looked up, both lists, vectors and cosines by id. Each part within
its time; what fails is a degradation."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kit.language.phrases import quoted_phrases
from services.retriever.errors import EmbeddingSpaceMismatch
from services.retriever.indexes.engine_answer import (
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
from services.retriever.indexes.similarity import Group, Levels, comparable, groups_of
from services.retriever.indexes.spaces import DenseSpaces
from services.retriever.indexes.stored_chunk import Candidate, StoredChunk
from services.retriever.models import (
    Degradation,
    EmbeddingSpace,
    LexicalQuery,
    QueryVectors,
    SearchRequest,
    Vector,
    Vectors,
)
from services.retriever.options import SearchOptions
from services.retriever.ports import Embedder, LexicalIndex
from services.retriever.revisions.placement import Placement
from services.retriever.searching.query_language import QueryLanguages

T = TypeVar("T")

MAX_PHRASE_CHUNKS = 1000
"""Chunks with a phrase that the dense engine is restricted to. Of a phrase that more have, what it finds is checked instead."""

IsVisible = Callable[[StoredChunk], bool]
Phrases = tuple[str, ...]


SpaceCosines = Mapping[EmbeddingSpace, Sequence[Mapping[str, float]]]
"""By space, of each query, by chunk id."""


@dataclass(frozen=True)
class DenseAnswer:
    """What vectors found."""

    lists: Lists
    """Scores are cosines, or relevances where several groups were searched."""

    levels: Sequence[Levels] = ()
    """By query: what relevances go by. Empty where scores are cosines."""

    spaces: Mapping[str, EmbeddingSpace] = field(default_factory=dict)
    """In which each chunk was found, where several were searched."""


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

    def __init__(
        self,
        dense: DenseSpaces,
        lexical: LexicalIndex,
        embedder: Embedder,
        query_languages: QueryLanguages,
        options: SearchOptions,
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._embedder = embedder
        self._query_languages = query_languages
        self._options = options

    async def embed(self, queries: Sequence[str], placement: Placement, trace: Trace) -> QueryVectors | None:
        """One row a query, in each space that documents are searched in; None when none of that can be had."""
        models = list(placement.collections)
        watch = Stopwatch()
        timeout_s = self._options.embed_timeout_s
        spaces = _kept(await within(self._spaces(models), DENSE, timeout_s), trace)
        if spaces is None:
            return None
        names = [space.model for space in spaces] or [""]
        calls = [within(self._embed(queries, name, spaces, timeout_s), DENSE, timeout_s) for name in names]
        answers = [_kept(answer, trace) for answer in await asyncio.gather(*calls)]
        trace.timings_ms["embed"] = watch.lap_ms()
        return dict(answer for answer in answers if answer is not None) or None

    async def _spaces(self, models: Sequence[str]) -> list[EmbeddingSpace]:
        """Each once, in an order that does not change."""
        found = [space for model in models for space in await self._dense.spaces_of(model)]
        return list(dict.fromkeys(found))

    async def _embed(
        self, queries: Sequence[str], model: str, spaces: Sequence[EmbeddingSpace], timeout_s: float
    ) -> tuple[EmbeddingSpace, Vectors]:
        space, vectors = await self._embedder.embed_queries(queries, model, timeout_s)
        if model and space not in spaces:
            raise EmbeddingSpaceMismatch(
                f"queries are embedded by {space.model} in {space.dimension} dimensions and the index in others; run the model "
                "that made the index, or index the documents again"
            )
        return space, vectors

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
        self, request: SearchRequest, documents: Mapping[str, int], is_visible: IsVisible, limit: int, trace: Trace
    ) -> Lists | None:
        """One list a query, of collections with so many documents in each language; None when the engine failed."""
        queries = [
            LexicalQuery(query_text, phrases, self._query_languages.of(query_text, documents))
            for query_text, phrases in zip(request.queries, phrases_by_query(request), strict=True)
        ]
        return await self._listed(
            LEXICAL, lambda wanted: self._lexical.search(request.scope, queries, wanted), is_visible, limit, trace
        )

    async def ask_dense(
        self,
        request: SearchRequest,
        queries: QueryVectors,
        placement: Placement,
        documents: Mapping[str, int],
        having: dict[Phrases, tuple[str, ...] | None],
        is_visible: IsVisible,
        limit: int,
        trace: Trace,
    ) -> DenseAnswer | None:
        """One list a query; None when the engine failed. `documents` counts those that are searched by language, `having` holds
        the chunks with the phrases of a query."""
        watch = Stopwatch()
        groups = [group for space in queries for group in groups_of(space, documents)]
        calls = [
            self._in_space(request, group, queries[group.space], placement, having, is_visible, limit, trace)
            for group in groups
        ]
        found = {
            group: lists for group, lists in zip(groups, await asyncio.gather(*calls), strict=True) if lists is not None
        }
        trace.timings_ms[DENSE.name] = watch.lap_ms()
        if not found:
            return None
        if len(groups) == 1:
            return DenseAnswer(next(iter(found.values())))
        spaces = (
            {hit.stored.chunk_id: group.space for group, lists in found.items() for hits in lists for hit in hits}
            if len(queries) > 1
            else {}
        )
        merged = [
            comparable({group: lists[row] for group, lists in found.items()}) for row in range(len(request.queries))
        ]
        return DenseAnswer([hits for hits, _ in merged], [levels for _, levels in merged], spaces)

    def spoken(self, request: SearchRequest, documents: Collection[str]) -> list[tuple[str, ...] | None]:
        """By query: those of the documents' languages that it is in; see QueryLanguages."""
        return [self._query_languages.spoken(query_text, documents) for query_text in request.queries]

    async def _in_space(
        self,
        request: SearchRequest,
        group: Group,
        vectors: Vectors,
        placement: Placement,
        having: dict[Phrases, tuple[str, ...] | None],
        is_visible: IsVisible,
        limit: int,
        trace: Trace,
    ) -> Lists | None:
        """Of the documents that are searched in this space, and are not only kept there."""
        # Of collections without documents it is still to be said when the engine is down.
        collection_ids = (
            placement.collections_in(group.space) if placement.collections else request.scope.collection_ids
        )
        scope = replace(request.scope, collection_ids=collection_ids)
        lists = await self._listed(
            DENSE,
            self._in_group(replace(request, scope=scope), group, vectors, having),
            lambda stored: is_visible(stored) and placement.is_searched_in(stored, group.space),
            limit,
            trace,
        )
        if lists is None:
            return None
        return [[hit for hit in hits if placement.is_searched_in(hit.stored, group.space)] for hits in lists]

    def _in_group(
        self,
        request: SearchRequest,
        group: Group,
        vectors: Vectors,
        having: dict[Phrases, tuple[str, ...] | None],
    ) -> EngineSearch:
        phrases = phrases_by_query(request)

        async def search(wanted: int) -> list[list[Candidate]]:
            lists: list[list[Candidate]] = [[] for _ in phrases]
            for wording in dict.fromkeys(phrases):
                chunk_ids = having.get(wording)
                if chunk_ids == ():
                    continue  # nothing has the phrases, where an empty restriction would mean everything
                rows = [row for row, mine in enumerate(phrases) if mine == wording]
                scope = replace(request.scope, chunk_ids=chunk_ids or ())
                for row, hits in zip(rows, await self._dense.search(scope, group, vectors[rows], wanted), strict=True):
                    lists[row] = hits
            return lists

        return search

    async def cosines(
        self, tenant_id: str, chunks: Sequence[StoredChunk], queries: QueryVectors, placement: Placement, trace: Trace
    ) -> SpaceCosines | None:
        """Of each query with those of the chunks that have a vector, by space and chunk id; None when the engine failed."""
        if not chunks:
            return {}
        watch = Stopwatch()
        calls = [
            self._dense.cosines(
                tenant_id,
                [each.chunk_id for each in chunks if placement.is_searched_in(each, space)],
                space,
                vectors,
            )
            for space, vectors in queries.items()
        ]
        answer = await within(asyncio.gather(*calls), COSINES, self._options.engine_timeout_s)
        trace.timings_ms["cosines"] = watch.lap_ms()
        found = _kept(answer, trace)
        return None if found is None else dict(zip(queries, found, strict=True))

    async def vectors(
        self, tenant_id: str, chunks: Sequence[StoredChunk], placement: Placement, trace: Trace
    ) -> dict[str, Vector]:
        """For choosing diverse hits, by chunk id; without those that are not to be had."""
        watch = Stopwatch()
        models = {each.chunk_id: placement.model_of(each.document_id) for each in chunks}
        call = self._dense.vectors(tenant_id, list(models), models)
        answer = await within(call, DIVERSITY, self._options.engine_timeout_s)
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
