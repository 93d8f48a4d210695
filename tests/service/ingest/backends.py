"""The neighbours of ingestion as gRPC servicers on real sockets: a model server and a retriever that keep the contract's rules."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from kit.access.principal import current_principal
from kit.errors import FailedPrecondition, GroundworkError, ResourceExhausted

DIMENSION = 8


class FakeReranker(reranker_pb2_grpc.RerankerServiceServicer):
    def __init__(self) -> None:
        self.embed_calls = 0
        self.refusals = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    async def GetModelInfo(self, request: Any, context: Any) -> reranker_pb2.GetModelInfoResponse:
        return reranker_pb2.GetModelInfoResponse(embedding_model="fake", dimension=DIMENSION, window_tokens=128)

    async def GetTokenizer(self, request: Any, context: Any) -> reranker_pb2.GetTokenizerResponse:
        return reranker_pb2.GetTokenizerResponse()

    async def Embed(self, request: Any, context: Any) -> reranker_pb2.EmbedResponse:
        self.embed_calls += 1
        self.reached.set()
        await self.gate.wait()
        if self.refusals:
            self.refusals -= 1
            raise ResourceExhausted("the queue is full; try again shortly", retry_after_s=0.01)
        vectors = np.full((len(request.texts), DIMENSION), DIMENSION**-0.5, dtype="<f4")
        return reranker_pb2.EmbedResponse(vectors=vectors.tobytes(), dimension=DIMENSION, model="fake")


class FakeRetriever(retriever_pb2_grpc.RetrieverServiceServicer):
    def __init__(self) -> None:
        self.revisions: dict[tuple[str, str], list[retriever_pb2.Chunk]] = {}
        self.active: dict[str, tuple[int, str]] = {}
        self.languages: dict[str, list[str]] = {}
        self.deleted: set[str] = set()
        self.tenants: set[str] = set()
        self.index_calls = 0
        self.activate_calls = 0
        self.refusal: GroundworkError | None = None
        self.vectors: dict[tuple[str, str], dict[str, bytes]] = {}

    async def IndexChunks(
        self, request_iterator: AsyncIterator[retriever_pb2.IndexChunksRequest], context: Any
    ) -> retriever_pb2.IndexChunksResponse:
        self.tenants.add(current_principal().tenant_id)
        self.index_calls += 1
        if self.refusal:
            raise self.refusal
        header, chunks, vectors = None, [], b""
        async for request in request_iterator:
            if request.WhichOneof("part") == "header":
                header = request.header
            batch = request.header.first_batch if request.HasField("header") else request.batch
            assert len(batch.vectors) == 4 * batch.dimension * len(batch.chunks)
            chunks += batch.chunks
            vectors += batch.vectors
        assert header is not None
        self.revisions[header.document_id, header.revision_id] = chunks
        rows = [vectors[4 * DIMENSION * n : 4 * DIMENSION * (n + 1)] for n in range(len(chunks))]
        self.vectors[header.document_id, header.revision_id] = {
            chunk.content_hash: row for chunk, row in zip(chunks, rows, strict=True)
        }
        answer = retriever_pb2.IndexChunksResponse(chunk_count=len(chunks))
        if header.HasField("activate"):
            wanted = header.activate
            self._activate(
                header.document_id,
                header.revision_id,
                wanted.revision_number,
                wanted.expected_chunk_count,
                wanted.languages,
            )
            answer.activated_at.GetCurrentTime()
        return answer

    async def ActivateRevision(self, request: Any, context: Any) -> retriever_pb2.ActivateRevisionResponse:
        self.activate_calls += 1
        self._activate(
            request.document_id,
            request.revision_id,
            request.revision_number,
            request.expected_chunk_count,
            request.languages,
        )
        return retriever_pb2.ActivateRevisionResponse()

    def _activate(
        self, document_id: str, revision_id: str, number: int, chunk_count: int, languages: Sequence[str]
    ) -> None:
        if document_id in self.deleted or self.active.get(document_id, (0, ""))[0] > number:
            raise FailedPrecondition("superseded", reason="REVISION_SUPERSEDED")
        if len(self.revisions.get((document_id, revision_id), [])) != chunk_count:
            raise FailedPrecondition("incomplete", reason="REVISION_INCOMPLETE")
        self.active[document_id] = (number, revision_id)
        self.languages[document_id] = list(languages)

    async def FetchVectors(self, request: Any, context: Any) -> AsyncIterator[retriever_pb2.FetchVectorsResponse]:
        _, revision_id = self.active.get(request.document_id, (0, ""))
        for content_hash, row in self.vectors.get((request.document_id, revision_id), {}).items():
            yield retriever_pb2.FetchVectorsResponse(content_hashes=[content_hash], vectors=row, dimension=DIMENSION)

    async def CheckRevisions(self, request: Any, context: Any) -> retriever_pb2.CheckRevisionsResponse:
        checks = []
        for each in request.revisions:
            number, revision_id = self.active.get(each.document_id, (0, ""))
            active = revision_id == each.revision_id
            state = retriever_pb2.REVISION_STATE_ACTIVE if active else retriever_pb2.REVISION_STATE_INACTIVE
            checks.append(
                retriever_pb2.RevisionCheck(document_id=each.document_id, state=state, active_revision_number=number)
            )
        return retriever_pb2.CheckRevisionsResponse(revisions=checks)

    async def ListDocuments(self, request: Any, context: Any) -> AsyncIterator[retriever_pb2.ListDocumentsResponse]:
        yield retriever_pb2.ListDocumentsResponse(document_ids=list(self.active))

    async def DeleteDocument(self, request: Any, context: Any) -> retriever_pb2.DeleteDocumentResponse:
        self.deleted.add(request.document_id)
        self.active.pop(request.document_id, None)
        return retriever_pb2.DeleteDocumentResponse()

    def searchable(self, document_id: str) -> list[retriever_pb2.Chunk]:
        if document_id not in self.active:
            return []
        return self.revisions[document_id, self.active[document_id][1]]
