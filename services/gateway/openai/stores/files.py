"""Files in the shape of OpenAI's API: uploaded once, kept without being indexed, and added to vector stores."""

import hashlib
import uuid
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from groundwork.ingest.v1 import ingest_pb2 as pb

from kit.access.principal import current_principal
from kit.errors import AlreadyExists, NotFound
from kit.rpc.calls import responses
from services.gateway.access.own_default import own_files
from services.gateway.access.scopes import NEEDS_INGEST, NEEDS_QUERY, NEEDS_QUERY_AND_INGEST
from services.gateway.backends import Backends, Services
from services.gateway.models import Json
from services.gateway.openai.errors import OpenAiRoute
from services.gateway.openai.replies import reply
from services.gateway.openai.stores.calls import delete_documents, find_file
from services.gateway.openai.stores.file_form import PURPOSE, PURPOSES, FileForm
from services.gateway.openai.stores.requests import Order
from services.gateway.openai.stores.shapes import deleted, file_name, file_object, page_of
from services.gateway.routes.documents.documents import Download
from services.gateway.routes.documents.upload import take_form
from services.gateway.schemas.fields import DIGITS, AfterFile, FilePath, IdempotencyKey
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/files", tags=["openai"], route_class=OpenAiRoute)

_MARK = 8
_MOST_A_PAGE = 1000
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "The file, with its name."},
                        PURPOSE: {"type": "string", "enum": list(PURPOSES), "description": "What it is for."},
                    },
                }
            }
        },
    }
}


@router.post(
    "",
    openapi_extra=_FORM,
    dependencies=[NEEDS_INGEST],
    responses={200: {"description": "The file."}, **problems(404, 409, 413, 415, 422, 429, 507)},
)
async def create_file(request: Request, services: Services, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Keeps a file until it is added to vector stores. It lies in your collection `files` and is not searched there."""
    await _make_collection(services)
    mark = _mark(idempotency_key or "")
    forms: list[FileForm] = []

    def header(form: FileForm) -> pb.UploadHeader:
        forms.append(form)
        return pb.UploadHeader(
            collection_id=own_files(services),
            name=f"{mark}/{file_name(form.file_name)}",
            metadata=form.metadata,
            idempotency_key=idempotency_key or "",
            keep=True,
        )

    document = await take_form(FileForm, request, services, header)
    return reply(file_object(document), ignored=forms[0].ignored)


@router.get("", dependencies=[NEEDS_QUERY], responses={200: {"description": "A page of files."}, **problems(404)})
async def list_files(
    services: Services,
    purpose: Annotated[str | None, Query(max_length=40, description="Only files of this purpose.")] = None,
    limit: Annotated[
        int, Query(ge=1, le=10_000, description="At most this many items; 1000 to a page."), DIGITS
    ] = 1000,
    after: AfterFile = None,
    order: Order = "desc",
) -> JSONResponse:
    """The files that you have uploaded here."""
    request = pb.ListDocumentsRequest(
        collection_id=own_files(services), after_document_id=after or "", oldest_first=order == "asc"
    )
    most = min(limit, _MOST_A_PAGE)
    request.page.page_size = min(most + 1, _MOST_A_PAGE)
    found: list[Json] = []
    while len(found) <= most:  # one more than is shown
        try:
            answer = await services.ingest.ListDocuments(request, timeout=services.settings.rpc_timeout_s)
        except NotFound:
            break
        files = [file_object(each) for each in answer.documents]
        found += [each for each in files if purpose in (None, each["purpose"])]
        request.page.page_token, request.after_document_id = answer.next_page_token, ""
        if not answer.next_page_token:
            break
    return reply(page_of(found[:most], has_more=len(found) > most))


@router.get("/{file_id}", dependencies=[NEEDS_QUERY], responses={200: {"description": "The file."}, **problems(404)})
async def get_file(file_id: FilePath, services: Services) -> JSONResponse:
    """One file. Every document is one, also those that were uploaded elsewhere."""
    return reply(file_object(await find_file(services, file_id)))


@router.delete(
    "/{file_id}",
    dependencies=[NEEDS_QUERY_AND_INGEST],
    responses={200: {"description": "It is gone."}, **problems(404)},
)
async def delete_file(file_id: FilePath, services: Services) -> JSONResponse:
    """Removes a file, also from the vector stores that it was added to, as far as you may change them."""
    file = await find_file(services, file_id)
    await delete_documents(services, file.copies.values(), only_own=True)
    await delete_documents(services, [file.document_id])
    return reply(deleted(file_id, "file"))


@router.get(
    "/{file_id}/content",
    response_class=StreamingResponse,
    dependencies=[NEEDS_QUERY],
    responses={
        200: {"description": "The bytes as uploaded.", "content": {"application/octet-stream": {}}},
        **problems(404),
    },
)
async def download_file(file_id: FilePath, services: Services) -> Download:
    """The file as uploaded."""
    request = pb.DownloadDocumentRequest(document_id=file_id)
    stream = responses(services.ingest.DownloadDocument(request, timeout=services.settings.upload_timeout_s))
    first = await anext(stream)
    return Download(stream, first.document)


async def _make_collection(services: Backends) -> None:
    """Makes the caller's collection of files, unless it is there."""
    collection_id, timeout_s = own_files(services), services.settings.rpc_timeout_s
    try:
        await services.ingest.GetCollection(pb.GetCollectionRequest(collection_id=collection_id), timeout=timeout_s)
    except NotFound:
        request = pb.CreateCollectionRequest(collection_id=collection_id, name="Files")
        with suppress(AlreadyExists):  # another upload of the same caller was first
            await services.ingest.CreateCollection(request, timeout=timeout_s)


def _mark(idempotency_key: str) -> str:
    """The folder that keeps files of one name apart: the same one for a request that is sent again with its key."""
    if not idempotency_key:
        return uuid.uuid4().hex[:_MARK]
    return hashlib.sha256(f"{current_principal().subject}/{idempotency_key}".encode()).hexdigest()[:_MARK]
