"""The edge: the contract's calls, decoded, handed on and encoded; and the queue's jobs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Any

import structlog
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.access.principal import current_principal
from kit.jetstream import Job
from kit.rpc.server import end_when_draining
from kit.stores.idempotency import Attempt
from services.ingest.adapters.jetstream.encoding import (
    LANE_BY_NUMBER,
    OUTCOME,
    STATUS_BY_NUMBER,
    counts_message,
    dead_letter_message,
    decode_access,
    document_counts,
    document_message,
    revision_message,
    storage_limit_message,
)
from services.ingest.collections.document_access import AccessDesk
from services.ingest.collections.handlers import AccessMethods, CollectionMethods
from services.ingest.documents import records
from services.ingest.documents.access import Access
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.history import list_revisions
from services.ingest.documents.listing import Listing, Page
from services.ingest.documents.revising import Reviser
from services.ingest.documents.uploads.copying import Copying
from services.ingest.documents.uploads.storage_limits import StorageLimits
from services.ingest.documents.uploads.upload import Upload, Uploads
from services.ingest.errors import BadUpload, UploadCorrupt, UploadIncomplete
from services.ingest.metrics import Metrics
from services.ingest.ports import Keys
from services.ingest.sources.desk import SourceDesk
from services.ingest.sources.files import SourceFiles
from services.ingest.sources.handlers import SourceMethods
from services.ingest.work.attempts import Attempts
from services.ingest.work.dead_letters import DeadLetters

_log = structlog.get_logger()
_DOWNLOAD_BYTES = 256 * 1024


class IngestServicer(AccessMethods, CollectionMethods, SourceMethods, ingest_pb2_grpc.IngestServiceServicer):
    """ingest.proto. The tenant is the principal's."""

    def __init__(
        self,
        *,
        uploads: Uploads,
        copying: Copying,
        listing: Listing,
        deletion: Deletion,
        reviser: Reviser,
        storage: StorageLimits,
        catalog: Catalog,
        dead_letters: DeadLetters,
        access: Access,
        keys: Keys,
        sources: SourceDesk,
        source_files: SourceFiles,
        access_desk: AccessDesk,
    ) -> None:
        self._access_desk = access_desk
        self._sources = sources
        self._source_files = source_files
        self._access = access
        self._uploads = uploads
        self._copying = copying
        self._listing = listing
        self._deletion = deletion
        self._reviser = reviser
        self._storage = storage
        self._catalog = catalog
        self._dead_letters = dead_letters
        self._keys = keys

    async def UploadDocument(
        self, request_iterator: AsyncIterator[ingest_pb2.UploadDocumentRequest], context: Any
    ) -> ingest_pb2.UploadDocumentResponse:
        requests = aiter(request_iterator)
        first = await anext(requests, None)
        if first is None or first.WhichOneof("part") != "header":
            raise BadUpload("an upload begins with its header; send name and collection before the bytes")
        header = first.header
        late: dict[str, str] = {}
        upload = Upload(
            header.collection_id,
            header.name,
            header.size_bytes,
            header.sha256,
            dict(header.metadata),
            header.idempotency_key,
            header.encoding,
            LANE_BY_NUMBER.get(header.lane),
            access=decode_access(header.access, header.collection_id) if header.HasField("access") else None,
            keep=header.keep,
            late_metadata=late,
            replaces_sha256=header.replaces_sha256 if header.HasField("replaces_sha256") else None,
            append=header.append,
        )
        document = await self._uploads.upload(current_principal(), upload, _bytes(requests, late))
        return ingest_pb2.UploadDocumentResponse(document=document_message(document))

    async def GetDocument(self, request: ingest_pb2.GetDocumentRequest, context: Any) -> ingest_pb2.GetDocumentResponse:
        document = await self._listing.get(current_principal(), request.document_id)
        return ingest_pb2.GetDocumentResponse(document=document_message(document))

    async def ListDocumentRevisions(
        self, request: ingest_pb2.ListDocumentRevisionsRequest, context: Any
    ) -> ingest_pb2.ListDocumentRevisionsResponse:
        document = await self._listing.get(current_principal(), request.document_id)
        revisions = [revision_message(each) for each in list_revisions(document)]
        return ingest_pb2.ListDocumentRevisionsResponse(revisions=revisions)

    async def ListDocuments(
        self, request: ingest_pb2.ListDocumentsRequest, context: Any
    ) -> ingest_pb2.ListDocumentsResponse:
        page = Page(
            request.collection_id,
            {STATUS_BY_NUMBER[number] for number in request.statuses if number in STATUS_BY_NUMBER},
            request.page.page_size,
            request.page.page_token,
            request.batch,
            request.after_document_id,
            request.oldest_first,
        )
        found, token, counts = await self._listing.page(current_principal(), page)
        return ingest_pb2.ListDocumentsResponse(
            documents=[document_message(document) for document in found],
            next_page_token=token,
            counts=document_counts(counts),
        )

    async def CopyDocument(
        self, request: ingest_pb2.CopyDocumentRequest, context: Any
    ) -> ingest_pb2.CopyDocumentResponse:
        copy = await self._copying.copy(
            current_principal(), request.document_id, request.collection_id, request.metadata, request.batch
        )
        return ingest_pb2.CopyDocumentResponse(document=document_message(copy))

    async def DeleteDocument(
        self, request: ingest_pb2.DeleteDocumentRequest, context: Any
    ) -> ingest_pb2.DeleteDocumentResponse:
        caller = current_principal()
        await self._deletion.delete(caller.tenant_id, request.document_id, partial(self._access.check_edit, caller))
        return ingest_pb2.DeleteDocumentResponse()

    async def Reindex(self, request: ingest_pb2.ReindexRequest, context: Any) -> ingest_pb2.ReindexResponse:
        caller = current_principal()
        check = partial(self._access.check_edit, caller)

        async def make(_: Attempt) -> str:
            return (
                await self._reviser.reindex(caller.tenant_id, request.document_id, check, by=caller.subject)
            ).document_id

        if request.idempotency_key:
            content = request.document_id.encode()
            await self._keys.once(caller, "reindex", request.idempotency_key, content, str, make)
            document = await self._listing.get(caller, request.document_id)
        else:
            document = await self._reviser.reindex(caller.tenant_id, request.document_id, check, by=caller.subject)
        return ingest_pb2.ReindexResponse(document=document_message(document))

    async def WatchDocuments(
        self, request: ingest_pb2.WatchDocumentsRequest, context: Any
    ) -> AsyncIterator[ingest_pb2.WatchDocumentsResponse]:
        end_when_draining()
        document_ids = frozenset(request.document_ids)
        changes = self._listing.watch(current_principal(), request.collection_id, document_ids)
        async with aclosing(changes):
            async for document in changes:
                if document is None:
                    yield ingest_pb2.WatchDocumentsResponse(snapshot_complete=True)
                else:
                    yield ingest_pb2.WatchDocumentsResponse(document=document_message(document))

    async def DownloadDocument(
        self, request: ingest_pb2.DownloadDocumentRequest, context: Any
    ) -> AsyncIterator[ingest_pb2.DownloadDocumentResponse]:
        async with self._listing.download(current_principal(), request.document_id) as (document, path):
            yield ingest_pb2.DownloadDocumentResponse(document=document_message(document))
            with await asyncio.to_thread(path.open, "rb") as file:
                while piece := await asyncio.to_thread(file.read, _DOWNLOAD_BYTES):
                    yield ingest_pb2.DownloadDocumentResponse(data=piece)

    async def GetJobCounts(
        self, request: ingest_pb2.GetJobCountsRequest, context: Any
    ) -> ingest_pb2.GetJobCountsResponse:
        return counts_message(await self._dead_letters.counts(current_principal(), request.collection_id))

    async def GetStorageLimits(
        self, request: ingest_pb2.GetStorageLimitsRequest, context: Any
    ) -> ingest_pb2.GetStorageLimitsResponse:
        caller = current_principal()
        states = await self._storage.states(caller)
        return ingest_pb2.GetStorageLimitsResponse(limits=[storage_limit_message(each, caller) for each in states])

    async def ListDeadLetters(
        self, request: ingest_pb2.ListDeadLettersRequest, context: Any
    ) -> ingest_pb2.ListDeadLettersResponse:
        found, token = await self._dead_letters.page(
            current_principal(),
            request.collection_id,
            request.reason,
            request.page.page_size,
            request.page.page_token,
        )
        letters = [dead_letter_message(letter) for letter in found]
        return ingest_pb2.ListDeadLettersResponse(dead_letters=letters, next_page_token=token)

    async def RequeueDeadLetter(
        self, request: ingest_pb2.RequeueDeadLetterRequest, context: Any
    ) -> ingest_pb2.RequeueDeadLetterResponse:
        outcome, document = await self._dead_letters.requeue(current_principal(), request.dead_letter_id)
        shown = document_message(document) if document else None
        return ingest_pb2.RequeueDeadLetterResponse(outcome=OUTCOME[outcome], document=shown)

    async def RequeueDeadLetters(
        self, request: ingest_pb2.RequeueDeadLettersRequest, context: Any
    ) -> ingest_pb2.RequeueDeadLettersResponse:
        done = await self._dead_letters.requeue_all(current_principal(), request.collection_id, request.reason)
        return ingest_pb2.RequeueDeadLettersResponse(
            requeued_count=done.requeued, dropped_count=done.dropped, remaining_count=done.remaining
        )


async def _bytes(
    requests: AsyncIterator[ingest_pb2.UploadDocumentRequest], late_metadata: dict[str, str]
) -> AsyncIterator[bytes]:
    """The file's bytes; then `late_metadata` has what its sender learnt behind them. A cancelled call can look like one
    that has ended well, so only the end message ends a file."""
    size_bytes = 0
    async for request in requests:
        match request.WhichOneof("part"):
            case "data":
                size_bytes += len(request.data)
                yield request.data
            case "end":
                if request.end.size_bytes != size_bytes:
                    raise UploadCorrupt(
                        f"{request.end.size_bytes} bytes were sent and {size_bytes} arrived; send the file again"
                    )
                late_metadata.update(request.end.metadata)
                return
            case _:
                raise BadUpload("an upload has one header, at its beginning; what follows are bytes and the end")
    raise UploadIncomplete(f"the upload stopped after {size_bytes} bytes, before its end; send the file again")


class JobHandler:
    """The queue's consumer: decodes a job and hands it on."""

    def __init__(self, attempts: Attempts, metrics: Metrics) -> None:
        self._attempts = attempts
        self._metrics = metrics

    async def handle(self, job: Job) -> float | None:
        """None when the job is done with, else the seconds until it is to come back."""
        try:
            decoded = records.decode_job(job.data)
        except records.Unreadable as error:
            # Its document is found without a job by the sweep, and gets one that can be read.
            _log.error("job_unreadable", job_id=job.job_id, error=str(error))
            self._metrics.unreadable_jobs.inc()
            return None
        if decoded.tenant_id != job.principal.tenant_id:
            _log.error("job_of_another_tenant", job_id=job.job_id)
            return None
        with structlog.contextvars.bound_contextvars(document_id=decoded.document_id):
            return await self._attempts.run(decoded, job.delivery)
