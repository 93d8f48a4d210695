"""A running retriever: real gRPC, real NATS, real engines, and a model server that answers from a fake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc

from kit.access.principal import Principal, current_principal
from kit.errors import Unavailable
from kit.testing.harness import free_port, open_test_channel, running_service, running_servicer
from services.retriever.app import run
from services.retriever.settings import RetrieverSettings
from tests.unit.retriever.fakes import DIMENSION, MODEL, embed

SERVICES = [pb.DESCRIPTOR.services_by_name["RetrieverService"]]
Context = grpc.aio.ServicerContext[Any, Any]


class FakeModelServer(reranker_pb2_grpc.RerankerServiceServicer):
    """RerankerService over hashed words; `is_down` makes every call fail."""

    def __init__(self) -> None:
        self.is_down = False
        self.tenants: list[str] = []
        self.seconds_left: list[float] = []
        self.forgotten: set[str] = set()
        self.has_forgotten = asyncio.Event()
        self.kinds: list[reranker_pb2.EmbedKind.ValueType] = []

    def _observe(self, context: Context) -> None:
        self.tenants.append(current_principal().tenant_id)
        self.seconds_left.append(context.time_remaining() or float("inf"))
        if self.is_down:
            raise Unavailable("the model server is down", reason="TEST_DOWN")

    async def Embed(self, request: reranker_pb2.EmbedRequest, context: Context) -> reranker_pb2.EmbedResponse:
        self._observe(context)
        self.kinds.append(request.kind)
        vectors = embed(request.texts).astype("<f4").tobytes()
        return reranker_pb2.EmbedResponse(vectors=vectors, dimension=DIMENSION, model=MODEL)

    async def Rerank(self, request: reranker_pb2.RerankRequest, context: Context) -> reranker_pb2.RerankResponse:
        self._observe(context)
        return reranker_pb2.RerankResponse(scores=[-float(len(text)) for text in request.passages], model="fake")

    async def ForgetTexts(
        self, request: reranker_pb2.ForgetTextsRequest, context: Context
    ) -> reranker_pb2.ForgetTextsResponse:
        self._observe(context)
        self.forgotten.update(request.content_hashes)
        self.has_forgotten.set()
        return reranker_pb2.ForgetTextsResponse()


@dataclass
class Retriever:
    """A stub of the running service as one principal."""

    stub: retriever_pb2_grpc.RetrieverServiceStub

    async def index(self, revision_id: str, texts: list[str], document_id: str = "d1", **fields: Any) -> int:
        async def parts() -> AsyncIterator[pb.IndexChunksRequest]:
            yield pb.IndexChunksRequest(header=index_header(document_id, revision_id))
            for start in range(0, len(texts), 3):
                batch = index_batch(document_id, revision_id, texts[start : start + 3], start, **fields)
                yield pb.IndexChunksRequest(batch=batch)

        return int((await self.stub.IndexChunks(parts(), timeout=60)).chunk_count)

    async def index_and_activate(
        self, revision_id: str, texts: list[str], activation: pb.Activation, document_id: str = "d1"
    ) -> pb.IndexChunksResponse:
        """In one message."""
        header = index_header(document_id, revision_id)
        header.first_batch.CopyFrom(index_batch(document_id, revision_id, texts))
        header.activate.CopyFrom(activation)
        return await self.stub.IndexChunks(iter([pb.IndexChunksRequest(header=header)]), timeout=60)

    async def activate(
        self,
        revision_id: str,
        number: int,
        chunk_count: int,
        document_id: str = "d1",
        languages: Sequence[str] = (),
    ) -> pb.ActivateRevisionResponse:
        request = pb.ActivateRevisionRequest(
            document_id=document_id,
            collection_id="default",
            revision_id=revision_id,
            revision_number=number,
            expected_chunk_count=chunk_count,
            languages=languages,
        )
        return await self.stub.ActivateRevision(request, timeout=60)

    async def publish(self, revision_id: str, texts: list[str], number: int = 1, **fields: Any) -> None:
        document_id = fields.get("document_id", "d1")
        languages = [fields["language"]] if "language" in fields else []
        await self.activate(revision_id, number, await self.index(revision_id, texts, **fields), document_id, languages)

    async def search(self, query_text: str, **fields: Any) -> pb.SearchResponse:
        request = pb.SearchRequest(queries=[query_text], collection_ids=["default"], **fields)
        return await self.stub.Search(request, timeout=60)

    async def texts(self, query_text: str) -> list[str]:
        return [hit.chunk.text for hit in (await self.search(query_text)).hits]


def index_header(document_id: str, revision_id: str) -> pb.IndexHeader:
    return pb.IndexHeader(
        document_id=document_id, collection_id="default", revision_id=revision_id, embedding_model=MODEL
    )


def index_batch(
    document_id: str, revision_id: str, texts: Sequence[str], first_ordinal: int = 0, **fields: Any
) -> pb.IndexBatch:
    chunks = [
        pb.Chunk(
            chunk_id=f"{revision_id}-{ordinal}",
            ordinal=ordinal,
            document_name=f"{document_id}.md",
            text=text,
            embedded_text=text,
            **fields,
        )
        for ordinal, text in enumerate(texts, first_ordinal)
    ]
    vectors = embed([chunk.embedded_text for chunk in chunks]).astype("<f4").tobytes()
    return pb.IndexBatch(chunks=chunks, vectors=vectors, dimension=DIMENSION)


@pytest.fixture
async def models() -> FakeModelServer:
    return FakeModelServer()


@pytest.fixture
async def models_address(models: FakeModelServer) -> AsyncIterator[str]:
    async with running_servicer(reranker_pb2_grpc.add_RerankerServiceServicer_to_server, models) as address:
        yield address


@pytest.fixture
def settings(nats_url: str, models_address: str, tmp_path: Path) -> RetrieverSettings:
    return RetrieverSettings(
        grpc_address=f"127.0.0.1:{free_port()}",
        nats_url=nats_url,
        reranker_address=models_address,
        data_dir=tmp_path,
    )


@pytest.fixture
async def address(settings: RetrieverSettings) -> AsyncIterator[str]:
    async with running_service(run, settings) as address:
        yield address


@pytest.fixture
async def local(address: str) -> AsyncIterator[Retriever]:
    async with retriever_as(address, "local") as retriever:
        yield retriever


@asynccontextmanager
async def retriever_as(address: str, tenant_id: str) -> AsyncIterator[Retriever]:
    """The service at `address` as another tenant, within the block."""
    async with open_test_channel(address, Principal(tenant_id, "tester"), SERVICES) as channel:
        yield Retriever(retriever_pb2_grpc.RetrieverServiceStub(channel))
