"""How children are asked whether they are ready, over real connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from kit.testing.harness import free_port
from kit.testing.nats import NatsServer
from services.standalone.adapters.health import NetworkProbe
from services.standalone.errors import StartRefused
from services.standalone.local_llm import check_weights
from services.standalone.supervising.models import Probe, ProbeKind

READY = NetworkProbe()


@pytest.mark.parametrize("kind", ProbeKind)
async def test_who_does_not_listen_is_not_ready(kind: ProbeKind) -> None:
    assert not await READY.is_ready(Probe(kind, "127.0.0.1", free_port()))


async def test_nats_is_ready_once_it_greets(nats: NatsServer) -> None:
    assert await READY.is_ready(Probe(ProbeKind.NATS, "127.0.0.1", nats.port))


async def test_a_grpc_service_is_ready_once_it_is_serving() -> None:
    server, health = grpc.aio.server(), health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    probe = Probe(ProbeKind.GRPC, "127.0.0.1", server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    try:
        await health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
        assert not await READY.is_ready(probe)
        await health.set("", health_pb2.HealthCheckResponse.SERVING)
        assert await READY.is_ready(probe)
    finally:
        await server.stop(None)


@pytest.mark.parametrize(("status", "ready"), [(b"200 OK", True), (b"503 Service Unavailable", False)])
async def test_an_http_service_is_ready_once_it_answers_200(status: bytes, ready: bool) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()).startswith(b"GET /readyz HTTP/1.1")
        writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await READY.is_ready(Probe(ProbeKind.HTTP, "127.0.0.1", port, "/readyz")) is ready


def test_weights_that_are_missing_or_damaged_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="make setup LLM=local"):
        check_weights(tmp_path / "model.gguf")
    (tmp_path / "model.gguf").write_bytes(b"GGUF, but not ours")
    with pytest.raises(StartRefused, match="damaged"):
        check_weights(tmp_path / "model.gguf")
