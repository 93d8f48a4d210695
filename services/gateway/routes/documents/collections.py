"""Collections: sets of documents that are searched together."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from groundwork.ingest.v1 import ingest_pb2 as pb

from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode, enum_number
from services.gateway.schemas.documents.documents import (
    ChangedCollection,
    Collection,
    CollectionList,
    CollectionMembers,
    MemberKind,
    NewCollection,
    NewCollectionMember,
)
from services.gateway.schemas.fields import CollectionPath, IdempotencyKey, IfAccess, MemberName, etag_in
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
        local_models_only=new.local_models_only,
    )
    answer = await services.ingest.CreateCollection(request, timeout=services.settings.rpc_timeout_s)
    collection = _collection(answer.collection)
    response.headers["Location"] = f"/v1/collections/{collection.id}"
    return collection


@router.get("/{collection_id}", dependencies=[NEEDS_QUERY], responses=problems(404))
async def get_collection(collection_id: CollectionPath, services: Services) -> Collection:
    """One collection. `default` is your own."""
    request = pb.GetCollectionRequest(collection_id=resolve_collection_id(services, collection_id))
    answer = await services.ingest.GetCollection(request, timeout=services.settings.rpc_timeout_s)
    return _collection(answer.collection)


@router.patch("/{collection_id}", dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def update_collection(
    collection_id: CollectionPath, changed: ChangedCollection, services: Services
) -> Collection:
    """Changes a collection's name, who may read it, how memory is used in chats over it, or whether operations on it ask local
    models only; what is left out stays as it is. It takes the role of an owner: 403 with `NOT_YOURS`."""
    request = pb.UpdateCollectionRequest(
        collection_id=resolve_collection_id(services, collection_id),
        name=changed.name or "",
        visibility=_visibility(changed.visibility),
        memory="" if changed.memory == "unset" else changed.memory,
        local_models_only=changed.local_models_only,
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
    request = pb.DeleteCollectionRequest(collection_id=resolve_collection_id(services, collection_id))
    answer = await services.ingest.DeleteCollection(request, timeout=services.settings.rpc_timeout_s)
    return Response(status_code=204 if answer.cleared else 202)


@router.get("/{collection_id}/members", dependencies=[NEEDS_QUERY], responses=problems(404))
async def list_members(collection_id: CollectionPath, services: Services, response: Response) -> CollectionMembers:
    """The members of a collection, without its owner. Only owners may ask; others get 403 with `NOT_YOURS`. The header `ETag` names
    this state of the list."""
    request = pb.ListCollectionMembersRequest(collection_id=resolve_collection_id(services, collection_id))
    answer = await services.ingest.ListCollectionMembers(request, timeout=services.settings.rpc_timeout_s)
    return _members(answer, response)


@router.put("/{collection_id}/members", dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def set_member(
    collection_id: CollectionPath,
    member: NewCollectionMember,
    services: Services,
    response: Response,
    if_match: IfAccess = None,
) -> CollectionMembers:
    """Gives a user or a group a role on a collection, or another role; answers all members. Names are not looked up: a user
    who does not exist yet has the role from the first login on. Only owners may do it; others get 403 with `NOT_YOURS`. Default
    collections are refused."""
    request = pb.SetCollectionMemberRequest(
        collection_id=resolve_collection_id(services, collection_id),
        member=pb.CollectionMember(
            kind=_kind(member.kind), name=member.name, role=enum_number(pb.CollectionRole.DESCRIPTOR, member.role)
        ),
        if_match=etag_in(if_match),
    )
    answer = await services.ingest.SetCollectionMember(request, timeout=services.settings.rpc_timeout_s)
    return _members(answer, response)


@router.delete("/{collection_id}/members", dependencies=[NEEDS_INGEST], responses=problems(404, 412))
async def remove_member(
    collection_id: CollectionPath,
    services: Services,
    response: Response,
    kind: Annotated[MemberKind, Query(description="`subject` or `group`.")],
    name: Annotated[MemberName, Query(description="Of the subject or the group.")],
    if_match: IfAccess = None,
) -> CollectionMembers:
    """Takes the role from a user or a group; answers who is left. It takes effect within seconds, and is harmless when repeated. It
    takes the role of an owner: 403 with `NOT_YOURS`."""
    request = pb.RemoveCollectionMemberRequest(
        collection_id=resolve_collection_id(services, collection_id),
        kind=_kind(kind),
        name=name,
        if_match=etag_in(if_match),
    )
    answer = await services.ingest.RemoveCollectionMember(request, timeout=services.settings.rpc_timeout_s)
    return _members(answer, response)


def _members(
    answer: pb.ListCollectionMembersResponse | pb.SetCollectionMemberResponse | pb.RemoveCollectionMemberResponse,
    response: Response,
) -> CollectionMembers:
    response.headers["ETag"] = f'"{answer.etag}"'
    return CollectionMembers(members=encode(answer)["members"])


def _kind(word: str) -> Any:
    return enum_number(pb.CollectionMemberKind.DESCRIPTOR, word)


def _visibility(word: str | None) -> Any:
    return enum_number(pb.CollectionVisibility.DESCRIPTOR, word)


def _collection(message: pb.Collection) -> Collection:
    return Collection.model_validate({**encode(message), "memory": message.memory or None})
