"""Documents on their way, as event streams."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated

import structlog
from fastapi import APIRouter, Query
from groundwork.ingest.v1 import ingest_pb2 as pb

from kit.errors import Code, GroundworkError
from services.gateway.backends import Backends, Services
from services.gateway.problems import problem
from services.gateway.routes.documents import document_body
from services.gateway.schemas.events import stream_response
from services.gateway.schemas.problem import problems
from services.gateway.sse import EventStream, ServerSentEvent

router = APIRouter(prefix="/v1", tags=["documents"])
_log = structlog.get_logger()
_SETTLED = {pb.DOCUMENT_STATUS_READY, pb.DOCUMENT_STATUS_FAILED, pb.DOCUMENT_STATUS_DELETED}
_PASSING = {Code.UNAVAILABLE, Code.CANCELLED, Code.DEADLINE_EXCEEDED}


@router.get(
    "/documents/{document_id}/events",
    status_code=200,
    response_class=EventStream,
    responses={
        **stream_response("One document until it is ready, failed or deleted.", {"document": "Document"}),
        **problems(404),
    },
)
async def follow_document(document_id: str, services: Services) -> EventStream:
    """Follows one document: its state now, then each change; ends once it is `ready`, `failed` or `deleted`."""
    request = pb.GetDocumentRequest(document_id=document_id)
    await services.ingest.GetDocument(request, timeout=services.settings.rpc_timeout_s)
    return _stream(_one(services, document_id), services)


@router.get(
    "/events",
    status_code=200,
    response_class=EventStream,
    responses={
        **stream_response(
            "All documents, without end. `snapshot_begin` and `snapshot_complete` carry nothing.",
            {"document": "Document"},
        ),
        **problems(),
    },
)
async def follow_documents(
    services: Services, collection_id: Annotated[str, Query(description="Only this collection; empty means all.")] = ""
) -> EventStream:
    """Follows all documents. After `snapshot_begin` come the present states, after `snapshot_complete` each change. A
    new `snapshot_begin` means that changes may have been missed: forget what you know."""
    return _stream(_all(services, collection_id), services)


def _stream(events: AsyncIterator[ServerSentEvent], services: Backends) -> EventStream:
    return EventStream(events, ping_interval_s=services.settings.ping_interval_s, closing=services.closing)


async def _one(services: Backends, document_id: str) -> AsyncIterator[ServerSentEvent]:
    async with aclosing(_watch(services, pb.WatchDocumentsRequest(document_ids=[document_id]))) as changes:
        async for change in changes:
            if isinstance(change, ServerSentEvent):
                yield change
            elif change is not None and change.HasField("document"):
                yield _document(change.document)
                if change.document.status in _SETTLED:
                    return


async def _all(services: Backends, collection_id: str) -> AsyncIterator[ServerSentEvent]:
    async with aclosing(_watch(services, pb.WatchDocumentsRequest(collection_id=collection_id))) as changes:
        async for change in changes:
            if change is None:
                yield ServerSentEvent("snapshot_begin", {})
            elif isinstance(change, ServerSentEvent):
                yield change
            else:
                if change.HasField("document"):
                    yield _document(change.document)
                if change.snapshot_complete:
                    yield ServerSentEvent("snapshot_complete", {})


async def _watch(
    services: Backends, request: pb.WatchDocumentsRequest
) -> AsyncGenerator[pb.WatchDocumentsResponse | ServerSentEvent | None, None]:
    """Ingest's watch, opened again when it breaks. None goes before each snapshot; an `error` event ends it."""
    loop = asyncio.get_running_loop()
    broken_at: float | None = None
    while True:
        try:
            stream = services.ingest.WatchDocuments(request, timeout=services.settings.stream_timeout_s)
            async with aclosing(stream) as changes:
                yield None
                async for change in changes:
                    broken_at = None
                    yield change
        except GroundworkError as error:
            broken_at = loop.time() if broken_at is None else broken_at
            if error.code not in _PASSING or loop.time() - broken_at > services.settings.reattach_for_s:
                yield ServerSentEvent("error", problem(error))
                return
            _log.warning("document_watch_reopening", reason=error.reason)
        await asyncio.sleep(0.5)


def _document(message: pb.Document) -> ServerSentEvent:
    return ServerSentEvent("document", document_body(message).model_dump(mode="json"))
