"""Looks at children over the network: the NATS greeting, gRPC health, HTTP."""

from __future__ import annotations

import asyncio
import contextlib

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2

from kit.network.tls import CertificateSource
from kit.rpc.calls import health_stub
from kit.rpc.credentials import channel_credentials
from services.standalone.supervising.models import Probe, ProbeKind

ATTEMPT_TIMEOUT_S = 2.0


class NetworkProbe:
    """A HealthProbe over loopback. Keeps no connection: each look is a fresh one, so a restarted child is seen at once. With
    `certificates` services are asked over TLS."""

    def __init__(self, certificates: CertificateSource | None = None) -> None:
        self._certificates = certificates

    async def is_ready(self, probe: Probe) -> bool:
        """One look of at most 2 s."""
        look = {ProbeKind.NATS: _nats, ProbeKind.GRPC: self._grpc, ProbeKind.HTTP: _http}[probe.kind]
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT_S):
                return await look(probe)
        except (OSError, TimeoutError, grpc.aio.AioRpcError):
            return False

    async def _grpc(self, probe: Probe) -> bool:
        # A plain connect first: gRPC would answer a refused one with its own, longer backoff.
        _, writer = await asyncio.open_connection(probe.host, probe.port)
        await _close(writer)
        async with self._channel(f"{probe.host}:{probe.port}") as channel:
            request = health_pb2.HealthCheckRequest(service="")
            answer = await health_stub(channel).Check(request, timeout=ATTEMPT_TIMEOUT_S)
            return answer.status == health_pb2.HealthCheckResponse.SERVING

    def _channel(self, address: str) -> grpc.aio.Channel:
        if self._certificates is None:
            return grpc.aio.insecure_channel(address)
        return grpc.aio.secure_channel(address, channel_credentials(self._certificates.current()))


async def _nats(probe: Probe) -> bool:
    """nats-server accepts clients only once JetStream has recovered its store."""
    reader, writer = await asyncio.open_connection(probe.host, probe.port)
    try:
        return (await reader.readline()).startswith(b"INFO ")
    finally:
        await _close(writer)


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
