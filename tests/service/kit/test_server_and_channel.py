"""The server and the channel of kit, against each other, on real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit import deadline
from kit.channel import Channel, open_channel
from kit.errors import DeadlineExceeded, Internal, NotFound, Unauthenticated, Unavailable
from kit.principal import Principal, TokenSigner, current_principal, use_principal
from kit.testing.harness import TEST_SECRET, free_port, open_test_channel, running_servicer


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
        with use_principal(Principal("acme", "ann", frozenset({"read"}))):
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=5)
    principal, remaining_s = servicer.seen[0]
    assert principal == Principal("acme", "ann", frozenset({"read"}))
    assert 4 < remaining_s <= 5


async def test_error_arrives_as_the_same_class_with_reason_and_metadata() -> None:
    async with served() as (_, channel):
        with pytest.raises(NotFound, match="does not exist") as caught:
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="missing"), timeout=5)
    assert caught.value.reason == "THREAD_NOT_FOUND"
    assert caught.value.metadata == {"thread_id": "missing"}
    assert caught.value.retryable is False


async def test_unknown_error_shows_a_trace_id_and_no_internals() -> None:
    async with served() as (_, channel):
        with pytest.raises(Internal) as caught:
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="broken"), timeout=5)
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
        forger = TokenSigner("another-secret-of-at-least-32-characters")
        with use_principal(Principal("acme", "mallory")):
            async with open_channel(address, forger) as channel:
                with pytest.raises(Unauthenticated):
                    await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=5)


async def test_expired_token_is_refused() -> None:
    past = TokenSigner(TEST_SECRET, clock=lambda: 1_000_000.0)
    with pytest.raises(Unauthenticated):
        TokenSigner(TEST_SECRET).verify(past.sign(Principal("acme", "ann")))


async def test_nobody_listening_is_unavailable() -> None:
    async with open_test_channel(f"127.0.0.1:{free_port()}") as channel:
        with pytest.raises(Unavailable):
            await rpc.MemoryServiceStub(channel).GetThread(pb.GetThreadRequest(thread_id="t"), timeout=2)
