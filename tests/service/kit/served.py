"""A server of a few contracts, in this process or, to be killed, in one of its own: `python -m tests.service.kit.served PORT`."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc

from kit.access.keys import KeySource, parse_public_keys
from kit.access.tokens import TokenVerifier
from kit.network.tls import CertificateSource
from kit.rpc.server import Server, end_when_draining, make_server

CONTRACTS = [
    contract
    for file in (ingest_pb2, memory_pb2, orchestrator_pb2)
    for contract in file.DESCRIPTOR.services_by_name.values()
]
WORK_S = 0.005


class Servicer(
    memory_pb2_grpc.MemoryServiceServicer,
    ingest_pb2_grpc.IngestServiceServicer,
    orchestrator_pb2_grpc.OrchestratorServiceServicer,
):
    """Answers each kind of call, and counts what was done for whom."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self.done: Counter[str] = Counter()
        self.shown: set[bytes] = set()
        """The certificates of those who called."""
        self._tell = tell

    def _do(self, name: str) -> None:
        self.done[name] += 1
        self._tell(name)

    async def CreateThread(
        self, request: memory_pb2.CreateThreadRequest, context: Any
    ) -> memory_pb2.CreateThreadResponse:
        await asyncio.sleep(WORK_S)
        self._do(request.title)
        return memory_pb2.CreateThreadResponse(thread=memory_pb2.Thread(title=request.title))

    async def GetThread(self, request: memory_pb2.GetThreadRequest, context: Any) -> memory_pb2.GetThreadResponse:
        self.shown.update(context.auth_context().get("x509_pem_cert", ()))
        await asyncio.sleep(WORK_S)
        return memory_pb2.GetThreadResponse(thread=memory_pb2.Thread(thread_id=request.thread_id))

    async def StartRun(
        self, request: orchestrator_pb2.StartRunRequest, context: Any
    ) -> AsyncIterator[orchestrator_pb2.StartRunResponse]:
        for seq in (1, 2, 3):
            await asyncio.sleep(WORK_S)
            yield orchestrator_pb2.StartRunResponse(event=orchestrator_pb2.RunEvent(seq=seq))
        self._do(request.question)

    async def UploadDocument(
        self, request_iterator: AsyncIterator[ingest_pb2.UploadDocumentRequest], context: Any
    ) -> ingest_pb2.UploadDocumentResponse:
        parts = [part async for part in request_iterator]
        assert parts[-1].WhichOneof("part") == "end"
        assert parts[-1].end.size_bytes == sum(len(part.data) for part in parts)
        name = parts[0].header.name
        self._do(name)
        return ingest_pb2.UploadDocumentResponse(document=ingest_pb2.Document(name=name))

    async def WatchDocuments(
        self, request: ingest_pb2.WatchDocumentsRequest, context: Any
    ) -> AsyncIterator[ingest_pb2.WatchDocumentsResponse]:
        end_when_draining()
        yield ingest_pb2.WatchDocumentsResponse(snapshot_complete=True)
        await asyncio.Event().wait()


async def serve(
    servicer: Servicer,
    public_keys: str,
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    certificates: CertificateSource | None = None,
    **options: Any,
) -> tuple[Server, int]:
    """Starts a server; 0 takes a free port. Returns the port."""
    verifier = TokenVerifier(KeySource(parse_public_keys, value=public_keys, setting="TEST"))
    server = make_server(verifier, **options)
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(servicer, server)
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(servicer, server)
    orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server(servicer, server)
    bound = server.bind(f"{host}:{port}", certificates)
    await server.start()
    return server, bound


async def _main() -> None:
    """Serves until killed; prints "ready", then what is done, a line each."""
    servicer = Servicer(lambda name: print(name, flush=True))
    server, _ = await serve(servicer, os.environ["TEST_PUBLIC_KEYS"], int(sys.argv[1]))
    print("ready", flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_main())
