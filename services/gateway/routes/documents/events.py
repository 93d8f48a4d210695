"""Documents on their way, as event streams."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from fastapi import APIRouter
from groundwork.ingest.v1 import ingest_pb2 as pb

from kit.errors import GroundworkError, NotFound
from services.gateway.access.own_default import resolve_collection_id
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.adapters.ingest import document_state
from services.gateway.backends import Backends, Services
from services.gateway.schemas.fields import DocumentPath, OnlyCollection
from services.gateway.schemas.problem import problems
from services.gateway.schemas.streams import stream_response
from services.gateway.streams.document_feed import SNAPSHOT_COMPLETE, DocumentState
from services.gateway.streams.shares import STREAM_PLACE
from services.gateway.streams.sse import Encoded, EventStream, ServerSentEvent

router = APIRouter(prefix="/v1", tags=["documents"], dependencies=[NEEDS_QUERY])


@router.get(
    "/documents/{document_id}/events",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE],
    responses={
        **stream_response("One document until it is ready, failed or deleted.", {"document": "Document"}),
        **problems(404, 429),
    },
)
async def follow_document(document_id: DocumentPath, services: Services) -> EventStream:
    """Follows one document: its state now, then each change; ends once it is `ready`, `failed` or `deleted`."""
    return _stream(_one(services, await _fetched(services, document_id)), services)


@router.get(
    "/events",
    status_code=200,
    response_class=EventStream,
    dependencies=[STREAM_PLACE],
    responses={
        **stream_response(
            "All documents, without end. `snapshot_begin` and `snapshot_complete` carry nothing.",
            {"document": "Document"},
        ),
        **problems(429),
    },
)
async def follow_documents(services: Services, collection_id: OnlyCollection = "") -> EventStream:
    """Follows all documents. After `snapshot_begin` come the present states, after `snapshot_complete` each change. A
    new `snapshot_begin` means that changes may have been missed: forget what you know."""
    return _stream(_all(services, resolve_collection_id(services, collection_id)), services)


def _stream(events: AsyncIterator[Encoded], services: Backends) -> EventStream:
    return EventStream(events, ping_interval_s=services.settings.ping_interval_s, closing=services.closing)


async def _one(services: Backends, first: DocumentState) -> AsyncIterator[Encoded]:
    """The document as it is, and each later state until it is settled or gone."""
    yield first
    if first.is_settled:
        return
    last = first
    async with (
        services.documents.listen(lambda state: state.document_id == first.document_id) as listener,
        aclosing(listener.events()) as events,
    ):
        async for event in _later(services, first.document_id, events):
            if isinstance(event, ServerSentEvent):
                yield event
            elif event.version >= last.version and event.wire != last.wire:
                yield event
                last = event
                if event.is_settled:
                    return


async def _later(
    services: Backends, document_id: str, events: AsyncIterator[DocumentState | ServerSentEvent]
) -> AsyncIterator[DocumentState | ServerSentEvent]:
    """States of the document, and an error, as a stream. Ends when the document is gone: it is looked up behind each snapshot,
    which is silent about what was deleted before it was made."""
    async for event in events:
        if isinstance(event, DocumentState) or event.event == "error":
            yield event
        elif event == SNAPSHOT_COMPLETE:
            try:
                yield await _fetched(services, document_id)
            except NotFound:
                return
            except GroundworkError:
                continue  # ingest is away: the watch behind the feed will notice, and begin anew


async def _fetched(services: Backends, document_id: str) -> DocumentState:
    request = pb.GetDocumentRequest(document_id=document_id)
    answer = await services.ingest.GetDocument(request, timeout=services.settings.rpc_timeout_s)
    return document_state(answer.document)


async def _all(services: Backends, collection_id: str) -> AsyncIterator[Encoded]:
    async with (
        services.documents.listen(lambda state: collection_id in ("", state.collection_id)) as listener,
        aclosing(listener.events()) as events,
    ):
        async for event in events:
            yield event
