"""The upload: from the client's socket to ingest's stream, piece by piece, at the pace of the slower of the two."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from groundwork.ingest.v1 import ingest_pb2 as pb
from starlette.requests import ClientDisconnect

from kit.errors import GroundworkError
from kit.rpc.calls import WholeRequests
from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_INGEST
from services.gateway.backends import Backends, Services
from services.gateway.errors import UploadStalled
from services.gateway.metrics import UPLOADED_BYTES
from services.gateway.routes.documents.documents import document_body
from services.gateway.schemas.documents.documents import UploadedDocument
from services.gateway.schemas.fields import CollectionPath, IdempotencyKey, IfMatch, IfNoneMatch
from services.gateway.schemas.problem import problems
from services.gateway.serving.multipart import (
    ACCESS_FIELD,
    ENCODING_FIELD,
    FILE_FIELD,
    LANE_FIELD,
    LANES,
    METADATA_FIELD,
    MultipartForm,
)

router = APIRouter(prefix="/v1", tags=["documents"])

FormT = TypeVar("FormT", bound=MultipartForm)

_LINGER_S = 10.0
"""After a refusal what the client still sends is read and thrown away for this long, so that it gets to read the answer
instead of a reset connection."""

_LANES = {
    "": pb.UPLOAD_LANE_UNSPECIFIED,
    "interactive": pb.UPLOAD_LANE_INTERACTIVE,
    "bulk": pb.UPLOAD_LANE_BULK,
}

_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [FILE_FIELD],
                    "properties": {
                        METADATA_FIELD: {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "description": "Filterable fields, a JSON object of strings. Must come before the file.",
                            "example": '{"year": "2026"}',
                        },
                        ENCODING_FIELD: {
                            "type": "string",
                            "description": "Encoding of the file where it is text. Without it the encoding is found out. Must "
                            "come before the file.",
                            "example": "iso-8859-2",
                        },
                        ACCESS_FIELD: {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "description": "Who may read it of those who may read its collection; as at PUT "
                            "/v1/documents/{document_id}/access. Must come before the file.",
                            "example": '{"groups": ["sales"]}',
                        },
                        LANE_FIELD: {
                            "type": "string",
                            "enum": list(LANES),
                            "description": "`interactive` when somebody waits for the file, `bulk` when it is one of many: "
                            "the two take turns. Without it a caller's uploads to a collection count as bulk from the 21st "
                            "within a minute. Must come before the file.",
                        },
                        FILE_FIELD: {
                            "type": "string",
                            "format": "binary",
                            "description": "The document. The last part of the form; its file name is the document's name.",
                        },
                    },
                }
            }
        },
    }
}


@router.post(
    "/collections/{collection_id}/documents",
    status_code=202,
    openapi_extra=_FORM,
    dependencies=[NEEDS_INGEST],
    responses=problems(404, 409, 412, 413, 415, 422, 429, 507),
)
async def upload_document(
    collection_id: CollectionPath,
    request: Request,
    services: Services,
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> UploadedDocument:
    """Takes a file and answers once it is stored and its job queued. Follow it with GET /v1/documents/{id}/events."""

    def header(form: MultipartForm) -> pb.UploadHeader:
        return pb.UploadHeader(
            collection_id=resolve_collection_id(services, collection_id),
            name=form.file_name,
            size_bytes=form.declared_size_bytes,
            metadata=form.metadata,
            idempotency_key=idempotency_key or "",
            encoding=form.encoding,
            lane=_LANES[form.lane],
            access=None if form.access is None else pb.DocumentAccess(**form.access),
            replaces_sha256="" if if_none_match else if_match and if_match.strip('"'),
        )

    return UploadedDocument(document=document_body(await take_form(MultipartForm, request, services, header)))


async def take_form(
    form_type: type[FormT], request: Request, services: Backends, header: Callable[[FormT], pb.UploadHeader]
) -> pb.Document:
    """The document that a request's form makes. `header` is asked for once what stands before the file has been read."""
    body = _Body(request.stream())
    try:
        form = form_type(
            body,
            request.headers.get("content-type", ""),
            content_length=_content_length(request),
            idle_timeout_s=services.settings.upload_idle_timeout_s,
        )
        await _open(form, services.settings.request_body_timeout_s)
        return await _pass_on(form, header(form), services)
    except GroundworkError:
        await _linger(body)
        raise


async def _open(form: MultipartForm, timeout_s: float) -> None:
    """Reads what comes before the file, which is small. The file itself has a deadline for each piece and, by gRPC, one in all."""
    try:
        async with asyncio.timeout(timeout_s):
            await form.open()
    except TimeoutError as error:
        raise UploadStalled(f"the form had not come to its file within {timeout_s:g} s; send it again") from error


class _Body:
    """The request's body. After a refusal gRPC's task may still be reading when we begin to drain: one at a time."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._turn = asyncio.Lock()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        async with self._turn:
            return await anext(self._chunks)


async def _pass_on(form: MultipartForm, header: pb.UploadHeader, services: Backends) -> pb.Document:
    broken: list[Exception] = []

    async def parts() -> AsyncIterator[pb.UploadDocumentRequest]:
        yield pb.UploadDocumentRequest(header=header)
        try:
            async for piece in form.pieces():
                UPLOADED_BYTES.inc(len(piece))
                yield pb.UploadDocumentRequest(data=piece)
        except (GroundworkError, ClientDisconnect) as error:
            broken.append(error)  # without its end ingest refuses what has come
        else:
            end = pb.UploadEnd(size_bytes=form.file_bytes, metadata=form.late_metadata)
            yield pb.UploadDocumentRequest(end=end)

    try:
        answer = await services.ingest.UploadDocument(
            WholeRequests(parts(), lambda part: part.HasField("end")), timeout=services.settings.upload_timeout_s
        )
    except (asyncio.CancelledError, GroundworkError):
        if broken:
            raise broken[0] from None
        form.check_size()
        raise
    if broken:
        raise broken[0]
    return answer.document


async def _linger(body: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(_LINGER_S):
            async for _ in body:
                pass
    except (TimeoutError, ClientDisconnect):
        return  # the answer is sent anyway; whether it arrives is up to the client


def _content_length(request: Request) -> int | None:
    value = request.headers.get("content-length")
    return int(value) if value else None
