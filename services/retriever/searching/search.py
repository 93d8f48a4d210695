"""The search: planned by the size of its collections, both engines in parallel, only what is visible, fused, filtered, reranked
when it pays, diverse on demand, explained, and remembered until something changes.

plan ─► remembered? ─► lexical ───────────────┐
                       phrases ─┬─► dense ────┴─► visible? phrases? ─► fuse ─► gate ─► duplicates ─► rerank ─► diversity ─► top_k
                       embed ───┘
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kit.network.local_models import use_local_models
from kit.ranking.diversity import most_diverse
from services.retriever.errors import SearchUnavailable
from services.retriever.indexes.chunk_encoding import note_unreadable
from services.retriever.indexes.engine_answer import DENSE, LEXICAL, NEIGHBOURS, Lists, Stopwatch, within
from services.retriever.indexes.stored_chunk import ChunkUnreadable
from services.retriever.models import (
    CacheOutcome,
    Degradation,
    FusionMethod,
    Hit,
    QueryVectors,
    SearchPlan,
    SearchRequest,
    SearchResult,
    SearchScope,
    Strategy,
)
from services.retriever.options import READ_TIMEOUT_S, SearchOptions
from services.retriever.ports import CollectionModels, CollectionRights
from services.retriever.revisions.chunk_reader import ChunkReader
from services.retriever.revisions.index_gaps import INCOMPLETE, IndexGaps
from services.retriever.revisions.placement import Placement
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.searching import gate
from services.retriever.searching.engines import DenseAnswer, Engines, IsVisible, Trace, phrases_by_query
from services.retriever.searching.ranking import Ranking
from services.retriever.searching.reranking import RerankStage
from services.retriever.searching.result_cache import CacheKey, ResultCache, Versions
from services.retriever.searching.strategy import plan_search
from services.retriever.validation import check_search

_DIVERSITY_POOL = 5
"""Candidates a hit wanted among which diverse ones are chosen: what ranks lower is not relevant enough to be interesting."""
_FORGET_INTERVAL_S = 15.0
"""A deleted document is to be forgotten within a minute."""


@dataclass
class _Search:
    """One search under way."""

    request: SearchRequest
    plan: SearchPlan
    is_visible: IsVisible
    trace: Trace
    placement: Placement
    documents: Mapping[str, int]
    """How many are in each language, most common first."""
    spoken: Sequence[tuple[str, ...] | None] = ()
    """By query: those of these languages that it is in; None where that is of no consequence."""
    queries: QueryVectors | None = None
    dense: DenseAnswer | None = None
    dense_is_down: bool = False
    lexical_is_down: bool = False


class Searcher:
    """Answers with what is left when a part is down, and says so."""

    def __init__(
        self,
        engines: Engines,
        rerank: RerankStage,
        reader: ChunkReader,
        revisions: RevisionMap,
        gaps: IndexGaps,
        cache: ResultCache,
        options: SearchOptions,
        rights: CollectionRights,
        models: CollectionModels,
    ) -> None:
        self._rights = rights
        self._models = models
        self._engines = engines
        self._rerank = rerank
        self._reader = reader
        self._revisions = revisions
        self._gaps = gaps
        self._cache = cache
        self._options = options

    async def search(self, request: SearchRequest) -> SearchResult:
        """Raises InvalidRequest, SearchUnavailable when no engine that was asked could answer, RevisionsStale, or
        CollectionsStale."""
        check_search(request)
        self._revisions.require_fresh()
        total = Stopwatch()
        # First of all: everything below, what is remembered included, knows the request only by what its caller may read.
        readable = await self._rights.readable(request.scope.collection_ids)
        if not readable:
            return self._nothing_to_read(request, total)
        scope = _narrowed(request.scope, readable, self._rights.hidden(readable))
        if scope is None:
            return self._nothing_to_read(request, total)
        request = replace(request, scope=scope)
        return await self._answer(request, self._models.chosen(request.scope.tenant_id, readable), total)

    async def trial(self, request: SearchRequest, chosen: Mapping[str, str]) -> SearchResult:
        """What a search would answer if the collections had these models. Nothing is remembered. Raises what `search`
        raises."""
        check_search(request)
        self._revisions.require_fresh()
        return await self._answer(replace(request, no_cache=True), chosen, Stopwatch())

    async def _answer(self, request: SearchRequest, chosen: Mapping[str, str], total: Stopwatch) -> SearchResult:
        """Of collections that may be read. `chosen`: the model of each that has one."""
        scope = request.scope
        with use_local_models(self._rights.allow_local_models_only(scope.tenant_id, scope.collection_ids)):
            return await self._answer_bound(request, chosen, total)

    async def _answer_bound(self, request: SearchRequest, chosen: Mapping[str, str], total: Stopwatch) -> SearchResult:
        scope = request.scope
        # Read before the engines are asked: what changes meanwhile makes the answer one of yesterday.
        versions = self._versions(scope)
        chunk_count = self._revisions.chunk_count(scope.tenant_id, scope.collection_ids)
        key = CacheKey.of(request, plan_search(request, chunk_count, self._options))
        may_remember = self._cache.is_on and not request.no_cache
        known = self._cache.get(key, versions) if may_remember else None
        if known is not None:
            return replace(known, cache=CacheOutcome.HIT, timings_ms={"total": total.lap_ms()})
        documents = self._revisions.languages(scope.tenant_id, scope.collection_ids)
        placement = self._revisions.placement(scope.tenant_id, scope.collection_ids, chosen)
        search = _Search(request, key.plan, self._visibility(request), Trace(), placement, documents)
        self._note_gaps(search)
        found = await self._find(search, key if may_remember else None, versions)
        if isinstance(found, SearchResult):
            timings_ms = search.trace.timings_ms | {"total": total.lap_ms()}
            return replace(found, cache=CacheOutcome.SEMANTIC, timings_ms=timings_ms)
        result = await self._ranked(search, found)
        result = replace(result, timings_ms=search.trace.timings_ms | {"total": total.lap_ms()})
        if not may_remember:
            return replace(result, cache=CacheOutcome.OFF)
        if not result.degraded:
            self._cache.put(key, result, search.queries, versions)
        return result

    def _nothing_to_read(self, request: SearchRequest, total: Stopwatch) -> SearchResult:
        """The answer about collections that are not there, or not for the caller."""
        may_remember = self._cache.is_on and not request.no_cache
        return SearchResult(
            hits=(),
            plan=plan_search(request, 0, self._options),
            rerank_reason="skipped: there is nothing to reorder",
            degraded=(),
            dropped=(),
            timings_ms={"total": total.lap_ms()},
            cache=CacheOutcome.MISS if may_remember else CacheOutcome.OFF,
        )

    async def forget_outdated(self) -> None:
        """Keeps text of deleted documents out of memory: remembered answers go when they are outdated, also if nobody asks again.
        Runs until cancelled."""
        while True:
            await asyncio.sleep(_FORGET_INTERVAL_S)
            self._cache.drop_outdated(self._versions)

    def _versions(self, scope: SearchScope) -> Versions:
        return (
            *self._revisions.versions(scope.tenant_id, scope.collection_ids),
            *self._models.versions(scope.tenant_id, scope.collection_ids),
            self._gaps.version,
        )

    async def _find(self, search: _Search, key: CacheKey | None, versions: Versions) -> Ranking | SearchResult:
        """What the engines find, or the answer to the same question in other words."""
        request, plan, trace = search.request, search.plan, search.trace
        lexical: asyncio.Task[Lists | None] | None = None
        documents = search.documents
        search.spoken = self._engines.spoken(request, documents)
        async with asyncio.TaskGroup() as group:
            if plan.strategy is not Strategy.DENSE:
                lexical = group.create_task(
                    self._engines.ask_lexical(request, documents, search.is_visible, plan.candidates, trace)
                )
            having = group.create_task(self._engines.with_phrases(request, search.is_visible, trace))
            if plan.strategy is not Strategy.LEXICAL or request.min_score is not None:
                search.queries = await self._engines.embed(request.queries, search.placement, trace)
            if key is not None and search.queries is not None:
                known = self._cache.similar(key, search.queries, versions)
                if known is not None:
                    for task in (lexical, having):
                        if task is not None:
                            task.cancel()
                    return known
            if plan.strategy is not Strategy.LEXICAL and search.queries is not None:
                search.dense = await self._engines.ask_dense(
                    request,
                    search.queries,
                    search.placement,
                    documents,
                    await having,
                    search.is_visible,
                    plan.candidates,
                    trace,
                )
                search.dense_is_down = search.dense is None
        words = lexical.result() if lexical else None
        dense = search.dense.lists if search.dense else None
        search.lexical_is_down |= lexical is not None and words is None
        if dense is None and words is None:
            failures = "; ".join(failure.message for failure in trace.degraded)
            raise SearchUnavailable(f"nothing can be searched now: {failures}", retry_after_s=1.0)
        if dense is not None and not any(dense):
            self._note_empty(search)
        return Ranking(dense or (), words or (), search.is_visible, phrases_by_query(request))

    async def _ranked(self, search: _Search, ranking: Ranking) -> SearchResult:
        """Ranks; again without it when a chunk turns out to be unreadable."""
        while True:
            try:
                return await self._rank(search, ranking)
            except ChunkUnreadable as error:
                note_unreadable(error)
                ranking = ranking.without(error.chunk_id)

    async def _rank(self, search: _Search, ranking: Ranking) -> SearchResult:
        """The stages after the engines."""
        request, plan, trace = search.request, search.plan, search.trace
        await self._complete(search, ranking)
        watch = Stopwatch()
        fused = ranking.fuse(plan, request.query_weights, search.spoken)
        fused = ranking.without_noise(fused, request.min_score, self._noise(search, ranking))
        fused = ranking.without_duplicates(fused, 2 * plan.top_k, request.queries)
        trace.timings_ms["fuse"] = watch.lap_ms()
        reranked = await self._rerank.run(request.queries[0], fused, ranking, plan, trace)
        chosen = await self._chosen(search, reranked.ranking, ranking)
        explanations = ranking.explain(chosen, fused, reranked.scores, is_diverse=request.diversity > 0)
        hits = [
            Hit(ranking.chunk(chunk_id), reranked.ranking[chunk_id], explanations[chunk_id])
            for chunk_id in chosen
            if search.is_visible(ranking.stored[chunk_id])  # a document may have been deleted while it was reranked
        ]
        return SearchResult(
            hits=tuple(await self._with_neighbours(search, hits)),
            plan=plan,
            rerank_reason=reranked.reason,
            degraded=tuple(trace.degraded),
            dropped=tuple(ranking.dropped),
            timings_ms=trace.timings_ms,
        )

    def _noise(self, search: _Search, ranking: Ranking) -> gate.Noise | None:
        """None where words cannot vouch for what lies below it: while their engine is away, which is said; and where the request
        wants vectors alone, unless a threshold is set. Then the nearest is shown: a made-up word has a cosine of 0.34 with the
        passage that has it."""
        spaces = tuple(search.queries or ())
        if search.lexical_is_down or not spaces:
            return None
        if (setting := self._options.noise_cosine) is not None:
            return lambda _: setting
        if search.plan.strategy is Strategy.DENSE:
            return None
        known = search.dense.spaces if search.dense else {}

        def noise_of(chunk_id: str) -> float | None:
            languages = tuple(search.documents)
            language = languages[0] if len(languages) == 1 else ranking.chunk(chunk_id).language
            space = spaces[0] if len(spaces) == 1 else known.get(chunk_id)
            return gate.noise_cosine(space, language, search.spoken)

        return noise_of

    async def _complete(self, search: _Search, ranking: Ranking) -> None:
        """Reads the cosines of what words alone found, for those who need them: the convex fusion and the gate."""
        request, plan = search.request, search.plan
        is_convex = plan.strategy is Strategy.HYBRID and plan.fusion is FusionMethod.CONVEX
        if search.queries is None or search.dense_is_down or not (is_convex or request.min_score is not None):
            return
        missing = [ranking.stored[chunk_id] for chunk_id in ranking.without_cosine()]
        cosines = await self._engines.cosines(
            request.scope.tenant_id, missing, search.queries, search.placement, search.trace
        )
        if cosines is not None:
            ranking.complete(cosines, search.dense.levels if search.dense else ())

    async def _chosen(self, search: _Search, final: Mapping[str, float], ranking: Ranking) -> list[str]:
        """The hits to return, in order; notes what was good, but not good enough."""
        request, top_k = search.request, search.plan.top_k
        best = list(final)
        chosen = best[:top_k]
        if request.diversity and len(best) > 1:
            pool = dict(islice(final.items(), _DIVERSITY_POOL * top_k))
            # Of an index that has just failed too: a request for diversity should hear that it was not fulfilled.
            chunks = [ranking.stored[chunk_id] for chunk_id in pool]
            vectors = await self._engines.vectors(request.scope.tenant_id, chunks, search.placement, search.trace)
            watch = Stopwatch()
            if vectors:
                chosen = most_diverse(pool, vectors, top_k, request.diversity)
            search.trace.timings_ms["diversity"] = watch.lap_ms()
        _note_left_out(ranking, best, chosen, top_k)
        return chosen

    async def _with_neighbours(self, search: _Search, hits: Sequence[Hit]) -> Sequence[Hit]:
        window = search.request.window
        if not window or not hits:
            return hits
        watch = Stopwatch()
        chunks = [hit.chunk for hit in hits]
        call = self._reader.with_neighbours(search.request.scope.tenant_id, chunks, window)
        windows = await within(call, NEIGHBOURS, READ_TIMEOUT_S)
        search.trace.timings_ms["neighbours"] = watch.lap_ms()
        if isinstance(windows, Degradation):
            search.trace.degraded.append(windows)
            return hits
        return [replace(hit, before=each.before, after=each.after) for hit, each in zip(hits, windows, strict=True)]

    def _note_gaps(self, search: _Search) -> None:
        """Says which of the engines that are asked lack documents of the collections."""
        scope, strategy = search.request.scope, search.plan.strategy
        for part, other in ((DENSE, Strategy.LEXICAL), (LEXICAL, Strategy.DENSE)):
            degradation = self._gaps.degradation(part, scope.tenant_id, scope.collection_ids)
            if degradation is not None and strategy is not other:
                search.trace.note(degradation)
                search.lexical_is_down |= part is LEXICAL

    def _note_empty(self, search: _Search) -> None:
        """Vectors always find something, for they rank everything: without any, an index has been lost that is not missed yet."""
        request = search.request
        is_narrowed = (
            replace(
                request.scope,
                document_ids=(),
                hidden_document_ids=frozenset(),
                metadata=(),
                date_from_s=None,
                date_to_s=None,
            )
            != request.scope
        )
        is_known = any(degradation.part == DENSE.name for degradation in search.trace.degraded)
        if search.plan.chunk_count and not (is_known or is_narrowed or any(phrases_by_query(request))):
            self._gaps.suspected.set()
            message = f"{DENSE.subject} found nothing at all; its index may have been lost and is being looked at"
            search.trace.note(Degradation(DENSE.name, INCOMPLETE, message))

    def _visibility(self, request: SearchRequest) -> IsVisible:
        tenant_id, revisions, hidden = request.scope.tenant_id, self._revisions, request.scope.hidden_document_ids
        return lambda stored: (
            stored.document_id not in hidden and revisions.is_active(tenant_id, stored.document_id, stored.revision_id)
        )


def _narrowed(scope: SearchScope, readable: tuple[str, ...], hidden: frozenset[str]) -> SearchScope | None:
    """The part of a scope that the caller may read; None where that is nothing."""
    if not scope.document_ids:
        return replace(scope, collection_ids=readable, hidden_document_ids=hidden)
    document_ids = tuple(each for each in scope.document_ids if each not in hidden)
    return replace(scope, collection_ids=readable, document_ids=document_ids) if document_ids else None


def _note_left_out(ranking: Ranking, best: Sequence[str], chosen: Sequence[str], top_k: int) -> None:
    taken = set(chosen)
    for rank, chunk_id in enumerate(best):
        if chunk_id in taken:
            continue
        if rank < top_k:
            ranking.drop(chunk_id, "diversity", "it repeats what hits that were chosen before it say")
        else:
            ranking.drop(chunk_id, "top_k", f"it ranks below the {top_k} hits that were asked for")
