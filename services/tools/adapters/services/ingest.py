"""The ingest service, asked in the name of the tool's caller."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC

from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2 as pb
from groundwork.ingest.v1 import ingest_pb2_grpc as rpc
from groundwork.ingest.v1 import reading_pb2, reading_pb2_grpc

from kit.errors import AlreadyExists, GroundworkError, NotFound
from kit.rpc.channel import Channel
from services.tools.adapters.services.refusals import put_plainly
from services.tools.documents import CollectionMissing, Document, DocumentPage, DocumentState
from services.tools.errors import ToolError
from services.tools.web.pages import PageText
from services.tools.web.reading import FILE_TIMEOUT_S
from services.tools.web.sections import PagePassage

_SERVICE = "the store of documents"
_TIMEOUT_S = 4.0
_DELETE_TIMEOUT_S = 20.0
"""A deletion ends when the document is out of both indexes."""
_SOURCE_TIMEOUT_S = 40.0
"""A source is listed within 20 seconds; then one file is read from it."""
_PIECE_BYTES = 1024 * 1024
"""The contract's largest piece of an upload."""
_UPLOAD_TRIES = 3
_UPLOAD_AGAIN_S = 0.5
_LOOK_AGAIN_S = 0.25
"""Between looks for whether a document is searchable. A short text takes a second or two."""
_COLLECTION_NOT_FOUND = "COLLECTION_NOT_FOUND"
_STATES = {
    pb.DOCUMENT_STATUS_QUEUED: DocumentState.QUEUED,
    pb.DOCUMENT_STATUS_PROCESSING: DocumentState.PROCESSING,
    pb.DOCUMENT_STATUS_READY: DocumentState.READY,
    pb.DOCUMENT_STATUS_FAILED: DocumentState.FAILED,
}


class IngestDocuments:
    """Documents over the ingest service's contract."""

    def __init__(
        self,
        channel: Channel,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._stub = rpc.IngestServiceStub(channel)
        self._clock = clock
        self._sleep = sleep

    async def keep(self, collection_id: str, name: str, text: str, *, call_key: str, append: bool = False) -> Document:
        data = text.encode()
        header = pb.UploadHeader(
            collection_id=collection_id,
            name=name,
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            metadata={"written_by": "agent"},
            idempotency_key=call_key,
            append=append,
        )
        with put_plainly(_SERVICE):
            try:
                return _document(await self._upload(_parts(header, data)))
            except NotFound as error:
                if error.reason == _COLLECTION_NOT_FOUND:
                    raise CollectionMissing(error.message) from error
                raise ToolError(
                    "this text was kept before and has been deleted since; keep it with a new call if it is wanted again",
                    reason="DOCUMENT_DELETED",
                ) from error

    async def _upload(self, parts: Sequence[pb.UploadDocumentRequest]) -> pb.Document:
        """Tried again where that may help: with its idempotency key an upload is harmless when repeated."""
        for tries_left in reversed(range(_UPLOAD_TRIES)):
            try:
                response = await self._stub.UploadDocument(iter(parts), timeout=_TIMEOUT_S)
            except GroundworkError as error:
                if not (error.retryable and tries_left):
                    raise
                await self._sleep(error.retry_after_s or _UPLOAD_AGAIN_S)
            else:
                return response.document
        raise AssertionError("the last try returns or raises")

    async def index_source_file(self, path: str, collection_ids: Sequence[str]) -> Document:
        request = pb.IndexSourceFileRequest(path=path, collection_ids=collection_ids)
        with put_plainly(_SERVICE):
            response = await self._stub.IndexSourceFile(request, timeout=_SOURCE_TIMEOUT_S)
        return _document(response.document)

    async def settled(self, document_id: str, *, timeout_s: float) -> Document | None:
        until = self._clock() + timeout_s
        while True:
            document = await self.get(document_id)
            if document is None or document.is_settled or self._clock() >= until:
                return document
            await self._sleep(_LOOK_AGAIN_S)

    async def get(self, document_id: str) -> Document | None:
        request = pb.GetDocumentRequest(document_id=document_id)
        with put_plainly(_SERVICE):
            try:
                response = await self._stub.GetDocument(request, timeout=_TIMEOUT_S)
            except NotFound:
                return None
        return _document(response.document)

    async def page(self, collection_id: str, *, page_size: int, page_token: str = "") -> DocumentPage:
        page = common_pb2.PageRequest(page_size=page_size, page_token=page_token)
        request = pb.ListDocumentsRequest(collection_id=collection_id, page=page)
        with put_plainly(_SERVICE):
            try:
                response = await self._stub.ListDocuments(request, timeout=_TIMEOUT_S)
            except NotFound as error:
                raise CollectionMissing(error.message) from error
        return DocumentPage([_document(each) for each in response.documents], response.next_page_token)

    async def delete(self, document_id: str) -> bool:
        request = pb.DeleteDocumentRequest(document_id=document_id)
        with put_plainly(_SERVICE):
            try:
                await self._stub.DeleteDocument(request, timeout=_DELETE_TIMEOUT_S)
            except NotFound:
                return False
        return True

    async def collection_ids(self) -> Sequence[str]:
        with put_plainly(_SERVICE):
            response = await self._stub.ListCollections(pb.ListCollectionsRequest(), timeout=_TIMEOUT_S)
        return [each.collection_id for each in response.collections]

    async def create_collection(self, collection_id: str) -> None:
        request = pb.CreateCollectionRequest(collection_id=collection_id)
        with put_plainly(_SERVICE):
            try:
                await self._stub.CreateCollection(request, timeout=_TIMEOUT_S)
            except AlreadyExists:
                return


class IngestFileReader:
    """Files that are not kept, read by the ingest worker in the sandbox of uploaded files."""

    def __init__(self, channel: Channel) -> None:
        self._stub = reading_pb2_grpc.ReadingServiceStub(channel)

    async def read_file(self, name: str, data: bytes) -> PageText:
        request = reading_pb2.ReadFileRequest(name=name, data=data)
        with put_plainly("the reader of files"):
            read = await self._stub.ReadFile(request, timeout=FILE_TIMEOUT_S)
        parts = [PagePassage(each.text, tuple(each.heading_path), each.char_start, each.page) for each in read.passages]
        text = "\n\n".join(part.text for part in parts)
        return PageText(text, read.title or name, parts=parts, is_cut=read.passages_left > 0)


def _parts(header: pb.UploadHeader, data: bytes) -> list[pb.UploadDocumentRequest]:
    pieces = [data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)]
    return [
        pb.UploadDocumentRequest(header=header),
        *(pb.UploadDocumentRequest(data=piece) for piece in pieces),
        pb.UploadDocumentRequest(end=pb.UploadEnd(size_bytes=len(data))),
    ]


def _document(message: pb.Document) -> Document:
    return Document(
        message.document_id,
        message.collection_id,
        message.name,
        _STATES.get(message.status, DocumentState.UNKNOWN),
        message.created_at.ToDatetime(UTC),
        message.updated_at.ToDatetime(UTC),
        message.report.chunk_count,
        message.error.reason,
        message.error.message,
        dict(message.metadata),
    )
