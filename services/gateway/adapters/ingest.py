"""Ingest's watch of documents, over its contract."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from groundwork.ingest.v1 import ingest_pb2 as pb
from groundwork.ingest.v1 import ingest_pb2_grpc as rpc

from kit.rpc.calls import responses
from services.gateway.encoding import encode
from services.gateway.schemas.documents.documents import Document
from services.gateway.streams.document_feed import DocumentState, Watch
from services.gateway.streams.sse import ServerSentEvent

_SETTLED = {pb.DOCUMENT_STATUS_READY, pb.DOCUMENT_STATUS_FAILED, pb.DOCUMENT_STATUS_DELETED}


def document_watch(stub: rpc.IngestServiceStub, *, timeout_s: float) -> Watch:
    """The watch of all documents that the present principal may read over a stub on a kit channel, at most `timeout_s` long."""

    async def watch() -> AsyncGenerator[DocumentState | None, None]:
        async with aclosing(responses(stub.WatchDocuments(pb.WatchDocumentsRequest(), timeout=timeout_s))) as changes:
            async for change in changes:
                if change.HasField("document"):
                    yield document_state(change.document)
                if change.snapshot_complete:
                    yield None

    return watch


def document_state(message: pb.Document) -> DocumentState:
    """The document as an event for any number of listeners."""
    body = Document.model_validate(encode(message)).model_dump(mode="json")
    return DocumentState(
        document_id=message.document_id,
        collection_id=message.collection_id,
        version=message.updated_at.ToNanoseconds(),
        is_settled=message.status in _SETTLED,
        is_deleted=message.status == pb.DOCUMENT_STATUS_DELETED,
        wire=ServerSentEvent("document", body).encoded(),
    )
