"""Callers at work on a channel, one call after the other, and what became of each call."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc

from kit.errors import GroundworkError
from kit.rpc.calls import WholeRequests
from kit.rpc.channel import Channel

_TIMEOUT_S = 300.0
_PIECE = b"x" * 10_000


class Callers:
    """Four kinds of calls at once: repeatable, not repeatable, with a streamed answer, with a streamed request."""

    def __init__(self, channel: Channel, *, of_each_kind: int = 3) -> None:
        self._memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self._ingest = ingest_pb2_grpc.IngestServiceStub(channel)
        self._orchestrator = orchestrator_pb2_grpc.OrchestratorServiceStub(channel)
        self._kinds: dict[str, Callable[[str], Awaitable[None]]] = {
            "read": self._read,
            "made": self._make,
            "run": self._run,
            "upload": self._upload,
        }
        self._of_each_kind = of_each_kind
        self._stopping = False
        self._progress = asyncio.Condition()
        self.answered: dict[str, list[str]] = {kind: [] for kind in self._kinds}
        self.failed: dict[str, list[GroundworkError]] = {kind: [] for kind in self._kinds}

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """They call within the block, and end the calls that they have in hand."""
        async with asyncio.TaskGroup() as group:
            for kind in self._kinds:
                for caller in range(self._of_each_kind):
                    group.create_task(self._work(kind, caller))
            try:
                yield
            finally:
                self._stopping = True

    async def have_called(self, times: int = 20) -> None:
        """Waits until so many more calls of each kind have come to their ends."""
        before = {kind: self._ended(kind) for kind in self._kinds}
        async with asyncio.timeout(_TIMEOUT_S), self._progress:
            await self._progress.wait_for(
                lambda: all(self._ended(kind) >= before[kind] + times for kind in self._kinds)
            )

    def _ended(self, kind: str) -> int:
        return len(self.answered[kind]) + len(self.failed[kind])

    async def _work(self, kind: str, caller: int) -> None:
        count = 0
        while not self._stopping:
            count += 1
            name = f"{kind}-{caller}-{count}"
            try:
                await self._kinds[kind](name)
            except GroundworkError as error:
                self.failed[kind].append(error)
            else:
                self.answered[kind].append(name)
            async with self._progress:
                self._progress.notify_all()

    async def _read(self, name: str) -> None:
        request = memory_pb2.GetThreadRequest(thread_id=name)
        answer = await self._memory.GetThread(request, timeout=_TIMEOUT_S)
        assert answer.thread.thread_id == name

    async def _make(self, name: str) -> None:
        answer = await self._memory.CreateThread(memory_pb2.CreateThreadRequest(title=name), timeout=_TIMEOUT_S)
        assert answer.thread.title == name

    async def _run(self, name: str) -> None:
        request = orchestrator_pb2.StartRunRequest(question=name)
        events = [each.event.seq async for each in self._orchestrator.StartRun(request, timeout=_TIMEOUT_S)]
        assert events == [1, 2, 3]

    async def _upload(self, name: str) -> None:
        answer = await self._ingest.UploadDocument(
            WholeRequests(_parts(name), lambda part: part.HasField("end")), timeout=_TIMEOUT_S
        )
        assert answer.document.name == name


async def _parts(name: str) -> AsyncIterator[ingest_pb2.UploadDocumentRequest]:
    yield ingest_pb2.UploadDocumentRequest(header=ingest_pb2.UploadHeader(name=name))
    for _ in range(3):
        await asyncio.sleep(0)  # as from a client's socket
        yield ingest_pb2.UploadDocumentRequest(data=_PIECE)
    yield ingest_pb2.UploadDocumentRequest(end=ingest_pb2.UploadEnd(size_bytes=3 * len(_PIECE)))
