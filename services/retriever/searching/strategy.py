"""What a search does when its request does not say: decided by the size of the collections, from pointers in memory.

| active chunks | engines | weight of vectors | hits | rerank |
|---|---|---|---|---|
| under 500 | both | 0.5 | 5 | when it pays, the best 30 |
| 500 to 10 000 | both | 0.5 | 10 | when it pays, the best 30 |
| more | both | 0.5 | 10 | when it pays, the best 20 |

Whatever a request says overrides its cell. Why small collections are not searched by vectors alone, and why the weight does not
vary, is measured in ADR 0006.
"""

from dataclasses import dataclass

from services.retriever.models import RerankMode, SearchPlan, SearchRequest, Strategy
from services.retriever.options import SearchOptions

_CANDIDATES_PER_HIT = 5
_LARGE_RERANK_DEPTH = 20


@dataclass(frozen=True)
class _Tier:
    """The defaults for collections of one size."""

    name: str
    strategy: Strategy
    top_k: int
    rerank: RerankMode
    rerank_depth: int


def plan_search(request: SearchRequest, chunk_count: int, options: SearchOptions) -> SearchPlan:
    """The request's own choices, the rest by `chunk_count`, the active chunks of its collections."""
    tier = _tier(chunk_count, options)
    top_k = request.top_k or tier.top_k
    dense_weight, lexical_weight = _weights(request, options)
    return SearchPlan(
        chunk_count=chunk_count,
        strategy=request.strategy or tier.strategy,
        fusion=request.fusion or options.fusion,
        dense_weight=dense_weight,
        lexical_weight=lexical_weight,
        top_k=top_k,
        candidates=max(options.min_candidates, _CANDIDATES_PER_HIT * top_k),
        rerank=request.rerank or tier.rerank,
        rerank_depth=tier.rerank_depth,
        reason=_reason(request, tier, chunk_count),
        weighs_by_language=request.dense_weight is None,
    )


def _tier(chunk_count: int, options: SearchOptions) -> _Tier:
    if chunk_count < options.small_corpus_chunks:
        return _Tier("small", options.small_strategy, 5, options.rerank, options.rerank_depth)
    if chunk_count <= options.large_corpus_chunks:
        return _Tier("medium", Strategy.HYBRID, 10, options.rerank, options.rerank_depth)
    return _Tier("large", Strategy.HYBRID, 10, options.rerank, min(options.rerank_depth, _LARGE_RERANK_DEPTH))


def _weights(request: SearchRequest, options: SearchOptions) -> tuple[float, float]:
    """Of the dense and the lexical lists, summing up to 1."""
    if request.dense_weight is not None and request.lexical_weight is not None:
        dense, lexical = request.dense_weight, request.lexical_weight
    else:
        dense, lexical = options.dense_weight, options.lexical_weight
    total = dense + lexical
    return (dense / total, lexical / total) if total else (0.5, 0.5)


def _reason(request: SearchRequest, tier: _Tier, chunk_count: int) -> str:
    given = {
        "strategy": request.strategy,
        "top_k": request.top_k,
        "rerank": request.rerank,
        "fusion": request.fusion,
        "weights": request.dense_weight,
    }
    named = [name for name, value in given.items() if value is not None]
    reason = f"the collections have {chunk_count} chunks: the defaults for a {tier.name} corpus"
    return f"{reason}, except for {', '.join(named)}, which the request gives" if named else reason
