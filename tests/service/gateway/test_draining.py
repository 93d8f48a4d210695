"""A gateway that is told to stop: nobody who asked is left without an answer."""

from __future__ import annotations

import os
import socket

import httpx
import pytest

from kit.errors import FailedPrecondition
from kit.testing.harness import free_port, running_service
from services.gateway.app import run
from services.gateway.server import bind
from tests.service.gateway.conftest import Settings


async def test_a_gateway_serves_on_a_listening_socket_that_it_inherits(settings: Settings) -> None:
    with bind("127.0.0.1", 0) as door:
        door.listen()
        port = door.getsockname()[1]
        inherits = settings(port=free_port(), listen_fd=os.dup(door.fileno()), grpc_address=f"127.0.0.1:{free_port()}")
        async with running_service(run, inherits), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.get("/livez")).json() == {"status": "ok"}
        assert door.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), "the socket outlives the gateway"


async def test_a_descriptor_that_does_not_listen_is_refused_with_advice(settings: Settings) -> None:
    with socket.socket() as silent, pytest.raises(FailedPrecondition, match="GROUNDWORK_LISTEN_FD"):
        await run(settings(listen_fd=silent.fileno()))
    with pytest.raises(FailedPrecondition, match="GROUNDWORK_LISTEN_FD"):
        await run(settings(listen_fd=1_000_000))
