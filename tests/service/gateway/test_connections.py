"""Connections: slow clients are cut off with a word, a crowd does not shut others out, and a drain serves until it is over.
Time-outs in here are either far shorter than the test waits or far longer than it runs: nothing depends on how fast it is."""

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
from groundwork.ingest.v1 import ingest_pb2

from kit.testing.harness import free_port, running_service
from services.gateway.app import run
from services.gateway.routes.documents import upload
from services.gateway.serving import connection_table, connections
from services.gateway.serving.connection_table import connection_limits
from services.gateway.serving.connections import Connection
from tests.service.gateway.conftest import Live, Settings, World
from tests.service.gateway.fakes import document

HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
NEVER_S = 3600.0
SOON_S = 0.05
PATIENT = {"request_head_timeout_s": NEVER_S, "connection_idle_timeout_s": NEVER_S, "send_timeout_s": NEVER_S}


def hurry(monkeypatch: pytest.MonkeyPatch, expected: str) -> None:
    """Lets the deadline for one thing that is expected of a client pass soon after it began, and all others never."""
    original = Connection._expect

    def expect(
        self: Connection, what: str, timeout_s: float = 0.0, otherwise: Callable[[], None] | None = None
    ) -> None:
        original(self, what, SOON_S if what == expected else timeout_s and NEVER_S, otherwise)

    monkeypatch.setattr(Connection, "_expect", expect)


@dataclass
class Client:
    """A client that sends exactly what it is told to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(status.split()[1]), headers, body

    async def ended(self) -> bytes:
        """What still comes until the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""


@asynccontextmanager
async def connected(http: httpx.AsyncClient) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def reason(body: bytes) -> str:
    return str(json.loads(body)["reason"])


async def test_probe_that_speaks_http_1_0_and_names_no_host_is_answered(live: Live) -> None:
    async with live() as http, connected(http) as client:
        await client.send(b"GET /livez HTTP/1.0\r\n\r\n")
        assert (await client.answer())[0] == 200


@pytest.mark.parametrize("sent", [b"G", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: "])
async def test_head_that_does_not_end_is_refused(live: Live, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    hurry(monkeypatch, "head")
    async with live() as http, connected(http) as client:
        await client.send(sent)
        status, headers, body = await client.answer()
        assert (status, reason(body), headers["connection"]) == (408, "REQUEST_HEAD_TIMEOUT", "close")
        assert await client.ended() == b""


async def test_head_that_trickles_does_not_put_its_deadline_off(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, "head")
    async with live() as http, connected(http) as client:

        async def trickle() -> None:
            await client.send(b"GET /livez HTTP/1.1\r\n")
            while True:
                await client.send(b"X-A: b\r\n")
                await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        status, _, _ = await client.answer()
        trickling.cancel()
        assert status == 408


async def test_connection_that_says_nothing_is_closed(live: Live) -> None:
    async with live(request_head_timeout_s=SOON_S) as http, connected(http) as client:
        assert await client.ended() == b""


async def test_connection_without_a_next_request_is_closed(live: Live) -> None:
    async with live(**{**PATIENT, "connection_idle_timeout_s": SOON_S}) as http, connected(http) as client:
        await client.send(HEAD)
        assert (await client.answer())[0] == 200
        assert await client.ended() == b""


async def test_next_request_has_a_deadline_for_its_head_too(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch, "head")
    async with live() as http, connected(http) as client:
        await client.send(HEAD)
        assert (await client.answer())[0] == 200
        await client.send(HEAD[:10])
        assert (await client.answer())[0] == 408


async def test_json_body_that_trickles_is_refused(live: Live) -> None:
    async with live(**PATIENT, request_body_timeout_s=SOON_S) as http, connected(http) as client:
        await client.send(
            b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        status, _, body = await client.answer()
        assert (status, reason(body)) == (408, "REQUEST_BODY_TIMEOUT")


async def test_form_that_trickles_before_its_file_is_refused(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "_LINGER_S", SOON_S)
    async with live(**PATIENT, request_body_timeout_s=SOON_S) as http, connected(http) as client:
        await client.send(
            b"POST /v1/collections/default/documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
        )
        status, _, body = await client.answer()
        assert (status, reason(body)) == (408, "UPLOAD_STALLED")


async def test_rest_of_a_body_that_nobody_wants_is_not_waited_for(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_DISCARD_S", SOON_S)
    async with live(**PATIENT) as http, connected(http) as client:
        await client.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\nx")
        assert (await client.answer())[0] == 200
        assert await client.ended() == b""


async def test_connection_lives_on_after_a_body_that_nobody_wanted_has_ended(live: Live) -> None:
    async with live(**PATIENT) as http, connected(http) as client:
        await client.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx")
        assert (await client.answer())[0] == 200
        await client.send(b"y" + HEAD)
        assert (await client.answer())[0] == 200


async def test_client_that_does_not_read_is_cut_off(live: Live, world: World) -> None:
    world.ingest.documents = {"d0000001": document("d0000001", size_bytes=64_000_000)}
    world.ingest.files = {"d0000001": b""}
    world.ingest.endless_bytes = 256 * 1024
    async with live(**{**PATIENT, "send_timeout_s": SOON_S}) as http, connected(http) as client:
        await client.send(b"GET /v1/documents/d0000001/content HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await world.ingest.download_ended.wait()


async def test_what_is_no_http_gets_a_problem(live: Live) -> None:
    async with live() as http, connected(http) as client:
        await client.send(b"\x16\x03\x01\x02\x00\r\n\r\n")
        status, headers, body = await client.answer()
        assert (status, reason(body)) == (400, "BAD_HTTP")
        assert headers["content-type"] == "application/problem+json"


async def test_waiting_connection_makes_room_for_a_new_one_longest_waiting_first(live: Live) -> None:
    async with live(**PATIENT, max_connections=3) as http, AsyncExitStack() as stack:
        waiting = [await stack.enter_async_context(connected(http)) for _ in range(3)]
        for client in waiting:  # the order in which they wait again
            await client.send(HEAD)
            assert (await client.answer())[0] == 200
        newcomer = await stack.enter_async_context(connected(http))
        await newcomer.send(HEAD)
        assert (await newcomer.answer())[0] == 200
        assert await waiting[0].ended() == b""
        await waiting[1].send(HEAD)
        assert (await waiting[1].answer())[0] == 200


async def test_newcomer_is_told_when_all_are_busy_and_health_still_answers(live: Live, world: World) -> None:
    async with live(**PATIENT, max_connections=2, max_event_streams=2) as http, AsyncExitStack() as stack:
        for _ in range(2):
            stream = await stack.enter_async_context(connected(http))
            await stream.send(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await stream.reader.readuntil(b"snapshot_complete")
        for path in (b"/livez", b"/readyz"):
            status, _, _ = await answered_and_closed(http, path)
            assert status == 200
        status, headers, body = await answered_and_closed(http, b"/v1/runs")
        assert (status, reason(body)) == (503, "TOO_MANY_CONNECTIONS")
        assert int(headers["retry-after"]) > 0


async def answered_and_closed(http: httpx.AsyncClient, path: bytes) -> tuple[int, dict[str, str], bytes]:
    """The one answer that a newcomer gets."""
    async with connected(http) as newcomer:
        await newcomer.send(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers, body = await newcomer.answer()
        assert headers["connection"] == "close"
        assert await newcomer.ended() == b""
        return status, headers, body


async def test_crowd_beyond_what_can_be_read_from_is_refused_at_once(
    live: Live, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_table, "_SPARE", 0)
    async with live(**PATIENT, max_connections=1) as http, AsyncExitStack() as stack:
        stream = await stack.enter_async_context(connected(http))
        await stream.send(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await stream.reader.readuntil(b"snapshot_complete")
        newcomer = await stack.enter_async_context(connected(http))
        status, _, body = await newcomer.answer()
        assert (status, reason(body)) == (503, "TOO_MANY_CONNECTIONS")


@pytest.mark.parametrize(
    ("open_files", "configured", "expected"),
    [
        (1024, None, 864),
        (1_000_000, None, 4096),
        (resource.RLIM_INFINITY, None, 4096),
        (64, None, 16),
        (1024, 100, 100),
        (1024, 5000, 864),
        (resource.RLIM_INFINITY, 5000, 5000),
        (1_000_000, 5000, 5000),
    ],
)
def test_limit_follows_the_limit_of_open_files(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, open_files: int, configured: int | None, expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (open_files, open_files))
    assert connection_limits(settings(max_connections=configured)).max_connections == expected


async def test_process_with_few_open_files_outlives_a_crowd_of_idle_sockets(settings: Settings) -> None:
    port = free_port()
    environment = {
        **os.environ,
        "GROUNDWORK_PORT": str(port),
        "GROUNDWORK_REQUEST_HEAD_TIMEOUT_S": str(NEVER_S),
        "GROUNDWORK_CONNECTION_IDLE_TIMEOUT_S": str(NEVER_S),
        "GROUNDWORK_CONNECTION_PATIENCE_S": "0",
        "GROUNDWORK_DRAIN_DELAY_S": "0",
    }
    command = (
        "import resource, runpy; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); "
        "runpy.run_module('services.gateway', run_name='__main__')"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", command),
        env=environment,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with (
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http,
            AsyncExitStack() as stack,
        ):
            async with asyncio.timeout(60):
                while not await _answers(http):
                    await asyncio.sleep(0.05)
            for _ in range(400):
                await stack.enter_async_context(connected(http))
            assert (await http.get("/livez", headers={"Connection": "close"})).status_code == 200
            assert (await http.get("/v1/runs")).json()["reason"] == "RPC_UNAVAILABLE"
    finally:
        process.terminate()
        await process.wait()


async def _answers(http: httpx.AsyncClient) -> bool:
    try:
        return (await http.get("/livez")).status_code == 200
    except httpx.TransportError:
        return False


async def test_process_serves_on_during_the_drain_delay_and_says_that_it_is_not_ready(
    settings: Settings, world: World
) -> None:
    port = free_port()
    changed = settings(port=port, grpc_address=f"127.0.0.1:{free_port()}", drain_delay_s=NEVER_S)
    async with (
        running_service(run, changed),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http,
        http.stream("GET", "/v1/events") as stream,
    ):
        lines = stream.aiter_lines()
        await _read_until(lines, "event: snapshot_complete")
        signal.raise_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            while (await http.get("/readyz")).status_code != 503:
                pass
        assert (await http.post("/v1/search", json={"query": "notice"})).status_code == 200
        world.ingest.changes.put_nowait(ingest_pb2.WatchDocumentsResponse(document=document("d0000001")))
        await _read_until(lines, "event: document")


async def test_door_closes_once_the_drain_delay_is_over(settings: Settings, world: World) -> None:
    port = free_port()
    changed = settings(port=port, grpc_address=f"127.0.0.1:{free_port()}", drain_delay_s=0.1, drain_grace_s=1)
    async with (
        running_service(run, changed),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http,
        http.stream("GET", "/v1/events") as stream,
    ):
        lines = stream.aiter_lines()
        await _read_until(lines, "event: snapshot_complete")
        signal.raise_signal(signal.SIGTERM)
        assert [line async for line in lines if line.startswith("event:")] == []
        async with asyncio.timeout(60):
            while not await _is_refused(http):
                pass


async def _is_refused(http: httpx.AsyncClient) -> bool:
    try:
        await http.get("/livez")
    except httpx.ConnectError:
        return True
    except httpx.TransportError:
        return False
    return False


async def _read_until(lines: AsyncIterator[str], wanted: str) -> None:
    async for line in lines:
        if line == wanted:
            return
    raise AssertionError(f"the stream ended before {wanted!r}")
