"""Vector stores in the shape of OpenAI's API: collections, with search over their files."""

import hashlib
import uuid

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from groundwork.ingest.v1 import ingest_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2

from kit.access.principal import current_principal
from kit.errors import NotFound
from services.gateway.access.existence import unless_missing
from services.gateway.access.own_default import own_files, resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY, NEEDS_QUERY_AND_INGEST
from services.gateway.backends import Backends, Services
from services.gateway.models import Json
from services.gateway.openai.errors import OpenAiRoute
from services.gateway.openai.replies import reply
from services.gateway.openai.stores.calls import copy_files, file_ids, require_files
from services.gateway.openai.stores.requests import (
    ChangedVectorStore,
    Limit,
    NewVectorStore,
    Order,
    StoreSearch,
    search_filter,
)
from services.gateway.openai.stores.shapes import deleted, file_name, page_of, vector_store
from services.gateway.schemas.fields import After, IdempotencyKey, VectorStorePath
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/vector_stores", tags=["openai"], route_class=OpenAiRoute)


@router.post(
    "",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "The vector store."}, **problems(404, 409, 413, 415)},
)
async def create_vector_store(
    new: NewVectorStore, services: Services, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Makes a collection, and adds files to it."""
    await require_files(services, new.file_ids or ())
    request = pb.CreateCollectionRequest(
        collection_id=f"vs_{_mark(idempotency_key or '')}",
        name=new.name or "Vector store",
        idempotency_key=idempotency_key or "",
    )
    made = await services.ingest.CreateCollection(request, timeout=services.settings.rpc_timeout_s)
    store_id = made.collection.collection_id
    await copy_files(services, store_id, {each: {} for each in new.file_ids or ()})
    return reply(vector_store(await _found(services, store_id)), new)


@router.get("", dependencies=[NEEDS_QUERY], responses={200: {"description": "A page of stores."}, **problems()})
async def list_vector_stores(
    services: Services, limit: Limit = 20, after: After = None, order: Order = "desc"
) -> JSONResponse:
    """The collections that you may read, without the one that keeps your files."""
    request = pb.ListCollectionsRequest(with_counts=True)
    answer = await services.ingest.ListCollections(request, timeout=services.settings.rpc_timeout_s)
    found = [each for each in answer.collections if each.collection_id != own_files(services)]
    found.sort(key=lambda it: (it.created_at.ToNanoseconds(), it.collection_id), reverse=order == "desc")
    places = [each.collection_id for each in found]
    if after is not None and after not in places:
        raise NotFound(
            f"there is no vector store {after} to go on after; list them without `after`",
            reason="COLLECTION_NOT_FOUND",
            field="after",
        )
    start = places.index(after) + 1 if after is not None else 0
    page = [vector_store(each) for each in found[start : start + limit]]
    return reply(page_of(page, has_more=len(found) > start + limit))


@router.get(
    "/{vector_store_id}", dependencies=[NEEDS_QUERY], responses={200: {"description": "The store."}, **problems(404)}
)
async def get_vector_store(vector_store_id: VectorStorePath, services: Services) -> JSONResponse:
    """One vector store, with the states of its files."""
    return reply(vector_store(await _found(services, resolve_collection_id(services, vector_store_id))))


@router.post(
    "/{vector_store_id}",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "The store as it is now."}, **problems(404, 412, 413, 415)},
)
async def update_vector_store(
    vector_store_id: VectorStorePath, changed: ChangedVectorStore, services: Services
) -> JSONResponse:
    """Changes the name."""
    store_id = resolve_collection_id(services, vector_store_id)
    request = pb.UpdateCollectionRequest(collection_id=store_id, name=changed.name or "")
    await services.ingest.UpdateCollection(request, timeout=services.settings.rpc_timeout_s)
    return reply(vector_store(await _found(services, store_id)), changed)


@router.delete(
    "/{vector_store_id}",
    dependencies=[NEEDS_INGEST],
    responses={200: {"description": "It is gone."}, **problems(404, 412)},
)
async def delete_vector_store(vector_store_id: VectorStorePath, services: Services) -> JSONResponse:
    """Removes the collection with its documents. Files of POST /v1/files stay."""
    request = pb.DeleteCollectionRequest(collection_id=resolve_collection_id(services, vector_store_id))
    await services.ingest.DeleteCollection(request, timeout=services.settings.rpc_timeout_s)
    return reply(deleted(vector_store_id, "vector_store.deleted"))


@router.post(
    "/{vector_store_id}/search",
    dependencies=[NEEDS_QUERY],
    responses={200: {"description": "The passages that fit best."}, **problems(404, 413, 415, 504)},
)
async def search_vector_store(
    vector_store_id: VectorStorePath, search: StoreSearch, services: Services
) -> JSONResponse:
    """Hybrid search in one store, without an answer. `score` is the similarity; the order also goes by words and reranking."""
    store_id = resolve_collection_id(services, vector_store_id)
    options = search.ranking_options
    request = retriever_pb2.SearchRequest(
        queries=search.queries,
        collection_ids=[store_id],
        filter=search_filter(search.filters),
        top_k=search.max_num_results,
        exact_quotes=True,
        min_score=options.score_threshold if options else None,
    )
    call = services.retriever.Search(request, timeout=services.settings.search_timeout_s)
    answer = await unless_missing(services, [store_id], call)
    names = await file_ids(services, {each.chunk.document_id for each in answer.hits})
    body = {
        "object": "vector_store.search_results.page",
        "search_query": search.queries,
        "data": [_hit(each, names) for each in answer.hits],
        "has_more": False,
        "next_page": None,
    }
    return reply(body, search)


async def _found(services: Backends, store_id: str) -> pb.Collection:
    request = pb.GetCollectionRequest(collection_id=store_id, with_counts=True)
    return (await services.ingest.GetCollection(request, timeout=services.settings.rpc_timeout_s)).collection


def _hit(hit: retriever_pb2.Hit, names: dict[str, str]) -> Json:
    chunk = hit.chunk
    score = hit.dense_score if hit.HasField("dense_score") else hit.score
    return {
        "file_id": names[chunk.document_id],
        "filename": file_name(chunk.document_name),
        "score": min(1.0, max(0.0, score)),
        "attributes": dict(chunk.metadata),
        "content": [{"type": "text", "text": chunk.text}],
        "groundwork": {
            "chunk_id": chunk.chunk_id,
            "page": chunk.page or None,
            "heading_path": list(chunk.heading_path),
        },
    }


def _mark(idempotency_key: str) -> str:
    if not idempotency_key:
        return uuid.uuid4().hex[:24]
    return hashlib.sha256(f"{current_principal().subject}/{idempotency_key}".encode()).hexdigest()[:24]
