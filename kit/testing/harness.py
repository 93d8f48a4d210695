"""Runs servicers and whole services inside a test, on real sockets of the loopback."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kit.channel import Channel, open_channel
from kit.principal import Principal, TokenSigner, use_principal
from kit.server import make_server
from kit.settings import ServiceSettings

TEST_SECRET = "a-secret-of-at-least-32-characters-for-tests"
TEST_PRINCIPAL = Principal("local", "tester")
_READY_TIMEOUT_S = 20.0


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def running_servicer(add: Callable[[Any, grpc.aio.Server], None], servicer: object) -> AsyncIterator[str]:
    """Serves one servicer behind kit's real interceptors; yields its address."""
    server = make_server(TokenSigner(TEST_SECRET))
    add(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def open_test_channel(
    address: str, principal: Principal = TEST_PRINCIPAL, services: Sequence[ServiceDescriptor] = ()
) -> AsyncIterator[Channel]:
    """A channel whose calls are made as `principal`, within the block."""
    async with open_channel(address, TokenSigner(TEST_SECRET), services) as channel:
        with use_principal(principal):
            yield channel


@asynccontextmanager
async def running_service(
    run: Callable[[Any], Coroutine[Any, Any, None]], settings: ServiceSettings
) -> AsyncIterator[str]:
    """Runs a service's `run(settings)` as a task, waits until it is SERVING, yields its address.

    `settings.grpc_address` must name a port (use `free_port`), so that the test knows where to look.
    """
    task = asyncio.create_task(run(settings))
    try:
        await _until_serving(settings.grpc_address, task)
        yield settings.grpc_address
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until_serving(address: str, task: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(_READY_TIMEOUT_S), grpc.aio.insecure_channel(address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        while not task.done():
            try:
                answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
            except grpc.aio.AioRpcError:
                pass
            await asyncio.sleep(0.02)
    await task
    raise RuntimeError("the service ended before it was serving")
