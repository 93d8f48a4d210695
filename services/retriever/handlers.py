"""The gRPC servicer: decodes, calls the core, encodes. The tenant is always the verified principal's."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.access.principal import current_principal
from services.retriever import metrics
from services.retriever.adapters import model_wire, search_wire, wire
from services.retriever.errors import InvalidRequest
from services.retriever.memories.handlers import MemoriesServicer
from services.retriever.memories.memory_index import MemoryIndex
from services.retriever.model_change.embedding_changes import EmbeddingChanges
from services.retriever.models import IndexBatch, RevisionKey
from services.retriever.revisions.activation import RevisionSwitch
from services.retriever.revisions.chunk_reader import ChunkReader
from services.retriever.revisions.indexing import IndexHeader, RevisionWriter
from services.retriever.revisions.revision_map import RevisionMap
from services.retriever.revisions.revision_reader import RevisionReader
from services.retriever.searching.search import Searcher
from services.retriever.validation import MAX_COLLECTIONS, check_scope_id

_LISTED_AT_ONCE = 1000

Context = grpc.aio.ServicerContext[Any, Any]


class RetrieverServicer(MemoriesServicer):
    """RetrieverService of the contract."""

    def __init__(
        self,
        searcher: Searcher,
        reader: ChunkReader,
        writer: RevisionWriter,
        switch: RevisionSwitch,
        revisions: RevisionMap,
        revision_reader: RevisionReader,
        changes: EmbeddingChanges,
        memories: MemoryIndex,
    ) -> None:
        super().__init__(memories)
        self._searcher = searcher
        self._reader = reader
        self._writer = writer
        self._switch = switch
        self._revisions = revisions
        self._revision_reader = revision_reader
        self._changes = changes

    async def Search(self, request: pb.SearchRequest, context: Context) -> pb.SearchResponse:
        result = await self._searcher.search(search_wire.search_request(request, current_principal().tenant_id))
        metrics.observe_search(result)
        return search_wire.search_response(result, request.explain)

    async def FetchChunks(self, request: pb.FetchChunksRequest, context: Context) -> pb.FetchChunksResponse:
        tenant_id = current_principal().tenant_id
        if not request.document_id:
            return wire.fetch_response(await self._reader.fetch(tenant_id, list(request.chunk_ids), request.window))
        if request.chunk_ids or request.window:
            raise InvalidRequest("document_id stands instead of chunk_ids and window; send one or the other")
        section = await self._reader.section(tenant_id, request.document_id, request.first_ordinal, request.chunk_count)
        return wire.section_response(section)

    async def IndexChunks(
        self, request_iterator: AsyncIterator[pb.IndexChunksRequest], context: Context
    ) -> pb.IndexChunksResponse:
        parts = aiter(request_iterator)
        first = await anext(parts, None)
        if first is None or first.WhichOneof("part") != "header":
            raise InvalidRequest("the first message of IndexChunks must be the header; send it before any batch")
        header = wire.index_header(first.header, current_principal().tenant_id)
        chunk_count = await self._writer.index(header, _batches(first.header, parts, header))
        metrics.INDEXED_CHUNKS.inc(chunk_count)
        answer = pb.IndexChunksResponse(chunk_count=chunk_count)
        if first.header.HasField("activate"):
            activation = wire.immediate_activation(first.header.activate, header)
            answer.activated_at.FromMilliseconds(await self._switch.activate(activation))
        return answer

    async def ActivateRevision(
        self, request: pb.ActivateRevisionRequest, context: Context
    ) -> pb.ActivateRevisionResponse:
        activated_at_ms = await self._switch.activate(wire.activation(request, current_principal().tenant_id))
        activated_at = Timestamp()
        activated_at.FromMilliseconds(activated_at_ms)
        return pb.ActivateRevisionResponse(activated_at=activated_at)

    async def DeleteDocument(self, request: pb.DeleteDocumentRequest, context: Context) -> pb.DeleteDocumentResponse:
        await self._switch.delete(current_principal().tenant_id, request.document_id)
        return pb.DeleteDocumentResponse()

    async def FetchVectors(
        self, request: pb.FetchVectorsRequest, context: Context
    ) -> AsyncIterator[pb.FetchVectorsResponse]:
        tenant_id = current_principal().tenant_id
        parts = self._revision_reader.vectors(tenant_id, request.document_id, request.embedding_model)
        async for content_hashes, vectors in parts:
            yield wire.vectors_response(content_hashes, vectors)

    async def CheckRevisions(self, request: pb.CheckRevisionsRequest, context: Context) -> pb.CheckRevisionsResponse:
        tenant_id = current_principal().tenant_id
        keys = [RevisionKey(tenant_id, each.document_id, each.revision_id) for each in request.revisions]
        return wire.check_response(await self._revision_reader.check(keys))

    async def ListDocuments(
        self, request: pb.ListDocumentsRequest, context: Context
    ) -> AsyncIterator[pb.ListDocumentsResponse]:
        document_ids = self._revision_reader.visible(current_principal().tenant_id)
        for start in range(0, len(document_ids), _LISTED_AT_ONCE):
            yield pb.ListDocumentsResponse(document_ids=document_ids[start : start + _LISTED_AT_ONCE])

    async def GetCollectionModel(
        self, request: pb.GetCollectionModelRequest, context: Context
    ) -> pb.GetCollectionModelResponse:
        status = await self._changes.status(current_principal().tenant_id, request.collection_id)
        return pb.GetCollectionModelResponse(model=model_wire.model_message(status))

    async def ChangeCollectionModel(
        self, request: pb.ChangeCollectionModelRequest, context: Context
    ) -> pb.ChangeCollectionModelResponse:
        status = await self._changes.change(
            current_principal().tenant_id,
            request.collection_id,
            request.model,
            model_wire.questions(request.questions),
            model_wire.margin(request),
        )
        return pb.ChangeCollectionModelResponse(model=model_wire.model_message(status))

    async def EvaluateCollectionModel(
        self, request: pb.EvaluateCollectionModelRequest, context: Context
    ) -> pb.EvaluateCollectionModelResponse:
        questions, margin = model_wire.questions(request.questions), model_wire.margin(request)
        tenant_id = current_principal().tenant_id
        status = await self._changes.evaluate(tenant_id, request.collection_id, questions, margin)
        return pb.EvaluateCollectionModelResponse(model=model_wire.model_message(status))

    async def SwapCollectionModel(
        self, request: pb.SwapCollectionModelRequest, context: Context
    ) -> pb.SwapCollectionModelResponse:
        tenant_id = current_principal().tenant_id
        status = await self._changes.swap(tenant_id, request.collection_id, force=request.force)
        return pb.SwapCollectionModelResponse(model=model_wire.model_message(status))

    async def RollBackCollectionModel(
        self, request: pb.RollBackCollectionModelRequest, context: Context
    ) -> pb.RollBackCollectionModelResponse:
        status = await self._changes.roll_back(current_principal().tenant_id, request.collection_id)
        return pb.RollBackCollectionModelResponse(model=model_wire.model_message(status))

    async def DropCollectionModel(
        self, request: pb.DropCollectionModelRequest, context: Context
    ) -> pb.DropCollectionModelResponse:
        status = await self._changes.drop(current_principal().tenant_id, request.collection_id)
        return pb.DropCollectionModelResponse(model=model_wire.model_message(status))

    async def CorpusStats(self, request: pb.CorpusStatsRequest, context: Context) -> pb.CorpusStatsResponse:
        if len(request.collection_ids) > MAX_COLLECTIONS:
            raise InvalidRequest(f"collection_ids has over {MAX_COLLECTIONS} entries; ask in parts")
        for collection_id in request.collection_ids:
            check_scope_id("collection_ids", collection_id)
        return wire.stats_response(self._revisions.stats(current_principal().tenant_id, list(request.collection_ids)))


async def _batches(
    message: pb.IndexHeader, parts: AsyncIterator[pb.IndexChunksRequest], header: IndexHeader
) -> AsyncIterator[IndexBatch]:
    """The batch that came with the header, then those that follow it."""
    if message.first_batch.chunks:
        yield wire.index_batch(message.first_batch, header)
    async for part in parts:
        if part.WhichOneof("part") != "batch":
            raise InvalidRequest("a message of IndexChunks after the header is not a batch; send the header once")
        if part.batch.chunks:
            yield wire.index_batch(part.batch, header)
