"""Evidence from the retriever service, and whole documents, which the ingest service lists."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from kit.errors import Cancelled, DeadlineExceeded, NotFound, Unavailable
from kit.rpc.channel import Channel
from services.orchestrator.adapters.codec import read
from services.orchestrator.errors import LibrarySilent, SearchSilent
from services.orchestrator.log.events import (
    BoundingBox,
    Degradation,
    DroppedPassage,
    Evidence,
    Origin,
    Retrieval,
    StageRank,
)
from services.orchestrator.models import ReadableDocument, SearchQuery

_STRATEGIES = {pb.STRATEGY_DENSE: "dense", pb.STRATEGY_LEXICAL: "lexical", pb.STRATEGY_HYBRID: "hybrid"}
_DOCUMENTS_A_PAGE = 100
_CHUNKS_A_CALL = 50
"""Chunks of PDFs carry the boxes of their lines: fifty of them are a few hundred kilobytes."""
_ORIGIN = tuple(field.name for field in fields(Origin))
_NUMBERS = {name: number for number, name in _STRATEGIES.items()}


class RetrieverSearcher:
    """Searcher over the retriever's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float) -> None:
        self._stub = rpc.RetrieverServiceStub(channel)
        self._timeout_s = timeout_s

    async def search(self, query: SearchQuery) -> Retrieval:
        request = pb.SearchRequest(
            queries=query.queries,
            collection_ids=query.collection_ids,
            filter=pb.Filter(
                document_ids=query.document_ids,
                metadata=[pb.MetadataCondition(key=key, values=values) for key, values in query.metadata.items()],
                date_from=_timestamp(query.date_from),
                date_to=_timestamp(query.date_to),
            ),
            top_k=query.top_k,
            strategy=_NUMBERS.get(query.strategy, pb.STRATEGY_UNSPECIFIED),
            must_phrases=query.must_phrases,
            explain=query.explain,
            rerank=pb.RERANK_MODE_UNSPECIFIED if query.reranks else pb.RERANK_MODE_OFF,
            weights=pb.EngineWeights(**query.weights) if query.weights else None,
        )
        try:
            response = await self._stub.Search(request, timeout=self._timeout_s)
        except (Unavailable, DeadlineExceeded, Cancelled) as error:  # Cancelled is what a stopping server says
            raise SearchSilent("the search service does not answer; ask again in a minute") from error
        return Retrieval(
            evidence=tuple(evidence_of(number, hit) for number, hit in enumerate(response.hits, start=1)),
            degraded=tuple(Degradation(each.part, each.reason, each.message) for each in response.degraded),
            timings_ms=dict(response.timings_ms),
            strategy=_STRATEGIES.get(response.strategy, ""),
            dropped=tuple(DroppedPassage(each.chunk_id, "", each.stage) for each in response.dropped),
        )


class ServiceLibrary:
    """Library over the contracts of both services."""

    def __init__(self, ingest: Channel, retriever: Channel, *, timeout_s: float) -> None:
        self._documents = ingest_pb2_grpc.IngestServiceStub(ingest)
        self._chunks = rpc.RetrieverServiceStub(retriever)
        self._timeout_s = timeout_s

    async def documents(
        self, collection_ids: Sequence[str], document_ids: Sequence[str], most: int
    ) -> Sequence[ReadableDocument]:
        with _in_our_words():
            found: list[ingest_pb2.Document] = []
            if document_ids:
                for document_id in document_ids:
                    found += await self._named(document_id, collection_ids)
            else:
                for collection_id in collection_ids:
                    found += await self._list_documents(collection_id, most - len(found))
        return [_document(each) for each in found if each.report.chunk_count and each.revision_id][:most]

    async def _named(self, document_id: str, collection_ids: Sequence[str]) -> Sequence[ingest_pb2.Document]:
        document = await self._got(document_id)
        return [document] if document is not None and document.collection_id in collection_ids else []

    async def _got(self, document_id: str) -> ingest_pb2.Document | None:
        """None of one that does not exist, or that the principal may not read."""
        try:
            request = ingest_pb2.GetDocumentRequest(document_id=document_id)
            return (await self._documents.GetDocument(request, timeout=self._timeout_s)).document
        except NotFound:
            return None

    async def _list_documents(self, collection_id: str, most: int) -> Sequence[ingest_pb2.Document]:
        """Those of a collection, by name."""
        found: list[ingest_pb2.Document] = []
        token = ""
        while len(found) < most:
            page = common_pb2.PageRequest(page_size=_DOCUMENTS_A_PAGE, page_token=token)
            request = ingest_pb2.ListDocumentsRequest(collection_id=collection_id, page=page)
            response = await self._documents.ListDocuments(request, timeout=self._timeout_s)
            found += response.documents
            token = response.next_page_token
            if not token:
                break
        return sorted(found[:most], key=lambda document: (document.name, document.document_id))

    async def chunks(self, document_id: str) -> Sequence[Evidence]:
        found: list[Evidence] = []
        with _in_our_words():
            while True:
                request = pb.FetchChunksRequest(
                    document_id=document_id, first_ordinal=len(found), chunk_count=_CHUNKS_A_CALL
                )
                response = await self._chunks.FetchChunks(request, timeout=self._timeout_s)
                for window in response.chunks:
                    found.append(evidence_of(len(found) + 1, pb.Hit(chunk=window.chunk)))
                if not response.chunks or len(found) >= response.document_chunk_count:
                    return found

    async def readable(self, document_ids: Sequence[str]) -> Set[str]:
        with _in_our_words():
            found = [await self._got(each) for each in document_ids]
        return {each.document_id for each in found if each is not None}

    async def around(self, chunk_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        request = pb.FetchChunksRequest(chunk_ids=chunk_ids, window=1)
        with _in_our_words():
            response = await self._chunks.FetchChunks(request, timeout=self._timeout_s)
        return {
            window.chunk.chunk_id: tuple(
                evidence_of(0, pb.Hit(chunk=chunk)) for chunk in (*window.before, *window.after)
            )
            for window in response.chunks
        }


def evidence_of(number: int, hit: pb.Hit) -> Evidence:
    chunk = hit.chunk
    return Evidence(
        number=number,
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        document_name=chunk.document_name,
        text=chunk.text,
        page=chunk.page,
        heading_path=tuple(chunk.heading_path),
        score=hit.score,
        dense_score=hit.dense_score if hit.HasField("dense_score") else None,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        bounding_boxes=tuple(read(box, BoundingBox) for box in chunk.bounding_boxes),
        collection_id=chunk.collection_id,
        origin=_origin(chunk.metadata),
        ranks=tuple(_ranks(hit)),
    )


def _timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def _ranks(hit: pb.Hit) -> Iterator[StageRank]:
    """Where the hit stood at each stage; nothing unless the search was to explain."""
    if not hit.HasField("explanation"):
        return
    explained = hit.explanation
    for stage, rank, score in (
        ("dense", explained.dense_rank, explained.dense_score),
        ("lexical", explained.lexical_rank, explained.lexical_score),
        ("fused", explained.fused_rank, explained.fused_score),
        ("rerank", explained.rerank_rank, explained.rerank_score),
        ("diversity", explained.diversity_rank, hit.score),
    ):
        if rank:  # from 1; 0 where the stage did not return it
            yield StageRank(stage, rank, score)


def _origin(metadata: Mapping[str, str]) -> Origin | None:
    known = {name: metadata[name] for name in _ORIGIN if metadata.get(name)}
    return Origin(**known) if known else None


@contextmanager
def _in_our_words() -> Iterator[None]:
    """A user reads the message: gRPC's own names addresses and frames."""
    try:
        yield
    except (Unavailable, DeadlineExceeded, Cancelled) as error:  # Cancelled is what a stopping server says
        raise LibrarySilent("the documents cannot be read now; ask again in a minute") from error


def _document(message: ingest_pb2.Document) -> ReadableDocument:
    source = message.name.partition("/")[0] if message.HasField("source") else ""
    return ReadableDocument(message.document_id, message.name, message.revision_id, message.report.chunk_count, source)
