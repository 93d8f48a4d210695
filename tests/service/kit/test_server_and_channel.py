"""The server and the channel of kit, against each other, on real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc
from groundwork.reranker.v1 import reranker_pb2 as reranker_pb
from groundwork.reranker.v1 import reranker_pb2_grpc as reranker_rpc
from groundwork.retriever.v1 import retriever_pb2 as retriever_pb
from groundwork.retriever.v1 import retriever_pb2_grpc as retriever_rpc

from kit import deadline
from kit.access.keys import new_key
from kit.access.principal import Principal, current_principal, use_principal
from kit.access.tokens import TokenSigner
from kit.errors import DeadlineExceeded, Internal, NotFound, Unauthenticated, Unavailable
from kit.rpc.channel import Channel, open_channel
from kit.testing.harness import USER_SCOPES, free_port, make_signer, open_test_channel, running_servicer


class Servicer(rpc.MemoryServiceServicer):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def GetThread(self, request: pb.GetThreadRequest, context: Any) -> pb.GetThreadResponse:
        if request.thread_id == "missing":
            raise NotFound("thread missing does not exist", reason="THREAD_NOT_FOUND", thread_id="missing")
        if request.thread_id == "broken":
            raise ZeroDivisionError("secret internals")
        self.seen.append((current_principal(), deadline.remaining_s()))
        return pb.GetThreadResponse(thread=pb.Thread(thread_id=request.thread_id))


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Servicer, Channel]]:
    servicer = Servicer()
    async with (
        running_servicer(rpc.add_MemoryServiceServicer_to_server, servicer) as address,
        open_test_channel(address) as channel,
    ):
        yield servicer, channel


async def test_principal_and_deadline_arrive() -> None:
    async with served() as (servicer, channel):
        with use_principal(Principal("acme", "ann", frozenset({"query"}))):
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=60)
    principal, remaining_s = servicer.seen[0]
    assert principal == Principal("acme", "ann", frozenset({"query"}))
    assert 30 < remaining_s <= 60.5


async def test_error_arrives_as_the_same_class_with_reason_and_metadata() -> None:
    async with served() as (_, channel):
        with pytest.raises(NotFound, match="does not exist") as caught:
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="missing"), timeout=60)
    assert caught.value.reason == "THREAD_NOT_FOUND"
    assert caught.value.metadata == {"thread_id": "missing"}
    assert caught.value.retryable is False


async def test_unknown_error_shows_a_trace_id_and_no_internals() -> None:
    async with served() as (_, channel):
        with pytest.raises(Internal) as caught:
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="broken"), timeout=60)
    assert "secret" not in caught.value.message
    assert len(caught.value.metadata["trace_id"]) == 32


async def test_call_without_a_deadline_is_refused() -> None:
    async with served() as (_, channel):
        with pytest.raises(Internal, match="without a deadline"):
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"))


async def test_outgoing_call_gets_no_more_than_the_time_left() -> None:
    async with served() as (servicer, channel):
        deadline.set_remaining(0.5)
        try:
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=60)
            deadline.set_remaining(0.0)
            with pytest.raises(DeadlineExceeded):
                await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=60)
        finally:
            deadline.set_remaining(None)
    assert servicer.seen[0][1] <= 0.5


async def test_forged_token_is_refused() -> None:
    async with running_servicer(rpc.add_MemoryServiceServicer_to_server, Servicer()) as address:
        forger = make_signer(new_key("forger"))
        with use_principal(Principal("acme", "mallory")):
            async with open_channel(address, forger) as channel:
                with pytest.raises(Unauthenticated):
                    await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=60)


@asynccontextmanager
async def retriever_without_a_key(models_address: str) -> AsyncIterator[str]:
    """A service that answers only: for each search it asks the model server, in the name of its own caller."""

    class Retriever(retriever_rpc.RetrieverServiceServicer):
        async def Search(self, request: Any, context: Any) -> Any:
            await reranker_rpc.RerankerServiceStub(models).Embed(reranker_pb.EmbedRequest(), timeout=60)
            return retriever_pb.SearchResponse()

    async with (
        open_channel(models_address, TokenSigner(None)) as models,
        running_servicer(retriever_rpc.add_RetrieverServiceServicer_to_server, Retriever()) as address,
    ):
        yield address


async def test_a_service_without_a_key_asks_on_in_the_name_of_its_caller() -> None:
    callers = []

    class Models(reranker_rpc.RerankerServiceServicer):
        async def Embed(self, request: Any, context: Any) -> Any:
            callers.append(current_principal())
            return reranker_pb.EmbedResponse()

    async with (
        running_servicer(reranker_rpc.add_RerankerServiceServicer_to_server, Models()) as models,
        retriever_without_a_key(models) as address,
    ):
        search = retriever_pb.SearchRequest()
        with use_principal(Principal("acme", "ann", USER_SCOPES)):
            async with open_channel(address, make_signer(), passed_on_to=["reranker"]) as channel:
                await retriever_rpc.RetrieverServiceStub(channel).Search(search, timeout=60)
            async with open_channel(address, make_signer()) as channel:
                with pytest.raises(Unauthenticated, match=r"[Aa]udience"):
                    await retriever_rpc.RetrieverServiceStub(channel).Search(search, timeout=60)
    assert callers == [Principal("acme", "ann", USER_SCOPES)]


async def test_nobody_listening_is_unavailable() -> None:
    async with open_test_channel(f"127.0.0.1:{free_port()}") as channel:
        with pytest.raises(Unavailable):
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=2)
