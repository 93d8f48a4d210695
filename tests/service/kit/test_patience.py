"""Calls while no server is there, while one stops, and while one is full."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import grpc
import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc

from kit.errors import Internal, ResourceExhausted, Unauthenticated, Unavailable
from kit.rpc.server import make_server
from kit.testing.harness import free_port, make_verifier, open_test_channel, public_keys_text
from tests.service.kit.name_server import name_server
from tests.service.kit.served import Servicer, serve

NEVER_S = 600.0
"""Longer than any test."""


class ThisOneFull(ResourceExhausted):
    is_of_one_replica = True


class Occupied(Servicer):
    """Refuses, and counts how often."""

    def __init__(self, refusal: type[ResourceExhausted] | None = None) -> None:
        super().__init__()
        self.refusal = refusal
        self.refused = 0
        self.entered = asyncio.Event()
        self.holding: asyncio.Event | None = None

    def _check(self) -> None:
        if self.refusal is not None:
            self.refused += 1
            raise self.refusal("as much as I can take")

    async def CreateThread(self, request: pb.CreateThreadRequest, context: Any) -> pb.CreateThreadResponse:
        self._check()
        self.entered.set()
        if self.holding is not None:
            await self.holding.wait()
        return await super().CreateThread(request, context)

    async def StartRun(
        self, request: orchestrator_pb2.StartRunRequest, context: Any
    ) -> AsyncIterator[orchestrator_pb2.StartRunResponse]:
        self._check()
        async for response in super().StartRun(request, context):
            yield response


@asynccontextmanager
async def serving(*servicers: Servicer) -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        ports = []
        for servicer in servicers:
            server, port = await serve(servicer, public_keys_text())
            stack.push_async_callback(server.stop, None)
            ports.append(port)
        yield ",".join(f"127.0.0.1:{port}" for port in ports)


async def make(channel: Any, title: str = "t", **options: Any) -> None:
    await rpc.MemoryServiceStub(channel).CreateThread(
        pb.CreateThreadRequest(title=title), **{"timeout": NEVER_S, **options}
    )


async def test_a_call_that_begins_before_its_server_waits_for_it() -> None:
    port, servicer = free_port(), Servicer()
    async with open_test_channel(f"127.0.0.1:{port}", patience_s=NEVER_S) as channel:
        calling = asyncio.ensure_future(make(channel))
        stream = orchestrator_pb2_grpc.OrchestratorServiceStub(channel).StartRun(
            orchestrator_pb2.StartRunRequest(), timeout=NEVER_S
        )
        streaming = asyncio.ensure_future(anext(stream))
        async with asyncio.timeout(60):
            while (state := channel.get_state()).name != "TRANSIENT_FAILURE":
                await channel.wait_for_state_change(state)
        server, _ = await serve(servicer, public_keys_text(), port)
        await calling
        assert (await streaming).event.seq == 1
        await stream.aclose()
        await server.stop(None)


@pytest.mark.parametrize("patience_s", [0.0, 0.2])
async def test_a_server_that_stays_away_is_unavailable(patience_s: float) -> None:
    async with open_test_channel(f"127.0.0.1:{free_port()}", patience_s=patience_s) as channel:
        for _ in range(3):
            with pytest.raises(Unavailable):
                await make(channel)


async def test_the_deadline_of_a_call_bounds_its_patience_and_the_server_is_to_blame() -> None:
    async with open_test_channel(f"127.0.0.1:{free_port()}", patience_s=NEVER_S) as channel:
        with pytest.raises(Unavailable):
            await make(channel, timeout=2.0)


async def test_who_only_wants_to_know_whether_a_server_is_there_does_not_wait() -> None:
    async with open_test_channel(f"127.0.0.1:{free_port()}", patience_s=NEVER_S) as channel:
        with pytest.raises(Unavailable):
            await make(channel, wait_for_ready=False)


@pytest.mark.parametrize(("apart", "is_served"), [(3, True), (NEVER_S, False)])
async def test_a_call_waits_for_a_moment_while_clocks_are_being_set(apart: float, is_served: bool) -> None:
    """The server's clock was set ahead of the caller's, and is that of the third attempt again; or it stays so."""
    servicer, looked = Servicer(), 0

    def clock() -> float:
        nonlocal looked
        looked += 1
        return time.time() + (NEVER_S if looked < apart else 0.0)

    server = make_server(make_verifier(clock=clock))
    rpc.add_MemoryServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with open_test_channel(f"127.0.0.1:{port}") as channel:
            if is_served:
                await make(channel)
            else:
                with pytest.raises(Unauthenticated, match="expired") as caught:
                    await make(channel)
                assert (caught.value.reason, caught.value.metadata) == ("TOKEN_EXPIRED", {})
    finally:
        await server.stop(None)
    assert len(servicer.done) == is_served
    assert looked >= 3


async def test_a_full_replica_is_passed_over_for_one_with_room() -> None:
    full, free = Occupied(ThisOneFull), Occupied()
    async with serving(full, free) as address, open_test_channel(address) as channel:
        runs = orchestrator_pb2_grpc.OrchestratorServiceStub(channel)
        for number in range(10):
            await make(channel, f"t{number}")
            request = orchestrator_pb2.StartRunRequest(question=f"q{number}")
            assert len([each async for each in runs.StartRun(request, timeout=NEVER_S)]) == 3
    assert len(free.done) == 20
    assert full.refused > 0


@pytest.mark.parametrize(("replicas", "most"), [(1, 1), (2, 6)])
async def test_when_all_are_full_the_caller_is_told_after_a_few_tries(replicas: int, most: int) -> None:
    full = [Occupied(ThisOneFull) for _ in range(replicas)]
    async with serving(*full) as address, open_test_channel(address) as channel:
        with pytest.raises(ResourceExhausted) as caught:
            await make(channel)
    assert caught.value.metadata == {}
    assert replicas <= sum(each.refused for each in full) <= most


async def test_a_refusal_that_holds_everywhere_is_told_at_once() -> None:
    servicers = [Occupied(ResourceExhausted), Occupied(ResourceExhausted)]
    async with serving(*servicers) as address, open_test_channel(address) as channel:
        with pytest.raises(ResourceExhausted):
            await make(channel)
    assert sum(each.refused for each in servicers) == 1


async def test_a_call_that_was_cut_off_is_not_made_again_elsewhere() -> None:
    held, other = Occupied(), Occupied()
    held.holding = asyncio.Event()
    other.holding = held.holding
    servers = [await serve(each, public_keys_text()) for each in (held, other)]
    address = ",".join(f"127.0.0.1:{port}" for _, port in servers)
    async with open_test_channel(address, patience_s=NEVER_S) as channel:
        calling = asyncio.ensure_future(make(channel))
        entered = [asyncio.ensure_future(each.entered.wait()) for each in (held, other)]
        await asyncio.wait(entered, return_when=asyncio.FIRST_COMPLETED)
        for each in entered:
            each.cancel()
        stopped = servers.pop(0 if held.entered.is_set() else 1)
        await stopped[0].stop(0)
        with pytest.raises(Unavailable) as caught:
            await calling
    assert caught.value.reason == "SERVER_STOPPED"
    assert held.entered.is_set() != other.entered.is_set()
    await servers[0][0].stop(None)


async def test_a_call_is_not_made_again_elsewhere_when_the_stop_of_its_server_is_cut_short() -> None:
    """As by a process that fails while it drains."""
    held, other = Occupied(), Servicer()
    held.holding = asyncio.Event()
    server, port = await serve(held, public_keys_text())
    async with open_test_channel(f"127.0.0.1:{port}", patience_s=NEVER_S) as channel:
        calling = asyncio.ensure_future(make(channel))
        await held.entered.wait()
        stopping = asyncio.ensure_future(server.stop(NEVER_S))
        await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.wait({stopping})
        successor, _ = await serve(other, public_keys_text(), port)
        with pytest.raises(Unavailable) as caught:
            await calling
    assert caught.value.reason == "SERVER_STOPPED"
    assert not other.done
    await successor.stop(None)


class Stubborn(Occupied):
    """Goes on when it is told to end."""

    async def CreateThread(self, request: pb.CreateThreadRequest, context: Any) -> pb.CreateThreadResponse:
        assert self.holding is not None
        self.entered.set()
        while not self.holding.is_set():
            with suppress(asyncio.CancelledError):
                await self.holding.wait()
        return await Servicer.CreateThread(self, request, context)


async def test_caller_of_a_handler_that_does_not_end_is_told_by_the_server_that_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kit.rpc.server._CUT_S", 0.1)
    held, other = Stubborn(), Servicer()
    held.holding = asyncio.Event()
    server, port = await serve(held, public_keys_text())
    async with open_test_channel(f"127.0.0.1:{port}", patience_s=NEVER_S) as channel:
        calling = asyncio.ensure_future(make(channel))
        await held.entered.wait()
        await server.stop(0)
        successor, _ = await serve(other, public_keys_text(), port)
        with pytest.raises(Unavailable) as caught:
            await calling
    assert caught.value.reason == "SERVER_STOPPED"
    assert not other.done
    held.holding.set()
    await successor.stop(None)


async def test_call_that_its_server_has_taken_in_and_never_begun_is_made_again() -> None:
    class Forgetful(grpc.GenericRpcHandler):
        """As gRPC now and then when a server begins to stop: it takes the call, and no handler of ours hears of it."""

        taken = asyncio.Event()

        def service(self, _: object) -> grpc.RpcMethodHandler:
            async def nothing(*_: object) -> None:
                self.taken.set()
                await asyncio.Event().wait()

            return grpc.unary_unary_rpc_method_handler(nothing)

    forgetful = grpc.aio.server(handlers=[Forgetful()])
    port = forgetful.add_insecure_port("127.0.0.1:0")
    await forgetful.start()
    other = Servicer()
    async with open_test_channel(f"127.0.0.1:{port}", patience_s=NEVER_S) as channel:
        calling = asyncio.ensure_future(make(channel, "once"))
        await Forgetful.taken.wait()
        await forgetful.stop(None)
        successor, _ = await serve(other, public_keys_text(), port)
        await calling
    assert other.done == {"once": 1}
    await successor.stop(None)


async def test_a_watch_ends_as_soon_as_its_server_stops() -> None:
    server, port = await serve(Servicer(), public_keys_text())
    async with open_test_channel(f"127.0.0.1:{port}") as channel:
        watch = ingest_pb2_grpc.IngestServiceStub(channel).WatchDocuments(
            ingest_pb2.WatchDocumentsRequest(), timeout=NEVER_S
        )
        assert (await anext(watch)).snapshot_complete
        stopping = asyncio.ensure_future(server.stop(NEVER_S))
        with pytest.raises(Unavailable):
            await anext(watch)
        await stopping


async def test_a_server_that_is_added_to_a_name_is_found_when_connections_are_renewed() -> None:
    first, added = Servicer(), Servicer()
    async with name_server() as (names, resolver), AsyncExitStack() as stack:
        server, port = await serve(first, public_keys_text(), max_connection_age_s=0.3)
        stack.push_async_callback(server.stop, None)
        names.addresses = ["127.0.0.1"]
        target = f"dns://{resolver}/replicas.test:{port}"
        async with open_test_channel(target, patience_s=NEVER_S) as channel:
            await make(channel)
            other, _ = await serve(added, public_keys_text(), port, host="127.0.0.2")
            stack.push_async_callback(other.stop, None)
            names.addresses = ["127.0.0.1", "127.0.0.2"]
            async with asyncio.timeout(120):
                while not added.done:
                    await make(channel)


async def test_a_server_whose_address_has_changed_is_found_by_its_name() -> None:
    old, new = Servicer(), Servicer()
    async with name_server() as (names, resolver):
        server, port = await serve(old, public_keys_text())
        names.addresses = ["127.0.0.1"]
        async with open_test_channel(f"dns://{resolver}/replicas.test:{port}", patience_s=NEVER_S) as channel:
            await make(channel)
            names.addresses = ["127.0.0.2"]
            await server.stop(None)
            other, _ = await serve(new, public_keys_text(), port, host="127.0.0.2")
            await make(channel, "after")
            await other.stop(None)
    assert new.done == {"after": 1}


async def test_a_name_that_leads_nowhere_for_long_is_looked_up_as_often_until_it_leads_to_a_server() -> None:
    """The name of a headless service whose pods are all away. gRPC would look it up for the twentieth time after half an hour."""
    found = Servicer()
    async with name_server() as (names, resolver), AsyncExitStack() as stack:
        port = free_port()
        target = f"dns://{resolver}/replicas.test:{port}"
        async with open_test_channel(target, patience_s=NEVER_S, looked_up_every_s=0.1) as channel:
            calling = asyncio.ensure_future(make(channel))
            while names.asked < 20:  # a server of names offers no event
                await asyncio.sleep(0.01)
            server, _ = await serve(found, public_keys_text(), port)
            stack.push_async_callback(server.stop, None)
            names.addresses = ["127.0.0.1"]
            await calling
    assert sum(found.done.values()) == 1


async def test_a_handler_that_gives_up_by_itself_is_a_fault_and_is_not_called_again() -> None:
    class GivesUp(Servicer):
        calls = 0

        async def CreateThread(self, request: pb.CreateThreadRequest, context: Any) -> pb.CreateThreadResponse:
            GivesUp.calls += 1
            raise asyncio.CancelledError

    async with serving(GivesUp(), GivesUp()) as address, open_test_channel(address) as channel:
        with pytest.raises(Internal):
            await make(channel)
    assert GivesUp.calls == 1
