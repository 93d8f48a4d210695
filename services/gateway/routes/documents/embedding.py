"""The embedding model of a collection: changed beside the one that is searched, compared, swapped, rolled back, dropped."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Body
from groundwork.retriever.v1 import retriever_pb2 as pb

from services.gateway.access.existence import require_existing
from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.documents.embedding import (
    Embedding,
    EmbeddingChange,
    EmbeddingSwap,
    EvaluationOrder,
    EvaluationQuestion,
)
from services.gateway.schemas.fields import CollectionPath
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/collections/{collection_id}/embedding", tags=["embedding models"])


@router.get("", dependencies=[NEEDS_QUERY], responses=problems(404))
async def get_embedding(collection_id: CollectionPath, services: Services) -> Embedding:
    """The model that a collection is searched with, and the progress and the figures of its change."""
    mine = resolve_collection_id(services, collection_id)
    # Of a collection that is not there the retriever only knows that it is empty.
    await require_existing(services, (mine,))
    request = pb.GetCollectionModelRequest(collection_id=mine)
    answer = await services.retriever.GetCollectionModel(request, timeout=services.settings.rpc_timeout_s)
    return _embedding(answer.model)


@router.post("", status_code=202, dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def change_embedding(collection_id: CollectionPath, change: EmbeddingChange, services: Services) -> Embedding:
    """Begins to embed a collection with another model, from the texts that are stored: nothing is uploaded again, and searches go
    on as before. New documents get both models' vectors. When all is built, both models are compared and the stage is `ready`."""
    request = pb.ChangeCollectionModelRequest(
        collection_id=resolve_collection_id(services, collection_id),
        model=change.model,
        questions=_questions(change.questions),
        margin=change.margin,
    )
    answer = await services.retriever.ChangeCollectionModel(request, timeout=services.settings.rpc_timeout_s)
    return _embedding(answer.model)


@router.post("/evaluate", status_code=202, dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def evaluate_embedding(
    collection_id: CollectionPath, services: Services, order: Annotated[EvaluationOrder | None, Body()] = None
) -> Embedding:
    """Has both models of a collection that is `ready` compared again, on these questions."""
    order = order or EvaluationOrder()
    request = pb.EvaluateCollectionModelRequest(
        collection_id=resolve_collection_id(services, collection_id),
        questions=_questions(order.questions),
        margin=order.margin,
    )
    answer = await services.retriever.EvaluateCollectionModel(request, timeout=services.settings.rpc_timeout_s)
    return _embedding(answer.model)


@router.post("/swap", dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def swap_embedding(
    collection_id: CollectionPath, services: Services, swap: Annotated[EmbeddingSwap | None, Body()] = None
) -> Embedding:
    """Searches go by the new model from now on; that of before is kept, and kept up to date, until it is dropped. Refused with 412
    and `EMBEDDING_WORSE` where the new one finds less, unless forced."""
    request = pb.SwapCollectionModelRequest(
        collection_id=resolve_collection_id(services, collection_id), force=swap is not None and swap.force
    )
    answer = await services.retriever.SwapCollectionModel(request, timeout=services.settings.rpc_timeout_s)
    return _embedding(answer.model)


@router.post("/rollback", dependencies=[NEEDS_INGEST], responses=problems(404, 412))
async def roll_back_embedding(collection_id: CollectionPath, services: Services) -> Embedding:
    """Searches go by the model of before again; the new one stays `ready`."""
    request = pb.RollBackCollectionModelRequest(collection_id=resolve_collection_id(services, collection_id))
    answer = await services.retriever.RollBackCollectionModel(request, timeout=services.settings.rpc_timeout_s)
    return _embedding(answer.model)


@router.delete("", status_code=202, dependencies=[NEEDS_INGEST], responses=problems(404, 412))
async def drop_embedding(collection_id: CollectionPath, services: Services) -> Embedding:
    """Removes the model that is not searched: the new one before a swap, which gives the change up, the old one after it."""
    request = pb.DropCollectionModelRequest(collection_id=resolve_collection_id(services, collection_id))
    answer = await services.retriever.DropCollectionModel(request, timeout=services.settings.rpc_timeout_s)
    return _embedding(answer.model)


def _questions(questions: Sequence[EvaluationQuestion]) -> list[pb.ModelQuestion]:
    return [pb.ModelQuestion(text=each.text, document_ids=each.document_ids) for each in questions]


def _embedding(message: pb.CollectionModel) -> Embedding:
    return Embedding.model_validate(encode(message))
