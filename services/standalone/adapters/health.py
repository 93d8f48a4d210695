"""Looks at children over the network: the NATS greeting, gRPC health, HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.standalone.models import Probe, ProbeKind

ATTEMPT_TIMEOUT_S = 2.0


class NetworkProbe:
    """A HealthProbe over loopback. Keeps no connection: each look is a fresh one, so a restarted child is seen at once."""

    async def is_ready(self, probe: Probe) -> bool:
        """One look of at most 2 s."""
        look = {ProbeKind.NATS: _nats, ProbeKind.GRPC: _grpc, ProbeKind.HTTP: _http}[probe.kind]
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT_S):
                return await look(probe)
        except (OSError, TimeoutError, grpc.aio.AioRpcError):
            return False


async def _nats(probe: Probe) -> bool:
    """nats-server accepts clients only once JetStream has recovered its store."""
    reader, writer = await asyncio.open_connection(probe.host, probe.port)
    try:
        return (await reader.readline()).startswith(b"INFO ")
    finally:
        await _close(writer)


async def _grpc(probe: Probe) -> bool:
    # A plain connect first: gRPC would answer a refused one with its own, longer backoff.
    _, writer = await asyncio.open_connection(probe.host, probe.port)
    await _close(writer)
    async with grpc.aio.insecure_channel(f"{probe.host}:{probe.port}") as channel:
        request = health_pb2.HealthCheckRequest(service="")
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its methods are made at run time
        answer = await stub.Check(request, timeout=ATTEMPT_TIMEOUT_S)
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def _http(probe: Probe) -> bool:
    reader, writer = await asyncio.open_connection(probe.host, probe.port)
    try:
        request = f"GET {probe.path} HTTP/1.1\r\nHost: {probe.host}:{probe.port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode("ascii"))
        await writer.drain()
        status_line = await reader.readline()
        return status_line.split(b" ")[1:2] == [b"200"]
    finally:
        await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
