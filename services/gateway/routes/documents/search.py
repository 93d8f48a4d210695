"""Search, and passages by id for citations that open them."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.retriever.v1 import retriever_pb2 as pb

from services.gateway.access.existence import unless_missing
from services.gateway.access.own_default import resolve_collection_ids
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode, enum_number
from services.gateway.errors import ChunkNotFound
from services.gateway.models import Json
from services.gateway.schemas.documents.search import (
    Filters,
    PassageWindow,
    SearchRequest,
    SearchResponse,
    end_of,
    start_of,
)
from services.gateway.schemas.fields import DIGITS, ChunkPath
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1", tags=["search"], dependencies=[NEEDS_QUERY])


@router.post("/search", responses=problems(404, 413, 415, 504))
async def search(request: SearchRequest, services: Services) -> SearchResponse:
    """Hybrid search. When an engine is down the others answer, and `degraded` says so."""
    collection_ids = resolve_collection_ids(services, request.collection_ids)
    asked = _contract(request.model_copy(update={"collection_ids": collection_ids}))
    call = services.retriever.Search(asked, timeout=services.settings.search_timeout_s)
    body = encode(await unless_missing(services, collection_ids, call))
    hits = [_hit(hit, explain=request.explain) for hit in body["hits"]]
    return SearchResponse.model_validate({**body, "hits": hits})


@router.get("/chunks/{chunk_id}", responses=problems(404))
async def get_chunk(
    chunk_id: ChunkPath,
    services: Services,
    window: Annotated[int, Query(ge=0, le=10, description="Neighbours on each side."), DIGITS] = 0,
) -> PassageWindow:
    """A passage with its neighbours: what a citation opens."""
    request = pb.FetchChunksRequest(chunk_ids=[chunk_id], window=window)
    answer = await services.retriever.FetchChunks(request, timeout=services.settings.rpc_timeout_s)
    if not answer.chunks:
        raise ChunkNotFound(
            f"there is no passage {chunk_id}; its document may have been deleted or read again since, search again",
            chunk_id=chunk_id,
        )
    return PassageWindow.model_validate(encode(answer.chunks[0]))


def _contract(request: SearchRequest) -> pb.SearchRequest:
    weights = request.weights
    return pb.SearchRequest(
        queries=request.all_queries,
        collection_ids=request.collection_ids,
        filter=_filter(request.filters) if request.filters else None,
        top_k=request.top_k or 0,
        strategy=_number(pb.Strategy, request.strategy),
        rerank=_number(pb.RerankMode, request.rerank),
        fusion=_number(pb.FusionMethod, request.fusion),
        explain=request.explain,
        must_phrases=request.must,
        exact_quotes=True,
        query_weights=request.query_weights,
        weights=pb.EngineWeights(dense=weights.dense, lexical=weights.lexical) if weights else None,
        diversity=request.diversity,
        min_score=request.min_score,
        window=request.window,
        no_cache=not request.cache,
    )


def _number(enum: Any, word: str | None) -> Any:
    return enum_number(enum.DESCRIPTOR, word)


def _filter(filters: Filters) -> pb.Filter:
    return pb.Filter(
        document_ids=filters.document_ids,
        metadata=[
            pb.MetadataCondition(key=key, values=[values] if isinstance(values, str) else values)
            for key, values in filters.metadata.items()
        ],
        date_from=_timestamp(start_of(filters.date_from)) if filters.date_from else None,
        date_to=_timestamp(end_of(filters.date_to)) if filters.date_to else None,
    )


def _timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def _hit(hit: Json, *, explain: bool) -> Json:
    """The chunk's fields and the hit's in one object."""
    chunk = hit.pop("chunk") or {}
    explanation = hit.pop("explanation")
    return {**chunk, **hit, "explain": explanation if explain else None}
