"""A gateway that is told to stop: nobody who asked is left without an answer."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from kit.errors import FailedPrecondition
from kit.testing.harness import free_port, running_service
from services.gateway.api import create_api
from services.gateway.app import run
from services.gateway.backends import open_backends
from services.gateway.metrics import CONNECTIONS
from services.gateway.serving import connections
from services.gateway.serving.connection_table import connection_limits
from services.gateway.serving.server import HttpServer, bind
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import SERVICES, Settings, World


async def test_a_gateway_serves_on_a_listening_socket_that_it_inherits(settings: Settings) -> None:
    with bind("127.0.0.1", 0) as door:
        door.listen()
        port = door.getsockname()[1]
        inherits = settings(port=free_port(), listen_fd=os.dup(door.fileno()), grpc_address=f"127.0.0.1:{free_port()}")
        async with running_service(run, inherits), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            assert (await client.get("/livez")).json() == {"status": "ok"}
        assert door.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), "the socket outlives the gateway"


async def test_a_descriptor_that_does_not_listen_for_tcp_is_refused_with_advice(
    settings: Settings, tmp_path: Path
) -> None:
    with socket.socket() as silent, pytest.raises(FailedPrecondition, match="GROUNDWORK_LISTEN_FD"):
        await run(settings(listen_fd=silent.fileno()))
    with pytest.raises(FailedPrecondition, match="GROUNDWORK_LISTEN_FD"):
        await run(settings(listen_fd=1_000_000))
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
        local.listen()
        with pytest.raises(FailedPrecondition, match="GROUNDWORK_LISTEN_FD"):
            await run(settings(listen_fd=local.fileno()))


HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
NEVER_S = 600.0


class Gateway:
    """A gateway's HTTP server over services that answer, on its own copy of a listening socket."""

    def __init__(self, settings: GatewaySettings, door: socket.socket, *, shares_door: bool = True) -> None:
        self.stopping, self.closing = asyncio.Event(), asyncio.Event()
        self._settings = settings
        self._door = door.dup() if shares_door else door
        self._door.setblocking(False)
        self._shares_door = shares_door

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[asyncio.Task[None]]:
        async with AsyncExitStack() as stack:
            app = create_api(await open_backends(stack, self._settings, self.stopping, self.closing))
            limits = connection_limits(self._settings)
            server = HttpServer(app, self._door, limits, grace_s=NEVER_S, shares_door=self._shares_door)
            task = asyncio.create_task(server.serve(self.stopping, self.closing))
            try:
                yield task
            finally:
                self.stopping.set()
                self.closing.set()
                await task


@pytest.fixture
def door() -> Iterator[socket.socket]:
    with bind("127.0.0.1", 0) as door:
        door.listen(1024)
        yield door


def url(door: socket.socket) -> str:
    return f"http://127.0.0.1:{door.getsockname()[1]}"


@asynccontextmanager
async def raw(door: socket.socket) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*door.getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_answers_of_a_stopping_gateway_are_the_last_of_their_connections(
    settings: Settings, door: socket.socket
) -> None:
    gateway = Gateway(settings(), door)
    async with gateway.serving(), httpx.AsyncClient(base_url=url(door)) as client:
        before = await client.get("/livez")
        assert "connection" not in before.headers
        gateway.stopping.set()
        await asyncio.sleep(0)
        answer = await client.post("/v1/search", json={"query": "notice"})
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.headers["connection"]) == (503, "close")


@pytest.mark.parametrize("has_asked_before", [False, True])
async def test_a_connection_that_was_let_in_is_answered_after_the_door_is_closed(
    settings: Settings, door: socket.socket, monkeypatch: pytest.MonkeyPatch, has_asked_before: bool
) -> None:
    monkeypatch.setattr(connections, "_LAST_REQUEST_S", NEVER_S)
    gateway = Gateway(settings(), door)
    async with gateway.serving() as serving, raw(door) as (reader, writer):
        if has_asked_before:
            writer.write(HEAD)
            assert b"200 OK" in await reader.readuntil(b'{"status":"ok"}')
        async with asyncio.timeout(60):
            while CONNECTIONS._value.get() != 1:
                await asyncio.sleep(0.01)
        gateway.stopping.set()
        gateway.closing.set()
        await asyncio.sleep(0.3)  # uvicorn looks ten times a second whether it is to end
        writer.write(HEAD)
        answer = await reader.read()
        assert b"200 OK" in answer
        assert b"connection: close" in answer
        await serving


async def test_connections_in_the_queue_of_a_door_of_its_own_are_answered(
    settings: Settings, door: socket.socket
) -> None:
    gateway = Gateway(settings(), door, shares_door=False)
    async with AsyncExitStack() as stack:
        gateway.stopping.set()
        gateway.closing.set()
        early = [await stack.enter_async_context(raw(door)) for _ in range(20)]
        for _, writer in early:
            writer.write(HEAD)
        async with gateway.serving():
            for reader, _ in early:
                assert b"200 OK" in await reader.read()


async def test_a_silent_connection_holds_no_gateway_up(settings: Settings, door: socket.socket) -> None:
    gateway = Gateway(settings(), door)
    async with gateway.serving() as serving, raw(door) as (reader, writer):
        writer.write(HEAD)
        await reader.readuntil(b'{"status":"ok"}')
        gateway.stopping.set()
        gateway.closing.set()
        await serving
        assert await reader.read() == b""


class Visitors:
    """Clients of both kinds: of one connection for all they ask, and of a new one each time. One of the first that was
    silent for a second, because this machine stood still, may meet its connection just being closed: that is no failure."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.answers = 0
        self.failures: list[str] = []
        self._more = asyncio.Condition()
        self._stopping = False

    @asynccontextmanager
    async def at_work(self, *, of_each_kind: int = 4) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for keeps in [True, False] * of_each_kind:
                group.create_task(self._visit(keeps))
            try:
                yield
            finally:
                self._stopping = True

    async def have_had(self, answers: int) -> None:
        """Waits for so many more answers."""
        enough = self.answers + answers
        async with asyncio.timeout(120), self._more:
            await self._more.wait_for(lambda: self.answers >= enough or self.failures)

    async def _visit(self, keeps: bool) -> None:
        limits = httpx.Limits(max_keepalive_connections=1 if keeps else 0)
        answered_at = sent_at = time.monotonic()

        async def note_sent(event: str, _: object) -> None:
            nonlocal sent_at
            if event == "http11.send_request_headers.complete":
                sent_at = time.monotonic()

        async with httpx.AsyncClient(base_url=self._address, limits=limits, timeout=60, trust_env=False) as client:
            while not self._stopping:
                try:
                    answer = await client.post("/v1/search", json={"query": "notice"}, extensions={"trace": note_sent})
                    if answer.status_code != 200:
                        self.failures.append(answer.text)
                except httpx.HTTPError as error:
                    was_silent = keeps and sent_at - answered_at >= connections._LAST_REQUEST_S
                    if not was_silent:
                        self.failures.append(repr(error))
                answered_at = time.monotonic()
                self.answers += 1
                async with self._more:
                    self._more.notify_all()


@pytest.mark.parametrize("gateways", [1, 2])
async def test_gateways_that_share_a_door_are_restarted_and_no_request_fails(
    settings: Settings, door: socket.socket, gateways: int
) -> None:
    visitors = Visitors(url(door))
    async with AsyncExitStack() as others:
        for _ in range(gateways - 1):
            await others.enter_async_context(Gateway(settings(), door).serving())
        async with AsyncExitStack() as first, visitors.at_work():
            restarted = Gateway(settings(), door)
            await first.enter_async_context(restarted.serving())
            for _ in range(4):
                await visitors.have_had(40)
                restarted.stopping.set()
                await visitors.have_had(10)
                await first.aclose()  # closes the door, and ends when the last answer is out
                restarted = Gateway(settings(), door)
                await first.enter_async_context(restarted.serving())
            await visitors.have_had(40)
    assert visitors.failures == []


async def started(settings: GatewaySettings, door: socket.socket) -> asyncio.subprocess.Process:
    """A gateway's process that answers, on the door and on no other port."""
    ops_port = free_port()
    environment = {
        **os.environ,
        **{f"GROUNDWORK_{name.upper()}_ADDRESS": getattr(settings, f"{name}_address") for name in SERVICES},
        "GROUNDWORK_LISTEN_FD": str(door.fileno()),
        "GROUNDWORK_OPS_PORT": str(ops_port),
        "GROUNDWORK_DRAIN_DELAY_S": "0",
        "GROUNDWORK_DRAIN_GRACE_S": "60",
    }
    command = (sys.executable, "-m", "services.gateway")
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, pass_fds=[door.fileno()], stdout=asyncio.subprocess.DEVNULL
    )
    async with asyncio.timeout(120), httpx.AsyncClient(trust_env=False) as client:
        while True:
            with suppress(httpx.TransportError):
                if (await client.get(f"http://127.0.0.1:{ops_port}/readyz")).status_code == 200:
                    return process
            await asyncio.sleep(0.05)


async def test_processes_that_share_a_door_are_restarted_and_no_request_fails(
    settings: Settings, door: socket.socket
) -> None:
    visitors = Visitors(url(door))
    processes = await asyncio.gather(started(settings(), door), started(settings(), door))
    try:
        async with visitors.at_work():
            for turn in range(4):
                await visitors.have_had(50)
                processes[turn % 2].terminate()
                assert await processes[turn % 2].wait() == 0
                await visitors.have_had(50)
                processes[turn % 2] = await started(settings(), door)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert visitors.failures == []


async def test_an_upload_in_progress_ends_well(settings: Settings, world: World, door: socket.socket) -> None:
    gateway, under_way, go_on = Gateway(settings(), door), asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nfirst half, '
        under_way.set()
        await go_on.wait()
        yield b"second half\r\n--b--\r\n"

    async with gateway.serving() as serving, httpx.AsyncClient(base_url=url(door), timeout=60) as client:
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        uploading = asyncio.ensure_future(
            client.post("/v1/collections/default/documents", content=body(), headers=headers)
        )
        await under_way.wait()
        async with asyncio.timeout(60):
            while not world.ingest.headers:
                await asyncio.sleep(0.01)
        gateway.stopping.set()
        gateway.closing.set()
        go_on.set()
        answer = await uploading
        await serving
    assert (answer.status_code, answer.headers["connection"]) == (202, "close")
