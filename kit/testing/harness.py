"""Runs servicers and whole services inside a test, on real sockets of the loopback."""

import asyncio
import fcntl
import functools
import json
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2

from kit.access.keys import Jwk, KeySource, new_key, parse_public_keys, parse_signing_key, public_half
from kit.access.principal import INGEST, QUERY, Principal, use_principal
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.errors import GroundworkError
from kit.network.tls import CertificateSource
from kit.process.settings import ServiceSettings
from kit.rpc.calls import health_stub
from kit.rpc.channel import PATIENCE_S, Channel, open_channel
from kit.rpc.connection import LOOKED_UP_EVERY_S
from kit.rpc.server import make_server

USER_SCOPES = frozenset({QUERY, INGEST})
"""What an ordinary user may do."""
TEST_PRINCIPAL = Principal("local", "tester", USER_SCOPES)
ROOMS = ("ingest", "jobs", "memory", "orchestrator", "reranker", "retriever", "store", "tools")
_READY_TIMEOUT_S = 120.0
"""On a machine that is busy with other work."""
_PORTS = range(10_000, 18_000)
"""Below those that systems take for outgoing connections and port 0, and below those that standalone chooses for its services."""
_PLACE = struct.Struct("q")
_COUNTER = os.open(Path(tempfile.gettempdir(), f"groundwork-test-ports-{os.getuid()}"), os.O_RDWR | os.O_CREAT, 0o600)
"""Holds the place of the next port, for all processes of this user; mapped, because no test may read a file in the event loop."""
os.ftruncate(_COUNTER, _PLACE.size)


def signing_key_text() -> str:
    """The private key of everybody in this test run, who may call everything."""
    return json.dumps(_key())


def public_keys_text(*more: Jwk) -> str:
    """The public keys: that of the test run, and `more`."""
    return json.dumps({"keys": [public_half(_key(), [f"{room}/*" for room in ROOMS]), *more]})


def make_signer(private: Jwk | None = None, **options: Any) -> TokenSigner:
    """Signs with the test run's key, or with `private`."""
    text = json.dumps(private) if private else signing_key_text()
    return TokenSigner(KeySource(parse_signing_key, value=text, setting="TEST"), **options)


def make_verifier(*more: Jwk, **options: Any) -> TokenVerifier:
    """Accepts the test run's key, and `more` public ones."""
    return TokenVerifier(KeySource(parse_public_keys, value=public_keys_text(*more), setting="TEST"), **options)


@functools.cache
def _key() -> Jwk:
    return new_key("test")


def free_port() -> int:
    """A port of the loopback for a server that must know it before it binds it, or that binds it again."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Different ports on which nobody listens. Each port is handed out once in this machine's whole round of `_PORTS`, to whichever
    process asks: no other test gets it, and no outgoing connection, while its server has yet to start or is restarted."""
    chosen: list[int] = []
    fcntl.lockf(_COUNTER, fcntl.LOCK_EX)
    with mmap.mmap(_COUNTER, _PLACE.size) as counter:
        (place,) = _PLACE.unpack(counter[:])
        while len(chosen) < count:
            port = _PORTS[place % len(_PORTS)]
            place += 1
            with socket.socket() as probe, suppress(OSError):
                probe.bind(("127.0.0.1", port))
                chosen.append(port)
        counter[:] = _PLACE.pack(place)
    fcntl.lockf(_COUNTER, fcntl.LOCK_UN)
    return chosen


@asynccontextmanager
async def running_servicer(
    add: Callable[[Any, grpc.aio.Server], None], servicer: object, certificates: CertificateSource | None = None
) -> AsyncIterator[str]:
    """Serves one servicer behind kit's real interceptors; yields its address."""
    server = make_server(make_verifier())
    add(servicer, server)
    port = server.bind("127.0.0.1:0", certificates)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def open_test_channel(
    address: str,
    principal: Principal = TEST_PRINCIPAL,
    services: Sequence[ServiceDescriptor] = (),
    *,
    patience_s: float = PATIENCE_S,
    certificates: CertificateSource | None = None,
    looked_up_every_s: float = LOOKED_UP_EVERY_S,
) -> AsyncIterator[Channel]:
    """A channel whose calls are made as `principal`, within the block. One without scopes is given those of an ordinary user."""
    principal = principal if principal.scopes else replace(principal, scopes=USER_SCOPES)
    opening = open_channel(
        address,
        make_signer(),
        services,
        passed_on_to=ROOMS,
        patience_s=patience_s,
        certificates=certificates,
        looked_up_every_s=looked_up_every_s,
    )
    async with opening as channel:
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
        await _until_serving(settings, task)
        yield settings.grpc_address
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until_serving(settings: ServiceSettings, task: "asyncio.Task[None]") -> None:
    certificates = settings.certificates()
    asking = open_channel(settings.grpc_address, make_signer(), certificates=certificates, patience_s=0)
    async with asyncio.timeout(_READY_TIMEOUT_S), asking as channel:
        stub = health_stub(channel)
        while not task.done():
            try:
                with use_principal(TEST_PRINCIPAL):
                    answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return
            except GroundworkError:
                pass
            await asyncio.sleep(0.02)
    await task
    raise RuntimeError("the service ended before it was serving")
