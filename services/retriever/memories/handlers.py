"""The edge of the index of memories, gRPC: decode, call, encode. The owner is the verified principal."""

from typing import Any

import grpc
from groundwork.common.v1 import common_pb2
from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc

from kit.access.principal import current_principal
from services.retriever.errors import InvalidRequest
from services.retriever.memories.memory_index import FoundMemory, Memory, MemoryIndex, Owner
from services.retriever.models import Strategy

MEMORIES_PER_PUT_MAX = 256
ITEMS_PER_REMOVAL_MAX = 2_000
TEXT_CHARACTERS_MAX = 8_000
"""Of a text that is put: what is longer is cut, and found by its beginning."""
CONTEXT_CHARACTERS_MAX = 1_000
TOP_K_MAX = 50

Context = grpc.aio.ServicerContext[Any, Any]


class MemoriesServicer(retriever_pb2_grpc.RetrieverServiceServicer):
    """The methods of RetrieverService that are about memories."""

    def __init__(self, memories: MemoryIndex) -> None:
        self._memories = memories

    async def PutMemories(self, request: pb.PutMemoriesRequest, context: Context) -> pb.PutMemoriesResponse:
        if len(request.memories) > MEMORIES_PER_PUT_MAX:
            raise InvalidRequest(
                f"{len(request.memories)} memories at once; put at most {MEMORIES_PER_PUT_MAX} in a call"
            )
        memories = [_memory(each) for each in request.memories]
        await self._memories.put(_owner(), memories, known_only=request.known_only)
        return pb.PutMemoriesResponse()

    async def RemoveMemories(self, request: pb.RemoveMemoriesRequest, context: Context) -> pb.RemoveMemoriesResponse:
        if len(request.item_ids) > ITEMS_PER_REMOVAL_MAX:
            raise InvalidRequest(
                f"{len(request.item_ids)} memories at once; remove at most {ITEMS_PER_REMOVAL_MAX} in a call"
            )
        await self._memories.remove(_owner(), request.item_ids, request.groups)
        return pb.RemoveMemoriesResponse()

    async def SearchMemories(self, request: pb.SearchMemoriesRequest, context: Context) -> pb.SearchMemoriesResponse:
        if not request.query_text.strip() or not 0 < request.top_k <= TOP_K_MAX:
            raise InvalidRequest(f"a search of memories needs words, and top_k from 1 to {TOP_K_MAX}")
        answer = await self._memories.search(
            _owner(), request.query_text, request.top_k, request.source, _strategy(request)
        )
        return pb.SearchMemoriesResponse(
            found=[_found(each) for each in answer.found],
            counts=answer.counts,
            degraded=[
                common_pb2.Degradation(part=each.part, reason=each.reason, message=each.message)
                for each in answer.degraded
            ],
        )


def _strategy(request: pb.SearchMemoriesRequest) -> Strategy:
    if request.strategy == pb.STRATEGY_DENSE:
        return Strategy.DENSE
    return Strategy.LEXICAL if request.strategy == pb.STRATEGY_LEXICAL else Strategy.HYBRID


def _owner() -> Owner:
    principal = current_principal()
    return Owner(principal.tenant_id, principal.subject)


def _memory(message: pb.Memory) -> Memory:
    if not message.item_id or not message.text.strip() or message.source not in ("fact", "message"):
        raise InvalidRequest("a memory needs an id, words, and a source that is fact or message")
    text, context = message.text[:TEXT_CHARACTERS_MAX], message.context[:CONTEXT_CHARACTERS_MAX]
    return Memory(message.item_id, text, message.source, message.group, message.at_us, context)


def _found(found: FoundMemory) -> pb.FoundMemory:
    memory = found.memory
    return pb.FoundMemory(
        memory=pb.Memory(
            item_id=memory.item_id, text=memory.text, source=memory.source, group=memory.group, at_us=memory.at_us
        ),
        score=found.score,
        cosine=found.cosine,
    )
