"""The gateway over fake services: in process for plain answers, behind its real HTTP server for streams."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc
import httpx
import pytest
from groundwork.ingest.v1 import ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2_grpc
from groundwork.store.v1 import store_pb2_grpc
from groundwork.tools.v1 import tools_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from kit.access.principal import Principal
from kit.process.service import DetailedHealth
from kit.rpc.server import make_server
from kit.testing.harness import make_verifier
from services.gateway.access.keys import Keys
from services.gateway.api import create_api
from services.gateway.backends import open_backends
from services.gateway.serving.connection_table import connection_limits
from services.gateway.serving.server import HttpServer, bind
from services.gateway.settings import GatewaySettings
from tests.service.gateway.fakes import (
    FakeIngest,
    FakeMemory,
    FakeOrchestrator,
    FakeReranker,
    FakeRetriever,
    FakeStore,
    FakeTools,
)

SERVICES = ("ingest", "ingest_worker", "retriever", "reranker", "orchestrator", "memory", "tools")


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What was logged, as data: drawing tracebacks for people takes seconds."""
    with capture_logs() as captured:
        yield captured


@dataclass
class World:
    """Everything behind the gateway, on one gRPC server that can be killed and started again on the same port."""

    ingest: FakeIngest = field(default_factory=FakeIngest)
    retriever: FakeRetriever = field(default_factory=FakeRetriever)
    memory: FakeMemory = field(default_factory=FakeMemory)
    store: FakeStore = field(default_factory=FakeStore)
    orchestrator: FakeOrchestrator = field(default_factory=FakeOrchestrator)
    tools: FakeTools = field(default_factory=FakeTools)
    reranker: FakeReranker = field(default_factory=FakeReranker)
    health: DetailedHealth = field(default_factory=DetailedHealth)
    port: int = 0
    server: grpc.aio.Server | None = None

    async def start(self) -> None:
        server = make_server(make_verifier())
        ingest_pb2_grpc.add_IngestServiceServicer_to_server(self.ingest, server)
        retriever_pb2_grpc.add_RetrieverServiceServicer_to_server(self.retriever, server)
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(self.memory, server)
        orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server(self.orchestrator, server)
        tools_pb2_grpc.add_ToolsServiceServicer_to_server(self.tools, server)
        reranker_pb2_grpc.add_RerankerServiceServicer_to_server(self.reranker, server)
        store_pb2_grpc.add_StoreServiceServicer_to_server(self.store, server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, server)
        self.port = server.add_insecure_port(f"127.0.0.1:{self.port}")
        await server.start()
        await self.health.set("", health_pb2.HealthCheckResponse.SERVING)
        self.server = server

    async def kill(self) -> None:
        if self.server:
            await self.server.stop(None)
            self.server = None


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.start()
    yield world
    await world.kill()


Settings = Callable[..., GatewaySettings]


@pytest.fixture
def settings(world: World) -> Settings:
    def make(**changes: Any) -> GatewaySettings:
        addresses = {f"{name}_address": f"127.0.0.1:{world.port}" for name in SERVICES}
        # The server that tests share sets so much of its disk aside for each of them.
        return GatewaySettings(**{"port": 0, "audit_max_bytes": 16 * 1024**2, **addresses, **changes})

    return make


@dataclass
class Clocks:
    """The time of day and the seconds that a gateway with keys counts; set by tests."""

    day: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.day

    def clock(self) -> float:
        return self.seconds


async def keys_of(stack: AsyncExitStack, settings: GatewaySettings, clocks: Clocks | None = None) -> Keys | None:
    """As the process has them: following NATS, and known."""
    if settings.auth == "none":
        return None
    clocks = clocks or Clocks()
    keys = Keys(settings, now=clocks.now, clock=clocks.clock)
    following = asyncio.create_task(keys.run())
    stack.push_async_callback(_cancelled, following)
    async with asyncio.timeout(60):
        await keys.ring.wait_fresh()
        while keys.audit.store is None:
            await asyncio.sleep(0.01)
    return keys


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def in_process(
    settings: GatewaySettings, *, key: str = "", clocks: Clocks | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Each request shows `key`."""
    async with AsyncExitStack() as stack:
        backends = await open_backends(stack, settings, asyncio.Event(), asyncio.Event())
        app = create_api(backends, await keys_of(stack, settings, clocks))
        transport = httpx.ASGITransport(app)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", headers=headers)
        yield await stack.enter_async_context(client)


def act_as(client: httpx.AsyncClient, principal: Principal) -> None:
    """Makes what an in-process client asks from now on the requests of `principal`."""
    transport: Any = client._transport
    transport.app.state.door.principal = principal


@asynccontextmanager
async def over_http(
    settings: GatewaySettings,
    closing: asyncio.Event | None = None,
    *,
    clocks: Clocks | None = None,
    mcp: bool = False,
) -> AsyncIterator[httpx.AsyncClient]:
    """`mcp`: whether `/mcp` is served too, which takes a moment to build."""
    closing = closing or asyncio.Event()
    async with AsyncExitStack() as stack:
        backends = await open_backends(stack, settings, closing, closing)
        app = create_api(backends, await keys_of(stack, settings, clocks))
        door = bind(settings.host, settings.port)
        door.listen()  # so that a client may come before the server has begun
        if mcp:
            await stack.enter_async_context(app.state.mcp.running())
        server = HttpServer(app, door, connection_limits(settings), grace_s=1)
        serving = asyncio.create_task(server.serve(closing, closing))
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client:
                yield client
        finally:
            closing.set()
            await serving


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """In process: answers come whole."""
    async with in_process(settings()) as client:
        yield client


Live = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def live(settings: Settings) -> Live:
    """Over a real socket: answers stream."""

    def make(closing: asyncio.Event | None = None, **changes: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return over_http(settings(**changes), closing)

    return make
