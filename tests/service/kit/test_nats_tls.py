"""TLS with NATS, against a real server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.errors import TimeoutError as NatsTimeoutError

from kit.errors import Unavailable
from kit.jetstream import Nats, connect
from kit.network.tls import BadCertificates, nats_context
from kit.process.waiting import Waiting
from kit.testing.certificates import Authority, CertificateFolder
from kit.testing.nats import NatsServer, nats_server

ENOUGH_S = 60.0
_NOTHING_YET = "no answer|not answered"


class World:
    """A server with a certificate that asks clients for theirs, and what a service has."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.server = CertificateFolder(folder / "nats", self.authority.issue("nats"), [self.authority])
        self.service = CertificateFolder(folder / "service", self.authority.issue("service"), [self.authority])

    @property
    def configuration(self) -> str:
        files = self.server
        return f'tls {{ cert_file: "{files.cert_file}", key_file: "{files.key_file}", ca_file: "{files.ca_file}", verify: true }}\n'

    @asynccontextmanager
    async def connected(self, server: NatsServer, waiting: Waiting | None = None) -> AsyncIterator[Nats]:
        url = server.url.replace("nats://", "tls://")
        files = self.service
        tls = nats_context(url, ca_file=files.ca_file, cert_file=files.cert_file, key_file=files.key_file)
        async with connect(url, name="test", tls=tls, waiting=waiting) as nats:
            yield nats


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def _answers(nats: Nats) -> None:
    """Waits until the server answers: after a restart it is looked for again and again."""
    async with asyncio.timeout(ENOUGH_S):
        while True:
            try:
                await nats.check()
            except (Unavailable, NatsTimeoutError):
                await asyncio.sleep(0.05)
            else:
                return


async def _problem(world: World, server: NatsServer) -> str:
    """What is said of a server that cannot be used."""
    waiting = Waiting()

    async def opening() -> None:
        async with world.connected(server, waiting):
            pass

    task = asyncio.create_task(opening())
    try:
        async with asyncio.timeout(ENOUGH_S):
            while not (said := "".join(each.message for each in waiting.troubles())) or re.search(_NOTHING_YET, said):
                await asyncio.sleep(0.02)
        assert not task.done()
        return said
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_service_with_a_certificate_of_the_authority_is_let_in(world: World) -> None:
    async with nats_server(world.configuration) as server, world.connected(server) as nats:
        await nats.check()


async def test_new_files_on_both_sides_are_taken_with_the_next_connection(world: World) -> None:
    async with nats_server(world.configuration) as server, world.connected(server) as nats:
        await nats.check()
        await server.stop()
        new = Authority("new")
        for folder in (world.server, world.service):
            folder.put(new.issue())
            folder.trust(new)
        await server.start()
        await _answers(nats)


async def test_a_server_of_another_authority_is_not_used_and_the_reason_is_told(world: World) -> None:
    world.service.trust(Authority("other"))
    async with nats_server(world.configuration) as server:
        assert "CERTIFICATE_VERIFY_FAILED" in await _problem(world, server)


async def test_a_client_without_a_certificate_is_not_let_in(world: World) -> None:
    async with nats_server(world.configuration) as server:
        url = server.url.replace("nats://", "tls://")
        tls = nats_context(url, ca_file=world.service.ca_file, cert_file=None, key_file=None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2), connect(url, name="test", tls=tls):
                pass


async def test_a_server_that_falls_silent_in_the_handshake_is_asked_again_and_can_be_left(world: World) -> None:
    asked = asyncio.Semaphore(0)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id": "x", "tls_required": true}\r\n')
        await reader.read(1)
        asked.release()
        await reader.read()
        writer.close()

    async def connected(url: str) -> None:
        tls = nats_context(url, ca_file=world.service.ca_file, cert_file=None, key_file=None)
        async with connect(url, name="test", waiting=Waiting(), tls=tls):
            pass

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server, asyncio.timeout(60):
        connecting = asyncio.create_task(connected(f"tls://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        for _ in range(2):
            await asked.acquire()
        connecting.cancel()
        await asyncio.wait({connecting})


async def test_a_server_without_tls_is_not_told_the_password(world: World) -> None:
    async with nats_server() as server:
        assert "does not require TLS" in await _problem(world, server)


@pytest.mark.parametrize(
    ("url", "ca_file", "said"),
    [
        ("nats://127.0.0.1:4222", "ca.crt", "write tls:// instead of nats://"),
        ("tls://a:4222,nats://b:4222", "ca.crt", "write tls:// before each"),
        ("tls://a:4222", "missing.crt", "missing.crt"),
        ("tls://a:4222", "tls.key", "tls.key"),
    ],
)
def test_what_does_not_fit_is_said_at_the_start(world: World, url: str, ca_file: str, said: str) -> None:
    path = world.service.ca_file.with_name(ca_file)
    with pytest.raises(BadCertificates, match=said):
        nats_context(url, ca_file=path, cert_file=None, key_file=None)


def test_an_address_without_tls_needs_nothing() -> None:
    assert nats_context("nats://a:4222", ca_file=None, cert_file=None, key_file=None) is None
