"""The four services behind the gateway as scriptable servicers, for a real gRPC server."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from groundwork.store.v1 import store_pb2, store_pb2_grpc
from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc

from kit.access.principal import Principal, current_principal
from kit.errors import (
    AlreadyExists,
    FailedPrecondition,
    GroundworkError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
)

AT = Timestamp(seconds=1_750_000_000)
RUN_ID = "0197c0ffee01" + "a" * 20
OTHER_RUN_ID = "0197c0ffee02" + "b" * 20
"""One that no service knows."""
FACT_ID = "e" * 32
APPROVAL_ID = f"{RUN_ID}-{'c' * 12}"
ARGUMENTS_HASH = "d" * 64


def document(document_id: str = "d0000001", **fields: Any) -> ingest_pb2.Document:
    defaults = {
        "collection_id": "default",
        "name": "handbook.pdf",
        "media_type": "application/pdf",
        "size_bytes": 11,
        "status": ingest_pb2.DOCUMENT_STATUS_QUEUED,
        "created_at": AT,
    }
    return ingest_pb2.Document(document_id=document_id, **{**defaults, **fields})


class FakeIngest(ingest_pb2_grpc.IngestServiceServicer):
    def __init__(self) -> None:
        self.documents: dict[str, ingest_pb2.Document] = {}
        self.others: set[str] = set()
        """Ids of documents that the caller may read and not remove."""
        self.files: dict[str, bytes] = {}
        self.revisions: dict[str, list[ingest_pb2.DocumentRevision]] = {}
        self.sources: dict[str, ingest_pb2.Source] = {}
        self.source_requests: list[Any] = []
        self.headers: list[ingest_pb2.UploadHeader] = []
        self.late_metadata: dict[str, str] = {}
        self.limits_failure: GroundworkError | None = None
        self.received_bytes = 0
        self.largest_piece = 0
        self.committed = 0
        self.aborted = asyncio.Event()
        self.refuse_after_header: GroundworkError | None = None
        self.hold = asyncio.Event()
        self.hold.set()
        self.callers: list[Principal] = []
        self.endless_bytes = 0
        """Bytes of each message of a download that never ends; 0: downloads end."""
        self.download_ended = asyncio.Event()
        self.dead_letters: dict[str, ingest_pb2.DeadLetter] = {}
        self.requeues: list[Any] = []
        self.memory: dict[str, str] = {}
        """Modes of memory of collections."""
        self.updates: list[Any] = []
        self.listed: list[ingest_pb2.ListDocumentsRequest] = []
        self.named: list[str] = []
        """Collections that were asked for, in order."""
        self.access: ingest_pb2.DocumentAccess | None = None
        self.members: list[ingest_pb2.CollectionMember] = []
        self.watches = 0
        self.looked_up: Callable[[], None] = lambda: None
        """Called after each GetDocument."""
        self.changes: asyncio.Queue[ingest_pb2.WatchDocumentsResponse | GroundworkError] = asyncio.Queue()

    async def UploadDocument(self, request_iterator: Any, context: Any) -> ingest_pb2.UploadDocumentResponse:
        self.callers.append(current_principal())
        ended = False
        try:
            async for request in request_iterator:
                match request.WhichOneof("part"):
                    case "header":
                        self.headers.append(request.header)
                        if self.refuse_after_header:
                            raise self.refuse_after_header
                    case "data":
                        await self.hold.wait()
                        self.received_bytes += len(request.data)
                        self.largest_piece = max(self.largest_piece, len(request.data))
                    case "end":
                        ended = True
                        self.late_metadata = dict(request.end.metadata)
            if not ended:
                raise InvalidArgument("the upload stopped before its end", reason="UPLOAD_INCOMPLETE")
        except (asyncio.CancelledError, GroundworkError):
            self.aborted.set()
            raise
        self.committed += 1
        return ingest_pb2.UploadDocumentResponse(document=document(name=self.headers[-1].name))

    def _known(self, document_id: str) -> ingest_pb2.Document:
        if document_id not in self.documents:
            raise NotFound(f"there is no document {document_id}", reason="DOCUMENT_NOT_FOUND", document_id=document_id)
        return self.documents[document_id]

    async def GetDocument(self, request: Any, context: Any) -> ingest_pb2.GetDocumentResponse:
        found = self._known(request.document_id)
        self.looked_up()
        return ingest_pb2.GetDocumentResponse(document=found)

    async def ListDocumentRevisions(self, request: Any, context: Any) -> ingest_pb2.ListDocumentRevisionsResponse:
        self._known(request.document_id)
        return ingest_pb2.ListDocumentRevisionsResponse(revisions=self.revisions.get(request.document_id, []))

    async def ListDocuments(self, request: Any, context: Any) -> ingest_pb2.ListDocumentsResponse:
        self.named.append(request.collection_id)
        self.listed.append(ingest_pb2.ListDocumentsRequest.FromString(request.SerializeToString()))
        found = [
            each
            for each in self.documents.values()
            if (not request.statuses or each.status in request.statuses)
            and (not request.batch or each.batch == request.batch)
        ]
        _, _, after = request.page.page_token.partition("after-")
        first = int(after or 0)
        end = first + request.page.page_size
        token = f"after-{end}" if len(found) > end else ""
        return ingest_pb2.ListDocumentsResponse(documents=found[first:end], next_page_token=token)

    async def CopyDocument(self, request: Any, context: Any) -> ingest_pb2.CopyDocumentResponse:
        found = self._known(request.document_id)
        found.copies[request.collection_id] = "c0" * 16
        copy = document(
            "c0" * 16,
            name=found.name.rpartition("/")[2],
            collection_id=request.collection_id,
            metadata=request.metadata,
            copy_of=request.document_id,
            batch=request.batch,
        )
        self.documents[copy.document_id] = copy
        return ingest_pb2.CopyDocumentResponse(document=copy)

    async def DeleteDocument(self, request: Any, context: Any) -> ingest_pb2.DeleteDocumentResponse:
        if request.document_id in self.others:
            raise PermissionDenied("this takes the role editor", reason="NOT_YOURS")
        self.documents.pop(request.document_id, None)
        return ingest_pb2.DeleteDocumentResponse()

    async def Reindex(self, request: Any, context: Any) -> ingest_pb2.ReindexResponse:
        return ingest_pb2.ReindexResponse(document=self._known(request.document_id))

    async def WatchDocuments(self, request: Any, context: Any) -> AsyncIterator[ingest_pb2.WatchDocumentsResponse]:
        self.watches += 1
        for each in list(self.documents.values()):
            if not request.document_ids or each.document_id in request.document_ids:
                yield ingest_pb2.WatchDocumentsResponse(document=each)
        yield ingest_pb2.WatchDocumentsResponse(snapshot_complete=True)
        while True:
            change = await self.changes.get()
            if isinstance(change, GroundworkError):
                raise change
            yield change

    async def DownloadDocument(self, request: Any, context: Any) -> AsyncIterator[ingest_pb2.DownloadDocumentResponse]:
        yield ingest_pb2.DownloadDocumentResponse(document=self._known(request.document_id))
        try:
            while self.endless_bytes:
                yield ingest_pb2.DownloadDocumentResponse(data=b"x" * self.endless_bytes)
        finally:
            self.download_ended.set()
        content = self.files[request.document_id]
        for start in range(0, len(content), 4):
            yield ingest_pb2.DownloadDocumentResponse(data=content[start : start + 4])

    async def CreateCollection(self, request: Any, context: Any) -> ingest_pb2.CreateCollectionResponse:
        if request.collection_id == "default":
            raise AlreadyExists("there is a collection default already", reason="COLLECTION_EXISTS")
        return ingest_pb2.CreateCollectionResponse(collection=self._collection(request.collection_id, request.name))

    async def GetCollection(self, request: Any, context: Any) -> ingest_pb2.GetCollectionResponse:
        self.named.append(request.collection_id)
        if request.collection_id == "nope":
            raise NotFound("there is no collection nope", reason="COLLECTION_NOT_FOUND")
        found = self._collection(request.collection_id)
        found.memory = self.memory.get(request.collection_id, "")
        return ingest_pb2.GetCollectionResponse(collection=found)

    async def ListCollections(self, request: Any, context: Any) -> ingest_pb2.ListCollectionsResponse:
        return ingest_pb2.ListCollectionsResponse(collections=[self._collection("default")])

    async def UpdateCollection(self, request: Any, context: Any) -> ingest_pb2.UpdateCollectionResponse:
        self.updates.append(request)
        if request.collection_id == "nope":
            raise NotFound("there is no collection nope", reason="COLLECTION_NOT_FOUND")
        if request.collection_id == "shared":
            raise PermissionDenied("collection shared is shared with you to read", reason="NOT_YOURS")
        changed = self._collection(request.collection_id, request.name)
        changed.visibility = request.visibility or changed.visibility
        changed.memory = request.memory if request.HasField("memory") else changed.memory
        changed.local_models_only = request.local_models_only
        return ingest_pb2.UpdateCollectionResponse(collection=changed)

    async def GetDocumentAccess(self, request: Any, context: Any) -> ingest_pb2.GetDocumentAccessResponse:
        return ingest_pb2.GetDocumentAccessResponse(access=self.access)

    async def SetDocumentAccess(self, request: Any, context: Any) -> ingest_pb2.SetDocumentAccessResponse:
        self.access = request.access if request.HasField("access") else None
        return ingest_pb2.SetDocumentAccessResponse(access=self.access)

    async def ListCollectionMembers(self, request: Any, context: Any) -> ingest_pb2.ListCollectionMembersResponse:
        return ingest_pb2.ListCollectionMembersResponse(members=self.members)

    async def SetCollectionMember(self, request: Any, context: Any) -> ingest_pb2.SetCollectionMemberResponse:
        self.members = [*(each for each in self.members if each.name != request.member.name), request.member]
        return ingest_pb2.SetCollectionMemberResponse(members=self.members)

    async def RemoveCollectionMember(self, request: Any, context: Any) -> ingest_pb2.RemoveCollectionMemberResponse:
        self.members = [each for each in self.members if (each.kind, each.name) != (request.kind, request.name)]
        return ingest_pb2.RemoveCollectionMemberResponse(members=self.members)

    async def DeleteCollection(self, request: Any, context: Any) -> ingest_pb2.DeleteCollectionResponse:
        if request.collection_id == "default":
            raise FailedPrecondition("the collection default stays", reason="COLLECTION_PROTECTED")
        return ingest_pb2.DeleteCollectionResponse(cleared=request.collection_id != "large")

    async def GetStorageLimits(self, request: Any, context: Any) -> ingest_pb2.GetStorageLimitsResponse:
        if self.limits_failure is not None:
            raise self.limits_failure
        limit = ingest_pb2.StorageLimit(whose="tenant", what="storage", amount=1_000_000, used=600)
        return ingest_pb2.GetStorageLimitsResponse(limits=[limit])

    async def GetJobCounts(self, request: Any, context: Any) -> ingest_pb2.GetJobCountsResponse:
        return ingest_pb2.GetJobCountsResponse(queued_count=2, dead_letter_count=len(self.dead_letters))

    async def ListDeadLetters(self, request: Any, context: Any) -> ingest_pb2.ListDeadLettersResponse:
        found = [each for each in self.dead_letters.values() if request.reason in ("", each.reason)]
        token = "more" if len(found) > request.page.page_size else ""
        return ingest_pb2.ListDeadLettersResponse(dead_letters=found[: request.page.page_size], next_page_token=token)

    async def RequeueDeadLetter(self, request: Any, context: Any) -> ingest_pb2.RequeueDeadLetterResponse:
        letter = self.dead_letters.get(request.dead_letter_id)
        if letter is None:
            raise NotFound(f"there is no dead letter {request.dead_letter_id}", reason="DEAD_LETTER_NOT_FOUND")
        if letter.document_id not in self.documents:
            return ingest_pb2.RequeueDeadLetterResponse(outcome=ingest_pb2.REQUEUE_OUTCOME_DOCUMENT_DELETED)
        return ingest_pb2.RequeueDeadLetterResponse(
            outcome=ingest_pb2.REQUEUE_OUTCOME_REQUEUED, document=self.documents[letter.document_id]
        )

    async def CreateSource(self, request: Any, context: Any) -> ingest_pb2.CreateSourceResponse:
        self.source_requests.append(request)
        made = ingest_pb2.Source(
            source_id="5d0c7be9f2c1",
            kind=request.kind,
            name=request.name or "contracts",
            collection_id=request.collection_id,
            settings=request.settings,
            secret_names=sorted(request.secrets),
            every=request.every,
            owner="tester",
            state=ingest_pb2.SOURCE_STATE_SYNCING,
            sync=ingest_pb2.SourceSync(total_count=4, done_count=1),
            file_count=3,
            failing_count=1,
            failing=[ingest_pb2.FailingFile(path="a.pdf", reason="FILE_UNREADABLE", message="it cannot be read")],
        )
        made.sync.remaining.FromSeconds(3)
        self.sources[made.source_id] = made
        return ingest_pb2.CreateSourceResponse(source=made)

    async def GetSource(self, request: Any, context: Any) -> ingest_pb2.GetSourceResponse:
        return ingest_pb2.GetSourceResponse(source=self._source(request))

    async def ListSources(self, request: Any, context: Any) -> ingest_pb2.ListSourcesResponse:
        self.source_requests.append(request)
        return ingest_pb2.ListSourcesResponse(sources=self.sources.values())

    async def UpdateSource(self, request: Any, context: Any) -> ingest_pb2.UpdateSourceResponse:
        self.source_requests.append(request)
        return ingest_pb2.UpdateSourceResponse(source=self._source(request))

    async def RunSource(self, request: Any, context: Any) -> ingest_pb2.RunSourceResponse:
        self.source_requests.append(request)
        return ingest_pb2.RunSourceResponse(source=self._source(request))

    async def DeleteSource(self, request: Any, context: Any) -> ingest_pb2.DeleteSourceResponse:
        del self.sources[self._source(request).source_id]
        return ingest_pb2.DeleteSourceResponse()

    def _source(self, request: Any) -> ingest_pb2.Source:
        if request.source_id not in self.sources:
            raise NotFound(f"there is no source {request.source_id}", reason="SOURCE_NOT_FOUND")
        return self.sources[request.source_id]

    async def RequeueDeadLetters(self, request: Any, context: Any) -> ingest_pb2.RequeueDeadLettersResponse:
        self.requeues.append(request)
        return ingest_pb2.RequeueDeadLettersResponse(requeued_count=len(self.dead_letters), remaining_count=1)

    def _collection(self, collection_id: str, name: str = "") -> ingest_pb2.Collection:
        return ingest_pb2.Collection(
            collection_id=collection_id,
            name=name or collection_id,
            created_at=AT,
            owner="" if collection_id == "old" else "local-user",
            visibility=ingest_pb2.COLLECTION_VISIBILITY_TENANT
            if collection_id == "old"
            else ingest_pb2.COLLECTION_VISIBILITY_PRIVATE,
        )


def chunk(chunk_id: str = "c1", **fields: Any) -> retriever_pb2.Chunk:
    defaults = {
        "document_id": "d0000001",
        "collection_id": "default",
        "document_name": "handbook.pdf",
        "text": "Four weeks.",
    }
    return retriever_pb2.Chunk(chunk_id=chunk_id, **{**defaults, **fields})


class FakeRetriever(retriever_pb2_grpc.RetrieverServiceServicer):
    def __init__(self) -> None:
        self.requests: list[retriever_pb2.SearchRequest] = []
        self.commands: list[Any] = []
        """What was commanded about embedding models."""
        self.model = "old-model"
        self.failure: GroundworkError | Exception | None = None
        self.window = retriever_pb2.ChunkWindow(chunk=chunk("c1"), before=[chunk("c0")], after=[chunk("c2")])
        """Of chunk c1."""

    async def Search(self, request: Any, context: Any) -> retriever_pb2.SearchResponse:
        self.requests.append(request)
        if self.failure:
            raise self.failure
        explanation = retriever_pb2.Explanation(dense_rank=1, dense_score=0.5, fused_rank=1)
        hit = retriever_pb2.Hit(chunk=chunk(page=3), score=0.25, dense_score=0.5)
        if request.explain:
            hit.explanation.CopyFrom(explanation)
        if request.window:
            hit.before.append(chunk("c0"))
        plan = retriever_pb2.SearchPlan(
            strategy=retriever_pb2.STRATEGY_HYBRID,
            fusion=retriever_pb2.FUSION_METHOD_RRF,
            weights=retriever_pb2.EngineWeights(dense=0.5, lexical=0.5),
            rerank=retriever_pb2.RERANK_MODE_AUTO,
            reason="a small corpus",
        )
        return retriever_pb2.SearchResponse(
            plan=plan if request.explain else None,
            cache=retriever_pb2.CACHE_OUTCOME_MISS,
            hits=[hit],
            strategy=retriever_pb2.STRATEGY_HYBRID,
            fusion=retriever_pb2.FUSION_METHOD_RRF,
            degraded=[common_pb2.Degradation(part="rerank", reason="RERANKER_UNAVAILABLE", message="fused order")],
            timings_ms={"total": 4.5},
        )

    async def GetCollectionModel(self, request: Any, context: Any) -> retriever_pb2.GetCollectionModelResponse:
        return retriever_pb2.GetCollectionModelResponse(model=self._model(request))

    async def ChangeCollectionModel(self, request: Any, context: Any) -> retriever_pb2.ChangeCollectionModelResponse:
        self.commands.append(request)
        if request.model == self.model:
            raise FailedPrecondition("it has this model already", reason="EMBEDDING_UNCHANGED")
        return retriever_pb2.ChangeCollectionModelResponse(model=self._model(request))

    async def EvaluateCollectionModel(
        self, request: Any, context: Any
    ) -> retriever_pb2.EvaluateCollectionModelResponse:
        self.commands.append(request)
        return retriever_pb2.EvaluateCollectionModelResponse(model=self._model(request))

    async def SwapCollectionModel(self, request: Any, context: Any) -> retriever_pb2.SwapCollectionModelResponse:
        self.commands.append(request)
        return retriever_pb2.SwapCollectionModelResponse(model=self._model(request))

    async def RollBackCollectionModel(
        self, request: Any, context: Any
    ) -> retriever_pb2.RollBackCollectionModelResponse:
        self.commands.append(request)
        return retriever_pb2.RollBackCollectionModelResponse(model=self._model(request))

    async def DropCollectionModel(self, request: Any, context: Any) -> retriever_pb2.DropCollectionModelResponse:
        self.commands.append(request)
        return retriever_pb2.DropCollectionModelResponse(model=self._model(request))

    def _model(self, request: Any) -> retriever_pb2.CollectionModel:
        quality = retriever_pb2.ModelQuality(ndcg_at_10=0.75, mrr_at_10=0.5)
        comparison = retriever_pb2.ModelComparison(before=quality, after=quality)
        amount = retriever_pb2.ModelAmount(document_count=2, chunk_count=7)
        return retriever_pb2.CollectionModel(
            collection_id=request.collection_id,
            model=self.model,
            stage=retriever_pb2.MODEL_STAGE_READY,
            other_model="new-model",
            whole=amount,
            in_model=amount,
            in_other_model=amount,
            searched={self.model: amount},
            evaluation=retriever_pb2.ModelEvaluation(
                before_model=self.model, after_model="new-model", question_count=3, vectors=comparison, both=comparison
            ),
            margin=0.02,
            available_models=[self.model, "new-model"],
        )

    async def FetchChunks(self, request: Any, context: Any) -> retriever_pb2.FetchChunksResponse:
        if request.document_id:
            window = retriever_pb2.ChunkWindow(chunk=chunk("c1"))
            return retriever_pb2.FetchChunksResponse(chunks=[window], document_chunk_count=1)
        if request.chunk_ids[0] != "c1":
            return retriever_pb2.FetchChunksResponse()
        return retriever_pb2.FetchChunksResponse(chunks=[self.window])


class FakeReranker(reranker_pb2_grpc.RerankerServiceServicer):
    """Its vectors have two dimensions: the length of the text, and 1."""

    def __init__(self) -> None:
        self.requests: list[reranker_pb2.EmbedRequest] = []

    async def GetModelInfo(self, request: Any, context: Any) -> reranker_pb2.GetModelInfoResponse:
        model = reranker_pb2.EmbeddingModel(name="small", dimension=2, window_tokens=8)
        return reranker_pb2.GetModelInfoResponse(embedding_model="small", dimension=2, embedding_models=[model])

    async def Embed(self, request: Any, context: Any) -> reranker_pb2.EmbedResponse:
        self.requests.append(request)
        vectors = array("f", [number for text in request.texts for number in (len(text), 1)]).tobytes()
        return reranker_pb2.EmbedResponse(
            vectors=vectors, dimension=2, model="small", token_counts=[len(text.split()) for text in request.texts]
        )


class FakeStore(store_pb2_grpc.StoreServiceServicer):
    def __init__(self) -> None:
        self.findings: list[store_pb2.Finding] = []

    async def GetCondition(self, request: Any, context: Any) -> store_pb2.GetConditionResponse:
        return store_pb2.GetConditionResponse(findings=self.findings)


class FakeMemory(memory_pb2_grpc.MemoryServiceServicer):
    def __init__(self) -> None:
        self.thread_ids: list[str] = []
        """Of the threads that are made next; one id for all of them where none is left."""
        self.failure: GroundworkError | None = None
        """Of each thread that is to be made."""
        self.gone = {"ffffffffffff"}
        self.question = "How long?"
        """What the thread's user said."""
        self.changes: list[Any] = []
        """Requests that change what is remembered."""

    async def ForgetAnswer(self, request: Any, context: Any) -> memory_pb2.ForgetAnswerResponse:
        return memory_pb2.ForgetAnswerResponse()

    def _thread(self, thread_id: str = "0123456789ab", title: str = "Notice") -> memory_pb2.Thread:
        return memory_pb2.Thread(thread_id=thread_id, title=title, created_at=AT, updated_at=AT, message_count=1)

    async def CreateThread(self, request: Any, context: Any) -> memory_pb2.CreateThreadResponse:
        if self.failure is not None:
            raise self.failure
        thread_id = self.thread_ids.pop(0) if self.thread_ids else "0123456789ab"
        return memory_pb2.CreateThreadResponse(thread=self._thread(thread_id, request.title))

    async def GetThread(self, request: Any, context: Any) -> memory_pb2.GetThreadResponse:
        if request.thread_id in self.gone:
            raise NotFound(f"there is no thread {request.thread_id}", reason="THREAD_NOT_FOUND")
        return memory_pb2.GetThreadResponse(thread=self._thread(request.thread_id))

    async def ListThreads(self, request: Any, context: Any) -> memory_pb2.ListThreadsResponse:
        return memory_pb2.ListThreadsResponse(threads=[self._thread()], next_page_token="more")

    async def RenameThread(self, request: Any, context: Any) -> memory_pb2.RenameThreadResponse:
        return memory_pb2.RenameThreadResponse(thread=self._thread(request.thread_id, request.title))

    async def DeleteThread(self, request: Any, context: Any) -> memory_pb2.DeleteThreadResponse:
        return memory_pb2.DeleteThreadResponse()

    async def GetHistory(self, request: Any, context: Any) -> memory_pb2.GetHistoryResponse:
        message = memory_pb2.Message(
            message_id="m1", role=memory_pb2.ROLE_USER, text=self.question, run_id=RUN_ID, at=AT
        )
        judged = {"method": "extractive", "answer_confidence": 0.5, "answer_status": "uncertain"}
        answer = memory_pb2.Message(message_id="m2", role=memory_pb2.ROLE_ASSISTANT, text="A day.", at=AT, **judged)
        answer.support_status = "of a newer version"
        answer.verification.sentences.add(sentence="A day.", verdict="contradicted")
        return memory_pb2.GetHistoryResponse(messages=[message, answer])

    def _fact(self, fact_id: str = FACT_ID) -> memory_pb2.Fact:
        kind, status = memory_pb2.FACT_KIND_PREFERENCE, memory_pb2.FACT_STATUS_ACTIVE
        return memory_pb2.Fact(
            fact_id=fact_id,
            text="Likes tea.",
            kind=kind,
            status=status,
            learnt_at=AT,
            said="I like tea",
            learnt_by="rules",
        )

    async def ListFacts(self, request: Any, context: Any) -> memory_pb2.ListFactsResponse:
        return memory_pb2.ListFactsResponse(facts=[self._fact()])

    async def GetFact(self, request: Any, context: Any) -> memory_pb2.GetFactResponse:
        return memory_pb2.GetFactResponse(fact=self._fact(request.fact_id))

    async def EditFact(self, request: Any, context: Any) -> memory_pb2.EditFactResponse:
        self.changes.append(request)
        return memory_pb2.EditFactResponse(fact=self._fact(request.fact_id))

    async def ForgetFacts(self, request: Any, context: Any) -> memory_pb2.ForgetFactsResponse:
        self.changes.append(request)
        return memory_pb2.ForgetFactsResponse(forgotten_count=len(request.fact_ids))

    async def GetMemory(self, request: Any, context: Any) -> memory_pb2.GetMemoryResponse:
        return memory_pb2.GetMemoryResponse(
            summary="Likes tea.", summary_by="rules", fact_count=1, enabled=True, notes_collection_id="notes"
        )

    async def PauseMemory(self, request: Any, context: Any) -> memory_pb2.PauseMemoryResponse:
        self.changes.append(request)
        return memory_pb2.PauseMemoryResponse()

    async def SearchMemory(self, request: Any, context: Any) -> memory_pb2.SearchMemoryResponse:
        hit = memory_pb2.MemoryHit(
            source=memory_pb2.MEMORY_SOURCE_FACT, text="Likes tea.", score=1.0, fact=self._fact(), at=AT
        )
        note = memory_pb2.MemoryHit(
            source=memory_pb2.MEMORY_SOURCE_NOTE,
            text="Oolong.",
            document_id="0badcafe",
            document_name="memories/tea.md",
        )
        return memory_pb2.SearchMemoryResponse(hits=[hit, note])


def event(seq: int, **payload: Any) -> run_pb.RunEvent:
    return run_pb.RunEvent(run_id=RUN_ID, seq=seq, at=AT, **payload)


def answered_run() -> list[run_pb.RunEvent]:
    """A whole run: 8 events."""
    citation = run_pb.Citation(
        number=1, document_id="d0000001", document_name="handbook.pdf", chunk_id="c1", text="Four weeks."
    )
    degraded = common_pb2.Degradation(part="rerank", reason="RERANKER_UNAVAILABLE", message="fused order")
    return [
        event(1, run=run_pb.RunStarted(mode=run_pb.RUN_MODE_QA, question="How long?", collection_ids=["default"])),
        event(2, retrieval=run_pb.Retrieval(degraded=[degraded], evidence=[run_pb.Evidence(number=1, chunk_id="c1")])),
        event(3, thinking=run_pb.Thinking(phase="answer", text="no model", degraded=degraded)),
        event(4, token=run_pb.Token(text="Four weeks ", offset=0)),
        event(5, token=run_pb.Token(text="[1].", offset=11)),
        event(
            6,
            answer=run_pb.Answer(
                text="Four weeks [1].",
                citations=[citation],
                support_status=run_pb.SUPPORT_STATUS_SUPPORTED,
                method="extractive",
            ),
        ),
        event(7, usage=run_pb.Usage(seconds=0.5)),
        event(8, done=run_pb.Done(status=run_pb.RUN_STATUS_COMPLETED)),
    ]


def tool(name: str, **arguments: Any) -> run_pb.ToolCall:
    call = run_pb.ToolCall(call_id=f"{RUN_ID}/{name}", name=name)
    call.arguments.update(arguments)
    return call


def approval(decision: Any = run_pb.APPROVAL_DECISION_PENDING) -> run_pb.Approval:
    """The question whether a mail may be sent, or what was decided about it."""
    asked = run_pb.Approval(
        approval_id="ap1", tool="send_email", arguments_hash="ab" * 32, decision=decision, expires_at=AT
    )
    asked.arguments.update({"to": "<b>ann@example.org", "retries": 2})
    return asked


def run_that_did_not_wait() -> list[run_pb.RunEvent]:
    """The same chat where the decision came before the run had nothing else to do: 10 events."""
    log = [each for each in run_with_tools() if each.WhichOneof("payload") != "parked"]
    for seq, each in enumerate(log, 1):
        each.seq = seq
    return log


def run_with_tools() -> list[run_pb.RunEvent]:
    """A chat that calls two tools, of which one must be allowed first. It asks at seq 4 and waits at 5: 11 events."""
    found = run_pb.ToolResult(call_id=f"{RUN_ID}/search", ok=True, summary="2 passages of handbook.pdf")
    found.duration.FromMilliseconds(1500)
    failed = run_pb.ToolResult(
        call_id=f"{RUN_ID}/send_email",
        error_reason="SMTP_REFUSED",
        error_message="the server takes no mail; ask its operator",
    )
    usage = run_pb.Usage(seconds=2.5, cost_usd=0.002, tool_calls=2)
    usage.steps.add(step="round1/search", seconds=1.5)
    return [
        event(1, run=run_pb.RunStarted(mode=run_pb.RUN_MODE_CHAT, question="Mail it", thread_id="0123456789ab")),
        event(2, tool=tool("search", query="notice", top_k=3), step="round1/search"),
        event(3, tool_result=found, step="round1/search"),
        event(4, approval=approval()),
        event(5, parked=run_pb.RunParked(waits_for="approval", approval_ids=["ap1"], until=AT)),
        event(6, approval=approval(run_pb.APPROVAL_DECISION_ALLOWED)),
        event(7, tool=tool("send_email", to="<b>ann@example.org", retries=2), step="round2/mail"),
        event(8, tool_result=failed, step="round2/mail"),
        event(9, answer=run_pb.Answer(text="It was not sent.", method="model")),
        event(10, usage=usage),
        event(11, done=run_pb.Done(status=run_pb.RUN_STATUS_COMPLETED)),
    ]


def _connection(asked: tools_pb2.SetConnectionRequest) -> tools_pb2.Connection:
    address = "https://api.github.com"
    return tools_pb2.Connection(
        service=asked.service, shared=asked.shared, account="ann-at-github", address=address, connected_at=AT
    )


class FakeTools(tools_pb2_grpc.ToolsServiceServicer):
    """Has one MCP server with one tool."""

    def __init__(self) -> None:
        self.approvals: list[tools_pb2.ApproveToolRequest] = []
        self.logins: list[Any] = []
        self.removed: list[str] = []
        self.connections: dict[tuple[str, bool], tools_pb2.SetConnectionRequest] = {}
        self.agreed = asyncio.Event()
        """The person has decided at the service."""
        self.agreed.set()
        self.has_refused = False

    async def ListConnections(self, request: Any, context: Any) -> tools_pb2.ListConnectionsResponse:
        found = [_connection(each) for each in self.connections.values()]
        return tools_pb2.ListConnectionsResponse(connections=found, services=["github", "mail"], logins=["github"])

    async def SetConnection(self, request: Any, context: Any) -> tools_pb2.SetConnectionResponse:
        self.connections[request.service, request.shared] = request
        return tools_pb2.SetConnectionResponse(connection=_connection(request))

    async def BeginConnectionLogin(self, request: Any, context: Any) -> tools_pb2.BeginConnectionLoginResponse:
        self.logins.append(request)
        return tools_pb2.BeginConnectionLoginResponse(
            user_code="WDJB-MJHT", verification_url="https://example.com/device", expires_at=AT, login="waiting"
        )

    async def FinishConnectionLogin(self, request: Any, context: Any) -> tools_pb2.FinishConnectionLoginResponse:
        self.logins.append(request)
        if request.login == "waiting":
            return tools_pb2.FinishConnectionLoginResponse(login="agreed")
        await self.agreed.wait()
        if self.has_refused:
            raise FailedPrecondition("GitHub was not connected: the person has refused it at the service")
        asked = tools_pb2.SetConnectionRequest(service=request.service)
        self.connections[asked.service, asked.shared] = asked
        made = _connection(asked)
        return tools_pb2.FinishConnectionLoginResponse(connection=made)

    async def DeleteConnection(self, request: Any, context: Any) -> tools_pb2.DeleteConnectionResponse:
        self.connections.pop((request.service, request.shared), None)
        return tools_pb2.DeleteConnectionResponse()

    def _server(self, name: str = "crm") -> tools_pb2.ToolServer:
        tool = tools_pb2.ServerTool(name="find", description="Finds a customer.", digest="ab" * 32, state="new")
        return tools_pb2.ToolServer(name=name, url="https://crm.example.com/mcp", tools=[tool])

    async def ListServers(self, request: Any, context: Any) -> tools_pb2.ListServersResponse:
        return tools_pb2.ListServersResponse(servers=[self._server()])

    async def SetServer(self, request: Any, context: Any) -> tools_pb2.SetServerResponse:
        return tools_pb2.SetServerResponse(server=self._server(request.name))

    async def DeleteServer(self, request: Any, context: Any) -> tools_pb2.DeleteServerResponse:
        self.removed.append(request.name)
        return tools_pb2.DeleteServerResponse()

    async def BeginLogin(self, request: Any, context: Any) -> tools_pb2.BeginLoginResponse:
        self.logins.append(request)
        return tools_pb2.BeginLoginResponse(authorization_url="https://login.example.com/authorize", expires_at=AT)

    async def FinishLogin(self, request: Any, context: Any) -> tools_pb2.FinishLoginResponse:
        self.logins.append(request)
        return tools_pb2.FinishLoginResponse(server=self._server(request.name))

    async def EndLogin(self, request: Any, context: Any) -> tools_pb2.EndLoginResponse:
        self.logins.append(request)
        return tools_pb2.EndLoginResponse()

    async def ApproveTool(self, request: Any, context: Any) -> tools_pb2.ApproveToolResponse:
        self.approvals.append(request)
        return tools_pb2.ApproveToolResponse(server=self._server(request.name))


class FakeOrchestrator(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Plays `log`. With `pause_after` it stops there (0: before the first event) until `resume` is set: the place to be
    killed."""

    def __init__(self) -> None:
        self.log = answered_run()
        self.status = run_pb.RUN_STATUS_RUNNING
        self.requests: list[run_pb.StartRunRequest] = []
        self.attached: list[int] = []
        self.input: list[run_pb.HistoryMessage] = []
        self.cancelled: list[str] = []
        self.was_cancelled = asyncio.Event()
        self.deleted: list[str] = []
        self.delete_failures: list[GroundworkError] = []
        self.forgotten_at: Any = None
        self.hung_up = asyncio.Event()
        self.start_failure: GroundworkError | None = None
        self.limits_failure: GroundworkError | None = None
        self.attach_failures: list[GroundworkError] = []
        self.pause_after: int | None = None
        self.paused = asyncio.Event()
        self.resume = asyncio.Event()
        self.repeat_last = False
        self.usage_requests: list[run_pb.GetUsageRequest] = []
        self.set_models: list[run_pb.SetModelRequest] = []
        self.limit_rules = [("subject:*", [run_pb.Limit(what="runs", amount=5, per="day")])]
        self.set_limits: list[run_pb.SetLimitRuleRequest] = []
        self.approval_pages: list[run_pb.ListApprovalsRequest] = []
        self.decisions: list[run_pb.ResolveApprovalRequest] = []
        self.decision_failure: GroundworkError | None = None
        """Set by each GetRun."""

    async def _play(self, after_seq: int) -> AsyncIterator[run_pb.RunEvent]:
        if self.pause_after == 0:
            await self.resume.wait()
        for each in self.log:
            if each.seq > after_seq:
                yield each
                if each.seq == self.pause_after:
                    self.paused.set()
                    try:
                        await self.resume.wait()
                    except asyncio.CancelledError:
                        self.hung_up.set()
                        raise

    async def StartRun(self, request: Any, context: Any) -> AsyncIterator[run_pb.StartRunResponse]:
        self.requests.append(request)
        if self.start_failure:
            raise self.start_failure
        async for each in self._play(0):
            yield run_pb.StartRunResponse(event=each)

    async def AttachRun(self, request: Any, context: Any) -> AsyncIterator[run_pb.AttachRunResponse]:
        self.attached.append(request.after_seq)
        if self.attach_failures:
            raise self.attach_failures.pop(0)
        after_seq = request.after_seq - 1 if self.repeat_last else request.after_seq
        async for each in self._play(after_seq):
            yield run_pb.AttachRunResponse(event=each)

    def _run(self, run_id: str) -> run_pb.Run:
        if run_id != RUN_ID:
            raise NotFound(f"there is no run {run_id}", reason="RUN_NOT_FOUND")
        return run_pb.Run(
            run_id=RUN_ID,
            mode=run_pb.RUN_MODE_QA,
            status=self.status,
            question="How long?",
            subject="ann",
            thread_id=self.log[0].run.thread_id,
            collection_ids=self.log[0].run.collection_ids,
            created_at=AT,
            forgotten_at=self.forgotten_at,
        )

    async def GetModels(self, request: Any, context: Any) -> run_pb.GetModelsResponse:
        provider = run_pb.ModelProvider(
            name="gpu",
            preset="vllm",
            models=["qwen"],
            state=run_pb.PROVIDER_STATE_HALF_OPEN,
            problem="gpu:8000 answers with HTTP 503; look at the server",
        )
        return run_pb.GetModelsResponse(operations=[self._models("answer")], providers=[provider])

    async def SwitchAgent(self, request: Any, context: Any) -> run_pb.SwitchAgentResponse:
        off = (
            []
            if request.enabled
            else [run_pb.SwitchedOffAgent(name=request.name, by=current_principal().subject, at=AT)]
        )
        return run_pb.SwitchAgentResponse(switched_off=off)

    async def SetModel(self, request: Any, context: Any) -> run_pb.SetModelResponse:
        if not request.HasField("model"):
            return run_pb.SetModelResponse(operation=self._models(request.operation))
        self.set_models.append(request)
        done = self._models(request.operation, request.model)
        done.set, done.set_by = True, current_principal().subject
        done.set_at.CopyFrom(AT)
        return run_pb.SetModelResponse(operation=done)

    async def GetUsage(self, request: Any, context: Any) -> run_pb.GetUsageResponse:
        self.usage_requests.append(request)
        total = run_pb.UsageRow(runs=2, prompt_tokens=100, completion_tokens=10, cost_usd=0.5)
        row = run_pb.UsageRow(key="2026-01-31" if request.group_by == "day" else "qwen")
        row.MergeFrom(total)
        return run_pb.GetUsageResponse(rows=[row], total=total)

    async def GetLimits(self, request: Any, context: Any) -> run_pb.GetLimitsResponse:
        if self.limits_failure is not None:
            raise self.limits_failure
        limit = run_pb.Limit(what="tokens", amount=1000, per="hour")
        return run_pb.GetLimitsResponse(limits=[run_pb.LimitState(whose="subject", limit=limit, used=10, free_at=AT)])

    async def ListLimitRules(self, request: Any, context: Any) -> run_pb.ListLimitRulesResponse:
        tenant_id = current_principal().tenant_id
        rules = [
            run_pb.LimitRule(whose=whose, limits=limits, tenant_id=tenant_id) for whose, limits in self.limit_rules
        ]
        return run_pb.ListLimitRulesResponse(rules=rules)

    async def SetLimitRule(self, request: Any, context: Any) -> run_pb.SetLimitRuleResponse:
        self.set_limits.append(request)
        return run_pb.SetLimitRuleResponse(rule=run_pb.LimitRule(whose=request.whose, limits=request.limits))

    def _approval(self) -> run_pb.PendingApproval:
        asked = run_pb.Approval(
            approval_id=APPROVAL_ID,
            tool="send_email",
            arguments_hash=ARGUMENTS_HASH,
            expires_at=AT,
            decision=run_pb.APPROVAL_DECISION_PENDING,
        )
        asked.arguments.update({"to": "bob@example.com"})
        return run_pb.PendingApproval(run_id=RUN_ID, subject="ann", approval=asked, yours_to_decide=True)

    async def ListApprovals(self, request: Any, context: Any) -> run_pb.ListApprovalsResponse:
        self.approval_pages.append(request)
        return run_pb.ListApprovalsResponse(approvals=[self._approval()], next_page_token="next")

    async def ResolveApproval(self, request: Any, context: Any) -> run_pb.ResolveApprovalResponse:
        self.decisions.append(request)
        if self.decision_failure is not None:
            raise self.decision_failure
        decided = self._approval()
        decided.approval.decision, decided.approval.decided_by = request.decision, current_principal().subject
        return run_pb.ResolveApprovalResponse(approval=decided)

    async def AnswerInput(self, request: Any, context: Any) -> run_pb.AnswerInputResponse:
        answered = run_pb.InputRequest(question="Which one?", state=run_pb.INPUT_STATE_ANSWERED, text=request.text)
        return run_pb.AnswerInputResponse(input=answered)

    def _models(self, operation: str, *first: run_pb.ModelName) -> run_pb.OperationModels:
        return run_pb.OperationModels(
            operation=operation, chain=[*first, run_pb.ModelName(provider="gpu", model="qwen")]
        )

    async def ListTools(self, request: Any, context: Any) -> run_pb.ListToolsResponse:
        mail = tools_pb2.Tool(
            name="send_email", description="Sends a mail.", needs_approval=True, effect=tools_pb2.TOOL_EFFECT_ONCE
        )
        mail.timeout.FromSeconds(5)
        mail.parameters.update({"type": "object", "properties": {"to": {"type": "string", "maxLength": 200}}})
        return run_pb.ListToolsResponse(tools=[mail])

    async def ListAgents(self, request: Any, context: Any) -> run_pb.ListAgentsResponse:
        lawyer = run_pb.Agent(name="legal", description="Reads contracts.", modes=["grounded"], makes_block=True)
        mode = run_pb.Mode(name="grounded", description="Asks an agent.", needs_collections=True, takes_agents=True)
        return run_pb.ListAgentsResponse(agents=[lawyer], modes=[mode])

    async def GetQuiz(self, request: Any, context: Any) -> run_pb.GetQuizResponse:
        question = run_pb.QuizQuestion(question_id="q1", kind="short_answer", difficulty="easy", question="When?")
        return run_pb.GetQuizResponse(quiz=run_pb.Quiz(quiz_id=request.quiz_id, title="Quiz", questions=[question]))

    async def GradeQuiz(self, request: Any, context: Any) -> run_pb.GradeQuizResponse:
        (given, *_) = request.answers
        result = run_pb.GradedAnswer(given=given.given, is_right=True, graded_by="words", answer="1889")
        question = run_pb.QuizQuestion(
            question_id=given.question_id, kind="short_answer", question="When?", result=result
        )
        quiz = run_pb.Quiz(quiz_id=request.quiz_id, title="Quiz", questions=[question], answered=1, right=1)
        return run_pb.GradeQuizResponse(quiz=quiz)

    async def GetRun(self, request: Any, context: Any) -> run_pb.GetRunResponse:
        run = self._run(request.run_id)
        run.input.extend(self.input)
        return run_pb.GetRunResponse(run=run)

    async def ListRuns(self, request: Any, context: Any) -> run_pb.ListRunsResponse:
        return run_pb.ListRunsResponse(runs=[self._run(RUN_ID)])

    async def DeleteRun(self, request: Any, context: Any) -> run_pb.DeleteRunResponse:
        if self.delete_failures:
            raise self.delete_failures.pop(0)
        self.deleted.append(request.run_id)
        return run_pb.DeleteRunResponse()

    async def CancelRun(self, request: Any, context: Any) -> run_pb.CancelRunResponse:
        self.cancelled.append(request.run_id)
        self.was_cancelled.set()
        return run_pb.CancelRunResponse(run=self._run(request.run_id))


NATS_DOWN = Unavailable("NATS does not answer", reason="NATS_UNAVAILABLE", retry_after_s=5)
