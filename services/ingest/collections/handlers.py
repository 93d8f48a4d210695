"""The calls of the contract about collections and their members, decoded, handed on and encoded."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from groundwork.ingest.v1 import ingest_pb2

from kit.access.principal import Principal, current_principal
from kit.stores.collections import Visibility
from kit.stores.idempotency import Attempt
from services.ingest.adapters.jetstream.encoding import (
    MEMBER_KIND_BY_NUMBER,
    VISIBILITY_BY_NUMBER,
    access_message,
    collection_message,
    decode_access,
    decode_member,
    member_message,
)
from services.ingest.collections.document_access import AccessDesk
from services.ingest.documents.access import access_etag, members_etag
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.listing import DocumentCounts, Listing
from services.ingest.documents.models import Collection
from services.ingest.ports import Keys


class AccessMethods:
    """Methods of the servicer about access lists of documents."""

    _access_desk: AccessDesk

    async def GetDocumentAccess(
        self, request: ingest_pb2.GetDocumentAccessRequest, context: Any
    ) -> ingest_pb2.GetDocumentAccessResponse:
        access = await self._access_desk.get(current_principal(), request.document_id)
        return ingest_pb2.GetDocumentAccessResponse(access=access_message(access), etag=access_etag(access))

    async def SetDocumentAccess(
        self, request: ingest_pb2.SetDocumentAccessRequest, context: Any
    ) -> ingest_pb2.SetDocumentAccessResponse:
        wanted = request.access if request.HasField("access") else None
        make = (lambda document: decode_access(wanted, document.collection_id)) if wanted is not None else None
        access = await self._access_desk.set(current_principal(), request.document_id, make, request.if_match)
        return ingest_pb2.SetDocumentAccessResponse(access=access_message(access), etag=access_etag(access))


class CollectionMethods:
    """Methods of the servicer. The tenant is the principal's."""

    _catalog: Catalog
    _listing: Listing
    _keys: Keys

    async def CreateCollection(
        self, request: ingest_pb2.CreateCollectionRequest, context: Any
    ) -> ingest_pb2.CreateCollectionResponse:
        made = await self._created(request)
        return ingest_pb2.CreateCollectionResponse(collection=collection_message(made, current_principal()))

    async def _created(self, request: ingest_pb2.CreateCollectionRequest) -> Collection:
        caller, catalog = current_principal(), self._catalog
        visibility = VISIBILITY_BY_NUMBER.get(request.visibility, Visibility.PRIVATE)

        async def create(attempt: Attempt) -> Collection:
            return await catalog.create(
                caller,
                request.collection_id,
                request.name,
                visibility,
                free_mark=attempt.item_id,
                local_models_only=request.local_models_only,
                again=not attempt.is_first,
            )

        async def make(attempt: Attempt) -> str:
            return (await create(attempt)).collection_id

        if not request.idempotency_key:
            return await create(Attempt(_free_mark(), is_first=True))
        asked = [request.collection_id, request.name, *([request.visibility] if request.visibility else [])]
        asked += ["local_models_only"] if request.local_models_only else []
        content = json.dumps(asked).encode()
        key = request.idempotency_key
        return await catalog.get(caller, await self._keys.once(caller, "collection", key, content, _free_mark, make))

    async def GetCollection(
        self, request: ingest_pb2.GetCollectionRequest, context: Any
    ) -> ingest_pb2.GetCollectionResponse:
        caller = current_principal()
        found = await self._catalog.get(caller, request.collection_id)
        counts = await self._listing.counts(caller) if request.with_counts else None
        return ingest_pb2.GetCollectionResponse(collection=_counted(found, caller, counts))

    async def ListCollections(
        self, request: ingest_pb2.ListCollectionsRequest, context: Any
    ) -> ingest_pb2.ListCollectionsResponse:
        caller = current_principal()
        found = await self._catalog.all_of(caller)
        counts = await self._listing.counts(caller) if request.with_counts else None
        return ingest_pb2.ListCollectionsResponse(collections=[_counted(each, caller, counts) for each in found])

    async def UpdateCollection(
        self, request: ingest_pb2.UpdateCollectionRequest, context: Any
    ) -> ingest_pb2.UpdateCollectionResponse:
        visibility = VISIBILITY_BY_NUMBER.get(request.visibility)
        caller = current_principal()
        memory = request.memory if request.HasField("memory") else None
        local = request.local_models_only if request.HasField("local_models_only") else None
        changed = await self._catalog.update(caller, request.collection_id, request.name, visibility, memory, local)
        return ingest_pb2.UpdateCollectionResponse(collection=collection_message(changed, caller))

    async def ListCollectionMembers(
        self, request: ingest_pb2.ListCollectionMembersRequest, context: Any
    ) -> ingest_pb2.ListCollectionMembersResponse:
        found = await self._catalog.members(current_principal(), request.collection_id)
        return ingest_pb2.ListCollectionMembersResponse(members=map(member_message, found), etag=members_etag(found))

    async def SetCollectionMember(
        self, request: ingest_pb2.SetCollectionMemberRequest, context: Any
    ) -> ingest_pb2.SetCollectionMemberResponse:
        member = decode_member(request.member)
        caller = current_principal()
        members = await self._catalog.set_member(caller, request.collection_id, member, request.if_match)
        return ingest_pb2.SetCollectionMemberResponse(members=map(member_message, members), etag=members_etag(members))

    async def RemoveCollectionMember(
        self, request: ingest_pb2.RemoveCollectionMemberRequest, context: Any
    ) -> ingest_pb2.RemoveCollectionMemberResponse:
        kind = MEMBER_KIND_BY_NUMBER.get(request.kind, "")
        members = await self._catalog.remove_member(
            current_principal(), request.collection_id, kind, request.name, request.if_match
        )
        return ingest_pb2.RemoveCollectionMemberResponse(
            members=map(member_message, members), etag=members_etag(members)
        )

    async def DeleteCollection(
        self, request: ingest_pb2.DeleteCollectionRequest, context: Any
    ) -> ingest_pb2.DeleteCollectionResponse:
        cleared = await self._catalog.delete(current_principal(), request.collection_id)
        return ingest_pb2.DeleteCollectionResponse(cleared=cleared)


def _counted(
    collection: Collection, caller: Principal, counts: Mapping[str, DocumentCounts] | None
) -> ingest_pb2.Collection:
    """A collection, with its documents counted where they were."""
    own = None if counts is None else counts.get(collection.collection_id, DocumentCounts())
    return collection_message(collection, caller, own)


def _free_mark() -> str:
    """What a collection's id ends in where the one that its name makes is taken. Not as long as the mark of a subject."""
    return secrets.token_hex(3)
