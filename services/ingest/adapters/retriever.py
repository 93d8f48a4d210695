"""The search indexes over gRPC: chunks of a revision streamed in batches, the pointer flip, removal."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import numpy as np
from groundwork.common.v1 import common_pb2
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from kit.errors import Cancelled, Unavailable
from services.ingest.documents.models import Document, Revision
from services.ingest.ports import ChunkBatch, Vectors
from services.ingest.reading.models import Chunk
from services.ingest.work.models import RevisionCheck, RevisionState

_CALL_TIMEOUT_S = 60.0
_VECTORS_TIMEOUT_S = 300.0
"""For all vectors of a document: a hundred thousand take the engines a minute."""
_CHUNK_TIMEOUT_S = 0.05
_STATES = {
    retriever_pb2.REVISION_STATE_ACTIVE: RevisionState.ACTIVE,
    retriever_pb2.REVISION_STATE_INCOMPLETE: RevisionState.INCOMPLETE,
    retriever_pb2.REVISION_STATE_INACTIVE: RevisionState.INACTIVE,
    retriever_pb2.REVISION_STATE_DELETED: RevisionState.DELETED,
}


class RetrieverIndex:
    """`stub` is a RetrieverServiceStub on a kit channel."""

    def __init__(self, stub: retriever_pb2_grpc.RetrieverServiceStub) -> None:
        self._stub = stub

    async def index(
        self,
        document: Document,
        revision: Revision,
        batches: AsyncIterator[ChunkBatch],
        chunk_count: int,
        model: str,
        *,
        to_come: int,
        activate_with: Sequence[str] | None = None,
    ) -> bool:
        header = retriever_pb2.IndexHeader(
            document_id=document.document_id,
            collection_id=document.collection_id,
            revision_id=revision.revision_id,
            embedding_model=model,
            to_come=to_come,
        )
        if activate_with is not None:
            header.activate.revision_number = revision.number
            header.activate.expected_chunk_count = chunk_count
            header.activate.languages.extend(activate_with)
        failures: list[Exception] = []
        requests = _remembering(_requests(header, document, revision, batches), failures)
        timeout_s = _CALL_TIMEOUT_S + _CHUNK_TIMEOUT_S * chunk_count
        try:
            answer = await self._stub.IndexChunks(requests, timeout=timeout_s)
        except (asyncio.CancelledError, Cancelled):
            task = asyncio.current_task()
            if failures and not (task and task.cancelling()):
                raise failures[0] from None
            raise
        if answer.chunk_count != chunk_count:
            raise Unavailable(f"the index took {answer.chunk_count} of {chunk_count} chunks", reason="INDEX_INCOMPLETE")
        return answer.HasField("activated_at")

    async def activate(
        self, document: Document, revision: Revision, chunk_count: int, languages: Sequence[str]
    ) -> None:
        await self._stub.ActivateRevision(
            retriever_pb2.ActivateRevisionRequest(
                document_id=document.document_id,
                collection_id=document.collection_id,
                revision_id=revision.revision_id,
                revision_number=revision.number,
                expected_chunk_count=chunk_count,
                languages=languages,
            ),
            timeout=_CALL_TIMEOUT_S,
        )

    async def vectors(self, document_id: str, model: str) -> AsyncGenerator[tuple[Sequence[str], Vectors], None]:
        request = retriever_pb2.FetchVectorsRequest(document_id=document_id, embedding_model=model)
        async for part in self._stub.FetchVectors(request, timeout=_VECTORS_TIMEOUT_S):
            rows = np.frombuffer(part.vectors, dtype="<f4").reshape(len(part.content_hashes), part.dimension)
            yield part.content_hashes, rows

    async def check(self, revisions: Sequence[tuple[str, str]]) -> list[RevisionCheck]:
        request = retriever_pb2.CheckRevisionsRequest(
            revisions=[
                retriever_pb2.RevisionReference(document_id=document_id, revision_id=revision_id)
                for document_id, revision_id in revisions
            ]
        )
        answer = await self._stub.CheckRevisions(request, timeout=_CALL_TIMEOUT_S)
        return [RevisionCheck(_STATES[each.state], each.active_revision_number) for each in answer.revisions]

    async def visible(self) -> AsyncGenerator[str, None]:
        async for part in self._stub.ListDocuments(retriever_pb2.ListDocumentsRequest(), timeout=_CALL_TIMEOUT_S):
            for document_id in part.document_ids:
                yield document_id

    async def delete(self, document_id: str) -> None:
        request = retriever_pb2.DeleteDocumentRequest(document_id=document_id)
        await self._stub.DeleteDocument(request, timeout=_CALL_TIMEOUT_S)


def chunk_id(document: Document, revision: Revision, ordinal: int) -> str:
    """The id of a chunk: the same for every delivery of a job, fresh with every revision."""
    parts = (document.tenant_id, document.document_id, revision.revision_id, str(ordinal))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]


async def _requests(
    header: retriever_pb2.IndexHeader, document: Document, revision: Revision, batches: AsyncIterator[ChunkBatch]
) -> AsyncIterator[retriever_pb2.IndexChunksRequest]:
    first = await anext(batches, None)
    if first is not None:
        header.first_batch.CopyFrom(_batch(document, revision, *first))
    yield retriever_pb2.IndexChunksRequest(header=header)
    async for batch in batches:
        yield retriever_pb2.IndexChunksRequest(batch=_batch(document, revision, *batch))


def _batch(
    document: Document, revision: Revision, chunks: Sequence[Chunk], vectors: Vectors
) -> retriever_pb2.IndexBatch:
    return retriever_pb2.IndexBatch(
        chunks=[_chunk(document, revision, chunk) for chunk in chunks],
        vectors=vectors.astype("<f4").tobytes(),
        dimension=vectors.shape[1],
    )


async def _remembering(
    requests: AsyncIterator[retriever_pb2.IndexChunksRequest], failures: list[Exception]
) -> AsyncIterator[retriever_pb2.IndexChunksRequest]:
    """Keeps what went wrong while requests were made: the library cancels the call, and says no more than that."""
    try:
        async for request in requests:
            yield request
    except Exception as error:
        failures.append(error)
        raise


def _chunk(document: Document, revision: Revision, chunk: Chunk) -> retriever_pb2.Chunk:
    return retriever_pb2.Chunk(
        chunk_id=chunk_id(document, revision, chunk.ordinal),
        document_id=document.document_id,
        collection_id=document.collection_id,
        revision_id=revision.revision_id,
        ordinal=chunk.ordinal,
        document_name=document.name,
        text=chunk.text,
        embedded_text=chunk.embedded_text,
        page=chunk.page,
        heading_path=chunk.heading_path,
        char_start=chunk.start,
        char_end=chunk.end,
        token_count=chunk.token_count,
        content_hash=chunk.content_hash,
        bounding_boxes=[
            common_pb2.BoundingBox(
                page=line.page,
                x0=line.box[0],
                y0=line.box[1],
                x1=line.box[2],
                y1=line.box[3],
                char_start=line.start,
                char_end=line.end,
            )
            for line in chunk.boxes
        ],
        metadata={**document.metadata, **chunk.metadata},
        language=chunk.language,
    )
