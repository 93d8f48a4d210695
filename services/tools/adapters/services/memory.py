"""The memory service, asked in the name of the tool's caller."""

from collections.abc import Sequence
from datetime import UTC

from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit.rpc.channel import Channel
from services.tools.adapters.services.refusals import put_plainly
from services.tools.ports import Remembered

_TIMEOUT_S = 4.0
_SOURCES = {pb.MEMORY_SOURCE_FACT: "fact", pb.MEMORY_SOURCE_MESSAGE: "message", pb.MEMORY_SOURCE_NOTE: "note"}


class MemoryService:
    """Memory over the memory service's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._stub = rpc.MemoryServiceStub(channel)
        self._timeout_s = timeout_s

    async def search(self, query: str, top_k: int) -> Sequence[Remembered]:
        request = pb.SearchMemoryRequest(query_text=query, top_k=top_k)
        with put_plainly("the memory", "MEMORY_UNAVAILABLE"):
            answer = await self._stub.SearchMemory(request, timeout=self._timeout_s)
        return [
            Remembered(
                _SOURCES.get(hit.source, "unknown"),
                hit.text,
                hit.at.ToDatetime(tzinfo=UTC).isoformat() if hit.HasField("at") else "",
                hit.thread_id,
                hit.document_id,
                hit.document_name,
                hit.fact.fact_id,
                hit.message_id,
            )
            for hit in answer.hits
        ]
