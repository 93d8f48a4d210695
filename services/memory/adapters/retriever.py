"""MemoryIndex and MessageCopies by the retriever's index of memories, and Notes by its search of documents."""

from collections.abc import Sequence
from datetime import UTC, datetime

from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from kit.access.principal import Principal, current_principal, use_principal
from kit.rpc.channel import Channel
from kit.stores.collections import own_id
from services.memory.facts.ports import Found, FoundItem, FoundNote, MemoryItem
from services.memory.models import Owner

_PER_PUT, _PER_REMOVAL = 64, 1_000
TEXT_CHARACTERS_MAX = 8_000
"""Of a text in the index: what is longer is found by its beginning."""


class RetrieverMemoryIndex:
    """What is remembered, in the retriever."""

    def __init__(self, channel: Channel, *, search_timeout_s: float, write_timeout_s: float) -> None:
        self._stub = rpc.RetrieverServiceStub(channel)
        self._search_timeout_s = search_timeout_s
        self._write_timeout_s = write_timeout_s

    async def put(self, owner: Owner, items: Sequence[MemoryItem], *, known_only: bool = False) -> None:
        with use_principal(_principal(owner)):
            for start in range(0, len(items), _PER_PUT):
                memories = [_encode(item) for item in items[start : start + _PER_PUT] if item.text.strip()]
                if memories:
                    request = pb.PutMemoriesRequest(memories=memories, known_only=known_only)
                    await self._stub.PutMemories(request, timeout=self._write_timeout_s)

    async def remove(self, owner: Owner, item_ids: Sequence[str], groups: Sequence[str] = ()) -> None:
        with use_principal(_principal(owner)):
            for start in range(0, max(len(item_ids), 1), _PER_REMOVAL):
                request = pb.RemoveMemoriesRequest(
                    item_ids=item_ids[start : start + _PER_REMOVAL], groups=groups if not start else ()
                )
                await self._stub.RemoveMemories(request, timeout=self._write_timeout_s)

    async def search(self, owner: Owner, query_text: str, limit: int, source: str = "") -> Found:
        request = pb.SearchMemoriesRequest(query_text=query_text, top_k=limit, source=source)
        with use_principal(_principal(owner)):
            answer = await self._stub.SearchMemories(request, timeout=self._search_timeout_s)
        degraded = [(each.part, each.reason, each.message) for each in answer.degraded]
        return Found([_decode(each) for each in answer.found], dict(answer.counts), degraded)


class RetrieverNotes:
    """Notes of the caller in hand, asked for in their name."""

    def __init__(self, channel: Channel, collection: str, local: Principal, *, timeout_s: float) -> None:
        """`collection`: the name. Each user has a collection of that name; the `local` user the one with the plain id."""
        self._stub = rpc.RetrieverServiceStub(channel)
        self._collection = collection
        self._local = local
        self._timeout_s = timeout_s

    def collection_id(self) -> str:
        return own_id(self._collection, current_principal(), self._local)

    async def search(self, query_text: str, limit: int) -> Sequence[FoundNote]:
        request = pb.SearchRequest(
            queries=[query_text],
            collection_ids=[self.collection_id()],
            top_k=limit,
            rerank=pb.RERANK_MODE_OFF,  # it takes longer than the hints of a message may
        )
        answer = await self._stub.Search(request, timeout=self._timeout_s)
        return [
            FoundNote(
                hit.chunk.document_id,
                hit.chunk.document_name,
                hit.chunk.text,
                hit.dense_score if hit.HasField("dense_score") else None,
            )
            for hit in answer.hits
        ]


def _principal(owner: Owner) -> Principal:
    return Principal(owner.tenant_id, owner.subject)


def _encode(item: MemoryItem) -> pb.Memory:
    at_us = round(item.at.timestamp() * 1e6) if item.at else 0
    return pb.Memory(
        item_id=item.item_id,
        text=item.text[:TEXT_CHARACTERS_MAX],
        source=item.source,
        group=item.group,
        at_us=at_us,
        context=item.context,
    )


def _decode(found: pb.FoundMemory) -> FoundItem:
    memory = found.memory
    return FoundItem(
        memory.item_id,
        memory.source,
        memory.text,
        memory.group,
        found.score,
        found.cosine if found.HasField("cosine") else None,
        datetime.fromtimestamp(memory.at_us / 1e6, UTC) if memory.at_us else None,
    )
