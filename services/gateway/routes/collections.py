"""Collections: sets of documents that are searched together."""

from typing import Any

from fastapi import APIRouter, Response
from groundwork.ingest.v1 import ingest_pb2 as pb

from services.gateway.access.own_default import meant
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode, enum_number
from services.gateway.schemas.documents import ChangedCollection, Collection, CollectionList, NewCollection
from services.gateway.schemas.fields import CollectionPath, IdempotencyKey
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/collections", tags=["collections"])


@router.get("", dependencies=[NEEDS_QUERY], responses=problems())
async def list_collections(services: Services) -> CollectionList:
    """The collections that you may read, by id. Your default collection always exists."""
    answer = await services.ingest.ListCollections(pb.ListCollectionsRequest(), timeout=services.settings.rpc_timeout_s)
    return CollectionList(collections=[_collection(each) for each in answer.collections])


@router.post("", status_code=201, dependencies=[NEEDS_INGEST], responses=problems(409, 413, 415))
async def create_collection(
    new: NewCollection, services: Services, response: Response, idempotency_key: IdempotencyKey = None
) -> Collection:
    """Makes a collection, which is yours: nobody else sees it unless its visibility is `tenant`. Ids are names that all subjects of
    a tenant share, so one may be taken by a collection that you cannot see; without an id, a free one is made from the name."""
    request = pb.CreateCollectionRequest(
        collection_id=new.id,
        name=new.name,
        idempotency_key=idempotency_key or "",
        visibility=_visibility(new.visibility),
    )
    answer = await services.ingest.CreateCollection(request, timeout=services.settings.rpc_timeout_s)
    collection = _collection(answer.collection)
    response.headers["Location"] = f"/v1/collections/{collection.id}"
    return collection


@router.get("/{collection_id}", dependencies=[NEEDS_QUERY], responses=problems(404))
async def get_collection(collection_id: CollectionPath, services: Services) -> Collection:
    """One collection. `default` is your own."""
    request = pb.GetCollectionRequest(collection_id=meant(services, collection_id))
    answer = await services.ingest.GetCollection(request, timeout=services.settings.rpc_timeout_s)
    return _collection(answer.collection)


@router.patch("/{collection_id}", dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def update_collection(
    collection_id: CollectionPath, changed: ChangedCollection, services: Services
) -> Collection:
    """Changes a collection's name, or who may read it; what is left out stays as it is. Only its owner may: 403 with
    `NOT_YOURS`."""
    request = pb.UpdateCollectionRequest(
        collection_id=meant(services, collection_id),
        name=changed.name or "",
        visibility=_visibility(changed.visibility),
    )
    answer = await services.ingest.UpdateCollection(request, timeout=services.settings.rpc_timeout_s)
    return _collection(answer.collection)


@router.delete(
    "/{collection_id}",
    status_code=204,
    dependencies=[NEEDS_INGEST],
    responses={202: {"description": "The collection is gone; its documents are being removed."}, **problems(404, 412)},
)
async def delete_collection(collection_id: CollectionPath, services: Services) -> Response:
    """Removes a collection with all its documents. Nothing in it is found from now on; when there are many documents, their removal
    goes on behind a 202, and the id is free again when that is done. Default collections are refused."""
    request = pb.DeleteCollectionRequest(collection_id=meant(services, collection_id))
    answer = await services.ingest.DeleteCollection(request, timeout=services.settings.rpc_timeout_s)
    return Response(status_code=204 if answer.cleared else 202)


def _visibility(word: str | None) -> Any:
    return enum_number(pb.CollectionVisibility.DESCRIPTOR, word)


def _collection(message: pb.Collection) -> Collection:
    return Collection.model_validate(encode(message))
