"""Between the contract's messages of a search and the domain. Nothing is decided here but what a message leaves open."""

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.common.v1 import common_pb2
from groundwork.retriever.v1 import retriever_pb2 as pb

from services.retriever.adapters.wire import chunk_message
from services.retriever.errors import InvalidRequest
from services.retriever.models import (
    CacheOutcome,
    FusionMethod,
    Hit,
    MetadataCondition,
    RerankMode,
    SearchPlan,
    SearchRequest,
    SearchResult,
    SearchScope,
    Strategy,
)

_STRATEGIES = {
    pb.STRATEGY_UNSPECIFIED: None,
    pb.STRATEGY_DENSE: Strategy.DENSE,
    pb.STRATEGY_LEXICAL: Strategy.LEXICAL,
    pb.STRATEGY_HYBRID: Strategy.HYBRID,
}
_RERANK_MODES = {
    pb.RERANK_MODE_UNSPECIFIED: None,
    pb.RERANK_MODE_OFF: RerankMode.OFF,
    pb.RERANK_MODE_ON: RerankMode.ON,
    pb.RERANK_MODE_AUTO: RerankMode.AUTO,
}
_FUSIONS = {
    pb.FUSION_METHOD_UNSPECIFIED: None,
    pb.FUSION_METHOD_RRF: FusionMethod.RRF,
    pb.FUSION_METHOD_CONVEX: FusionMethod.CONVEX,
}
_CACHE_OUTCOMES = {
    CacheOutcome.MISS: pb.CACHE_OUTCOME_MISS,
    CacheOutcome.HIT: pb.CACHE_OUTCOME_HIT,
    CacheOutcome.SEMANTIC: pb.CACHE_OUTCOME_SEMANTIC,
    CacheOutcome.OFF: pb.CACHE_OUTCOME_OFF,
}


def search_request(message: pb.SearchRequest, tenant_id: str) -> SearchRequest:
    """Raises InvalidRequest for an enum value that this version does not know."""
    weights = message.weights if message.HasField("weights") else None
    return SearchRequest(
        scope=_scope(message, tenant_id),
        queries=tuple(message.queries),
        top_k=message.top_k or None,
        strategy=_known("strategy", message.strategy, _STRATEGIES),
        rerank=_known("rerank", message.rerank, _RERANK_MODES),
        fusion=_known("fusion", message.fusion, _FUSIONS),
        must_phrases=tuple(dict.fromkeys(message.must_phrases)),
        exact_quotes=message.exact_quotes,
        query_weights=tuple(message.query_weights),
        dense_weight=weights.dense if weights else None,
        lexical_weight=weights.lexical if weights else None,
        diversity=message.diversity,
        min_score=message.min_score if message.HasField("min_score") else None,
        window=message.window,
        no_cache=message.no_cache,
        explain=message.explain,
    )


def _known(field: str, number: int, words: dict[Any, Any]) -> Any:
    """The domain's word for an enum value. Typed Any: mypy-protobuf gives each enum a type of its own."""
    if number not in words:
        raise InvalidRequest(f"{field} has an unknown value {number}", field=field)
    return words[number]


def _scope(message: pb.SearchRequest, tenant_id: str) -> SearchScope:
    wanted = message.filter
    return SearchScope(
        tenant_id=tenant_id,
        collection_ids=tuple(dict.fromkeys(message.collection_ids)),
        document_ids=tuple(dict.fromkeys(wanted.document_ids)),
        metadata=tuple(MetadataCondition(item.key, tuple(item.values)) for item in wanted.metadata),
        date_from_s=_seconds(wanted.date_from) if wanted.HasField("date_from") else None,
        date_to_s=_seconds(wanted.date_to) if wanted.HasField("date_to") else None,
    )


def _seconds(moment: Timestamp) -> int:
    """Rounded up: dates are whole seconds, and none of them lies between."""
    return moment.seconds + (moment.nanos > 0)


def search_response(result: SearchResult, explain: bool) -> pb.SearchResponse:
    return pb.SearchResponse(
        hits=[_hit(hit, explain) for hit in result.hits],
        strategy=_number(result.plan.strategy, _STRATEGIES),
        fusion=_number(result.plan.fusion, _FUSIONS),
        degraded=[
            common_pb2.Degradation(part=item.part, reason=item.reason, message=item.message) for item in result.degraded
        ],
        dropped=[
            pb.DroppedHit(chunk_id=hit.chunk_id, document_id=hit.document_id, stage=hit.stage, reason=hit.reason)
            for hit in (result.dropped if explain else ())
        ],
        timings_ms=result.timings_ms,
        cache=_CACHE_OUTCOMES[result.cache],
        plan=_plan(result.plan, result.rerank_reason) if explain else None,
    )


def _number(word: Any, words: dict[Any, Any]) -> Any:
    return next(number for number, known in words.items() if known is word)


def _plan(plan: SearchPlan, rerank_reason: str) -> pb.SearchPlan:
    return pb.SearchPlan(
        chunk_count=plan.chunk_count,
        strategy=_number(plan.strategy, _STRATEGIES),
        fusion=_number(plan.fusion, _FUSIONS),
        weights=pb.EngineWeights(dense=plan.dense_weight, lexical=plan.lexical_weight),
        top_k=plan.top_k,
        candidates=plan.candidates,
        rerank=_number(plan.rerank, _RERANK_MODES),
        rerank_depth=plan.rerank_depth,
        reason=plan.reason,
        rerank_reason=rerank_reason,
    )


def _hit(hit: Hit, explain: bool) -> pb.Hit:
    at = hit.explanation
    explanation = None
    if explain:
        explanation = pb.Explanation(
            dense_rank=at.dense_rank,
            dense_score=at.dense_score,
            lexical_rank=at.lexical_rank,
            lexical_score=at.lexical_score,
            fused_rank=at.fused_rank,
            fused_score=at.fused_score,
            rerank_rank=at.rerank_rank,
            rerank_score=at.rerank_score,
            diversity_rank=at.diversity_rank,
        )
    return pb.Hit(
        chunk=chunk_message(hit.chunk),
        score=hit.score,
        explanation=explanation,
        dense_score=at.dense_score,
        before=[chunk_message(chunk) for chunk in hit.before],
        after=[chunk_message(chunk) for chunk in hit.after],
    )
