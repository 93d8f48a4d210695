"""The search: both engines in parallel, only what is visible, fused, without duplicates, reranked on demand, explained.

lexical ───────────────┐
embed ─► dense ────────┴─► visible? ─► fuse ─► duplicates ─► rerank ─► top_k
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import islice

import structlog

from kit.deadline import bounded_timeout_s
from kit.errors import GroundworkError
from services.retriever.engine_answer import EngineAnswer, Stopwatch, candidates, within
from services.retriever.errors import EmbeddingSpaceMismatch, SearchUnavailable
from services.retriever.fusion import blend_rerank
from services.retriever.models import Chunk, Degradation, Hit, SearchRequest, SearchResult, Strategy
from services.retriever.options import SearchOptions
from services.retriever.ports import DenseIndex, Embedder, LexicalIndex, Reranker
from services.retriever.ranking import Ranking
from services.retriever.revision_map import RevisionMap
from services.retriever.stored_chunk import StoredChunk
from services.retriever.validation import check_search

_log = structlog.get_logger()


class Searcher:
    """Answers with what is left when a part is down, and says so."""

    def __init__(
        self,
        dense: DenseIndex,
        lexical: LexicalIndex,
        *,
        embedder: Embedder,
        reranker: Reranker,
        revisions: RevisionMap,
        options: SearchOptions,
    ) -> None:
        self._dense = dense
        self._lexical = lexical
        self._embedder = embedder
        self._reranker = reranker
        self._revisions = revisions
        self._options = options

    async def search(self, request: SearchRequest) -> SearchResult:
        """Raises InvalidRequest, or SearchUnavailable when no engine that was asked could answer."""
        check_search(request)
        total, stage = Stopwatch(), Stopwatch()
        dense, lexical = await self._ask(request)
        degraded = [answer.degradation for answer in (dense, lexical) if answer.degradation]
        timings_ms = dense.timings_ms | lexical.timings_ms
        stage.lap_ms()
        ranking = Ranking(dense.lists, lexical.lists, self._visibility(request))
        method = request.fusion or self._options.fusion
        fused = ranking.fuse(method, self._options)
        timings_ms["fuse"] = stage.lap_ms()
        reranked: dict[str, float] = {}
        if self._wants_rerank(request) and fused:
            reranked = await self._rerank(request.queries[0], fused, ranking, degraded)
            timings_ms["rerank"] = stage.lap_ms()
        final = blend_rerank(fused, reranked, self._options.rerank_weight) if reranked else fused
        explanations = ranking.explain(fused, reranked)
        hits = [
            Hit(ranking.stored[chunk_id].chunk, score, explanations[chunk_id])
            for chunk_id, score in islice(final.items(), request.top_k)
        ]
        ranking.drop_below(islice(final, request.top_k, None), request.top_k)
        timings_ms["total"] = total.lap_ms()
        return SearchResult(tuple(hits), request.strategy, method, tuple(degraded), tuple(ranking.dropped), timings_ms)

    def _wants_rerank(self, request: SearchRequest) -> bool:
        return self._options.rerank_by_default if request.rerank is None else request.rerank

    async def _ask(self, request: SearchRequest) -> tuple[EngineAnswer, EngineAnswer]:
        """The dense and the lexical answer, empty from an engine that was not asked."""
        limit = max(self._options.min_candidates, 5 * request.top_k)
        engine_timeout_s = self._options.engine_timeout_s
        calls: dict[Strategy, Awaitable[EngineAnswer]] = {}
        if request.strategy is not Strategy.LEXICAL:
            timeout_s = self._options.embed_timeout_s + engine_timeout_s
            calls[Strategy.DENSE] = within(self._ask_dense(request, limit), "dense", timeout_s)
        if request.strategy is not Strategy.DENSE:
            calls[Strategy.LEXICAL] = within(self._ask_lexical(request, limit), "lexical", engine_timeout_s)
        answers = dict(zip(calls, await asyncio.gather(*calls.values()), strict=True))
        failures = [answer.degradation for answer in answers.values() if answer.degradation]
        if len(failures) == len(answers):
            raise SearchUnavailable(
                "nothing can be searched now: " + "; ".join(failure.message for failure in failures), retry_after_s=1.0
            )
        return answers.get(Strategy.DENSE, EngineAnswer()), answers.get(Strategy.LEXICAL, EngineAnswer())

    async def _ask_dense(self, request: SearchRequest, limit: int) -> EngineAnswer:
        watch = Stopwatch()
        space, vectors = await self._embedder.embed_queries(request.queries, self._options.embed_timeout_s)
        timings_ms = {"embed": watch.lap_ms()}
        held = self._dense.space
        if held is not None and held != space:
            raise EmbeddingSpaceMismatch(
                f"queries are embedded by {space.model} ({space.dimension} dimensions) and the index by {held.model} "
                f"({held.dimension}); run the model that made the index, or index all documents again"
            )
        answer = await candidates(
            lambda wanted: self._dense.search(request.scope, vectors, wanted), self._visibility(request), limit
        )
        return replace(answer, timings_ms=timings_ms | {"dense": watch.lap_ms()})

    async def _ask_lexical(self, request: SearchRequest, limit: int) -> EngineAnswer:
        watch = Stopwatch()
        answer = await candidates(
            lambda wanted: self._lexical.search(request.scope, request.queries, wanted),
            self._visibility(request),
            limit,
        )
        return replace(answer, timings_ms={"lexical": watch.lap_ms()})

    def _visibility(self, request: SearchRequest) -> Callable[[StoredChunk], bool]:
        tenant_id, revisions = request.scope.tenant_id, self._revisions
        return lambda stored: revisions.is_active(tenant_id, stored.document_id, stored.revision_id)

    async def _rerank(
        self, query_text: str, fused: Mapping[str, float], ranking: Ranking, degraded: list[Degradation]
    ) -> dict[str, float]:
        """Scores of the head of the fused list; empty, and said so, when the reranker fails."""
        head = list(islice(fused, self._options.rerank_depth))
        passages = [_passage(ranking.stored[chunk_id].chunk) for chunk_id in head]
        timeout_s = self._options.rerank_timeout_s
        try:
            async with asyncio.timeout(bounded_timeout_s(timeout_s)):
                scores = await self._reranker.rerank(query_text, passages, timeout_s)
            return dict(zip(head, scores, strict=True))
        except TimeoutError:
            reason, message = "RERANK_TIMEOUT", "the reranker did not answer in time"
        except GroundworkError as error:
            _log.warning("search_degraded", part="rerank", reason=error.reason, error=repr(error.__cause__ or error))
            reason, message = error.reason, f"the reranker failed: {error.message}"
        except Exception as error:
            # As with an engine: a defect costs its own part of the search only, and is logged as the defect it is.
            _log.error("search_degraded", part="rerank", exc_info=error)
            reason, message = "RERANK_FAILED", "the reranker failed"
        degraded.append(Degradation("rerank", reason, f"{message}; hits are in fused order"))
        return {}


def _passage(chunk: Chunk) -> str:
    """What the reranker reads: the headings give a passage its subject."""
    return "\n".join((*(" > ".join(path) for path in (chunk.heading_path,) if path), chunk.text))
