"""A user of a source, over real NATS and real gRPC."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from google.protobuf.duration_pb2 import Duration
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.access.principal import ADMIN, Principal
from kit.testing.harness import open_test_channel
from tests.service.ingest.conftest import TIMEOUT_S, System

WAITING, SYNCING = ingest_pb2.SOURCE_STATE_WAITING, ingest_pb2.SOURCE_STATE_SYNCING
PAUSED, FAILED = ingest_pb2.SOURCE_STATE_PAUSED, ingest_pb2.SOURCE_STATE_FAILED
DAY = Duration(seconds=86_400)
_KEEPER = Principal("local", "tester", frozenset({ADMIN}))


class SourceUser:
    """Has one source, which fills the default collection, or one of the user's own."""

    def __init__(self, stub: ingest_pb2_grpc.IngestServiceStub) -> None:
        self.stub = stub
        self.source_id = ""
        self.collection_id = "default"

    async def make(self, **wanted: Any) -> ingest_pb2.Source:
        request = ingest_pb2.CreateSourceRequest(**{"collection_id": self.collection_id, "every": DAY, **wanted})
        made = (await self.stub.CreateSource(request, timeout=TIMEOUT_S)).source
        self.source_id = made.source_id
        return made

    async def own_collection(self) -> None:
        """Makes one, for the source to be made."""
        made = await self.stub.CreateCollection(ingest_pb2.CreateCollectionRequest(name="Papers"), timeout=TIMEOUT_S)
        self.collection_id = made.collection.collection_id

    async def get(self) -> ingest_pb2.Source:
        request = ingest_pb2.GetSourceRequest(source_id=self.source_id)
        return (await self.stub.GetSource(request, timeout=TIMEOUT_S)).source

    async def run(self, **asked: Any) -> None:
        request = ingest_pb2.RunSourceRequest(source_id=self.source_id, **asked)
        await self.stub.RunSource(request, timeout=TIMEOUT_S)

    async def change(self, *, secrets: Mapping[str, str]) -> None:
        given = ingest_pb2.SourceSecrets(values=secrets)
        request = ingest_pb2.UpdateSourceRequest(source_id=self.source_id, secrets=given)
        await self.stub.UpdateSource(request, timeout=TIMEOUT_S)

    async def pause(self) -> None:
        request = ingest_pb2.UpdateSourceRequest(source_id=self.source_id, paused=True)
        await self.stub.UpdateSource(request, timeout=TIMEOUT_S)

    async def until(self, holds: Callable[[ingest_pb2.Source], bool]) -> ingest_pb2.Source:
        async with asyncio.timeout(TIMEOUT_S):
            while not holds(found := await self.get()):
                await asyncio.sleep(0.05)
        return found

    async def synced(self, **asked: Any) -> ingest_pb2.Source:
        """The source behind a sync that begins now, once what it took is indexed."""
        before = (await self.get()).sync.ended_at
        await self.run(**asked)
        return await self.until(
            lambda it: it.state in (WAITING, FAILED) and it.sync.ended_at != before and not it.pending_count
        )

    async def readers(self, path: str) -> list[str]:
        """Subjects of the access list of a file's document."""
        request = ingest_pb2.GetDocumentAccessRequest(document_id=(await self.documents())[path].document_id)
        return list((await self.stub.GetDocumentAccess(request, timeout=TIMEOUT_S)).access.subjects)

    async def documents(self) -> Mapping[str, ingest_pb2.Document]:
        """By path at the source."""
        request = ingest_pb2.ListDocumentsRequest(collection_id=self.collection_id)
        found = (await self.stub.ListDocuments(request, timeout=TIMEOUT_S)).documents
        paths = [document.source.path for document in found]
        assert len(set(paths)) == len(paths), "a file has two documents"
        return dict(zip(paths, found, strict=True))


@asynccontextmanager
async def source_user(system: System) -> AsyncIterator[SourceUser]:
    """Beside a worker that indexes."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(system.worker())
        channel = await stack.enter_async_context(open_test_channel(system.api_address, _KEEPER))
        yield SourceUser(ingest_pb2_grpc.IngestServiceStub(channel))
