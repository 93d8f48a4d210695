"""Documents: list, look at, remove, read again, download."""

from collections.abc import AsyncGenerator
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2 as pb
from starlette.types import Receive, Scope, Send

from kit.rpc.calls import responses
from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode, enum_number
from services.gateway.schemas.documents.documents import (
    Document,
    DocumentAccess,
    DocumentList,
    DocumentRevision,
    DocumentRevisions,
    ListedStatus,
    NewDocumentAccess,
    UploadedDocument,
)
from services.gateway.schemas.fields import (
    CollectionPath,
    DocumentPath,
    IdempotencyKey,
    IfAccess,
    PageSize,
    PageToken,
    etag_in,
)
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1", tags=["documents"])

_SHOWN_AS_THEMSELVES = {"application/pdf", "text/plain", "text/csv", "text/markdown"}
"""Types that no browser runs. Everything else is downloaded as mere bytes: an HTML file of ours would run as our page."""
_SERVED_TYPES = ("application/octet-stream", *sorted(_SHOWN_AS_THEMSELVES))


class Download(StreamingResponse):
    """A file on its way out. A stream that breaks breaks the connection: half a file must not look like a whole one."""

    def __init__(self, stream: AsyncGenerator[pb.DownloadDocumentResponse, None], document: pb.Document) -> None:
        media_type = document.media_type if document.media_type in _SHOWN_AS_THEMSELVES else "application/octet-stream"
        super().__init__(
            (part.data async for part in stream),
            media_type=media_type,
            headers={
                "Content-Disposition": f"attachment; filename*=UTF-8''{quote(document.name.rpartition('/')[2], safe='')}",
                "Content-Length": str(document.size_bytes),
                "Content-Security-Policy": "sandbox; default-src 'none'",
                "Cache-Control": "private, no-cache",
            },
        )
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._stream.aclose()


@router.get("/collections/{collection_id}/documents", dependencies=[NEEDS_QUERY], responses=problems(404))
async def list_documents(
    collection_id: CollectionPath,
    services: Services,
    status: Annotated[
        list[ListedStatus] | None, Query(max_length=16, description="Only these states; may be repeated.")
    ] = None,
    page_size: PageSize = 100,
    page_token: PageToken = "",
) -> DocumentList:
    """Documents of a collection, newest first."""
    request = pb.ListDocumentsRequest(
        collection_id=resolve_collection_id(services, collection_id),
        page=common_pb2.PageRequest(page_size=page_size, page_token=page_token),
        statuses=[enum_number(pb.DocumentStatus.DESCRIPTOR, word) for word in status or ()],
    )
    answer = await services.ingest.ListDocuments(request, timeout=services.settings.rpc_timeout_s)
    return DocumentList(
        documents=[document_body(each) for each in answer.documents], next_page_token=answer.next_page_token or None
    )


@router.get("/documents/{document_id}", dependencies=[NEEDS_QUERY], responses=problems(404))
async def get_document(document_id: DocumentPath, services: Services) -> Document:
    """One document: where it is on its way, or why it failed."""
    request = pb.GetDocumentRequest(document_id=document_id)
    answer = await services.ingest.GetDocument(request, timeout=services.settings.rpc_timeout_s)
    return document_body(answer.document)


@router.get("/documents/{document_id}/revisions", dependencies=[NEEDS_QUERY], responses=problems(404))
async def list_revisions(document_id: DocumentPath, services: Services) -> DocumentRevisions:
    """Revisions of a document: the one being made, the active one, and those before, with when and by whom they were asked for. The
    text and the file of those before are gone."""
    request = pb.ListDocumentRevisionsRequest(document_id=document_id)
    answer = await services.ingest.ListDocumentRevisions(request, timeout=services.settings.rpc_timeout_s)
    return DocumentRevisions(revisions=[DocumentRevision.model_validate(encode(each)) for each in answer.revisions])


@router.delete("/documents/{document_id}", status_code=204, dependencies=[NEEDS_INGEST], responses=problems(404))
async def delete_document(document_id: DocumentPath, services: Services) -> None:
    """Removes a document everywhere; it is gone from the next search on."""
    request = pb.DeleteDocumentRequest(document_id=document_id)
    await services.ingest.DeleteDocument(request, timeout=services.settings.rpc_timeout_s)


@router.post(
    "/documents/{document_id}/reindex", status_code=202, dependencies=[NEEDS_INGEST], responses=problems(404, 409, 412)
)
async def reindex_document(
    document_id: DocumentPath, services: Services, idempotency_key: IdempotencyKey = None
) -> UploadedDocument:
    """Reads the stored file again; the present version stays searchable until the new one is ready."""
    request = pb.ReindexRequest(document_id=document_id, idempotency_key=idempotency_key or "")
    answer = await services.ingest.Reindex(request, timeout=services.settings.rpc_timeout_s)
    return UploadedDocument(document=document_body(answer.document))


@router.get(
    "/documents/{document_id}/content",
    response_class=StreamingResponse,
    dependencies=[NEEDS_QUERY],
    responses={
        200: {"description": "The bytes as uploaded.", "content": {each: {} for each in _SERVED_TYPES}},
        **problems(404),
    },
)
async def download_document(document_id: DocumentPath, services: Services) -> Download:
    """The file as uploaded, always as a download."""
    request = pb.DownloadDocumentRequest(document_id=document_id)
    stream = responses(services.ingest.DownloadDocument(request, timeout=services.settings.upload_timeout_s))
    first = await anext(stream)
    return Download(stream, first.document)


def document_body(message: pb.Document) -> Document:
    """The contract's document as clients see it."""
    return Document.model_validate(encode(message))


@router.get("/documents/{document_id}/access", dependencies=[NEEDS_QUERY], responses=problems(404))
async def get_access(document_id: DocumentPath, services: Services, response: Response) -> DocumentAccess:
    """Who may read a document of those who may read its collection. It takes the role of an editor: 403 with `NOT_YOURS`. The
    header `ETag` names this state of the list."""
    request = pb.GetDocumentAccessRequest(document_id=document_id)
    return _access(await services.ingest.GetDocumentAccess(request, timeout=services.settings.rpc_timeout_s), response)


@router.put("/documents/{document_id}/access", dependencies=[NEEDS_INGEST], responses=problems(404, 412, 413, 415))
async def set_access(
    document_id: DocumentPath,
    access: NewDocumentAccess,
    services: Services,
    response: Response,
    if_match: IfAccess = None,
) -> DocumentAccess:
    """Gives a document an access list. It narrows who reads the document: nobody reads it who may not read its collection, and its
    owners always do. It is in force a moment later, in every replica within 30 s. It takes the role of an editor: 403 with
    `NOT_YOURS`. 400 with `BAD_ACCESS` in a collection without an owner, where a list would hide nothing. The list is replaced as a
    whole: send `If-Match`, so that two who change it at once lose nothing."""
    wanted = pb.DocumentAccess(subjects=access.subjects, groups=access.groups)
    request = pb.SetDocumentAccessRequest(document_id=document_id, access=wanted, if_match=etag_in(if_match))
    return _access(await services.ingest.SetDocumentAccess(request, timeout=services.settings.rpc_timeout_s), response)


@router.delete("/documents/{document_id}/access", dependencies=[NEEDS_INGEST], responses=problems(404, 412))
async def remove_access(
    document_id: DocumentPath, services: Services, response: Response, if_match: IfAccess = None
) -> DocumentAccess:
    """Takes the access list away: all who may read its collection read the document. It takes the role of an editor: 403 with
    `NOT_YOURS`."""
    request = pb.SetDocumentAccessRequest(document_id=document_id, if_match=etag_in(if_match))
    return _access(await services.ingest.SetDocumentAccess(request, timeout=services.settings.rpc_timeout_s), response)


def _access(answer: pb.GetDocumentAccessResponse | pb.SetDocumentAccessResponse, response: Response) -> DocumentAccess:
    access = answer.access
    response.headers["ETag"] = f'"{answer.etag}"'
    return DocumentAccess(
        restricted=answer.HasField("access"), subjects=list(access.subjects), groups=list(access.groups)
    )
