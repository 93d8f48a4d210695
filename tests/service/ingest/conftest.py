"""Both ingest processes in this process, over real NATS and real gRPC."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2_grpc

from kit.testing.harness import TEST_PRINCIPAL, free_port, open_test_channel, running_service, running_servicer
from services.ingest import app
from services.ingest.settings import IngestSettings
from tests.service.ingest.backends import FakeReranker, FakeRetriever

TIMEOUT_S = 60.0
FOREVER_S = 3600.0
"""No lease ends by itself, however long the machine stands still."""


@dataclass
class System:
    """The API's stub, its neighbours, and a way to run workers."""

    stub: Any
    reranker: FakeReranker
    retriever: FakeRetriever
    settings: IngestSettings
    api_address: str

    @asynccontextmanager
    async def worker(self, **changes: Any) -> AsyncIterator[None]:
        """A worker with these settings changed."""
        settings = self.settings.model_copy(update={"grpc_address": f"127.0.0.1:{free_port()}", **changes})
        async with running_service(app.run_worker, settings):
            yield

    async def upload(self, data: bytes, name: str, **header: Any) -> ingest_pb2.Document:
        parts = [
            ingest_pb2.UploadDocumentRequest(
                header=ingest_pb2.UploadHeader(**{"collection_id": "default", "name": name, **header})
            )
        ]
        parts += [ingest_pb2.UploadDocumentRequest(data=data[i : i + 65536]) for i in range(0, len(data), 65536)]
        parts.append(ingest_pb2.UploadDocumentRequest(end=ingest_pb2.UploadEnd(size_bytes=len(data))))
        return (await self.stub.UploadDocument(iter(parts), timeout=TIMEOUT_S)).document

    async def until(self, document_id: str, *statuses: int) -> ingest_pb2.Document:
        """Follows a document until it has one of the states."""
        request = ingest_pb2.WatchDocumentsRequest(document_ids=[document_id])
        changes = self.stub.WatchDocuments(request, timeout=TIMEOUT_S)
        try:
            async for change in changes:
                if change.document.status in statuses:
                    return change.document
        finally:
            await changes.aclose()
        raise AssertionError("the watch ended")


@pytest.fixture(autouse=True)
def _own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several workers in one process: each with instruments of its own."""
    real = app.Metrics
    monkeypatch.setattr(app, "Metrics", lambda: real(prometheus_client.CollectorRegistry()))


@pytest.fixture
async def system(nats_url: str, tmp_path: Path) -> AsyncIterator[System]:
    reranker, retriever = FakeReranker(), FakeRetriever()
    async with AsyncExitStack() as stack:
        reranker_address = await stack.enter_async_context(
            running_servicer(reranker_pb2_grpc.add_RerankerServiceServicer_to_server, reranker)
        )
        retriever_address = await stack.enter_async_context(
            running_servicer(retriever_pb2_grpc.add_RetrieverServiceServicer_to_server, retriever)
        )
        settings = IngestSettings(
            grpc_address=f"127.0.0.1:{free_port()}",
            nats_url=nats_url,
            reranker_address=reranker_address,
            retriever_address=retriever_address,
            data_dir=tmp_path,
            local_subject=TEST_PRINCIPAL.subject,
            upload_limit_bytes=5 * 1024 * 1024,
            ingest_lease_ttl_s=FOREVER_S,
            parse_time_limit_s=20.0,
            egress_allowed_networks="127.0.0.0/8",  # servers of sources
        )
        address = await stack.enter_async_context(running_service(app.run_api, settings))
        channel = await stack.enter_async_context(open_test_channel(address))
        stub = ingest_pb2_grpc.IngestServiceStub(channel)
        yield System(stub, reranker, retriever, settings, address)
