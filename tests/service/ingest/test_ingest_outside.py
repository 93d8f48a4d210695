"""How sources ask servers: patiently, and nowhere inside."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest
from aiohttp import web

from kit.network.egress import EgressGuard, parse_networks
from services.ingest.adapters import source_http as source_http_module
from services.ingest.adapters.source_http import SourceHttp, body_of, source_http
from services.ingest.errors import FileNotTaken, SourceAway, SourceBusy
from tests.doubles.http_double import LOOPBACK, OTHER_LOOPBACK, Failure, HttpDouble, Recorded
from tests.service.tools.web.attacks import PUBLIC
from tests.service.tools.web.test_web_attacks import OWN, attacked, read_inside

GUARD = EgressGuard(parse_networks("127.0.0.0/8"))


class Server(HttpDouble):
    async def respond(self, request: Recorded) -> web.Response:
        return self.answer(200, {"path": request.path})


@asynccontextmanager
async def patient() -> AsyncIterator[tuple[SourceHttp, list[float]]]:
    """A client to which waiting takes no time, and how long it has waited."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with httpx.AsyncHTTPTransport() as transport:
        yield SourceHttp(transport, sleep=sleep, clock=lambda: sum(waits)), waits


async def test_server_that_asks_for_patience_gets_it() -> None:
    server = Server()
    server.failures = [Failure("GET /a", 429, headers={"retry-after": "7"}), Failure("GET /a", 503)]
    async with server.running(), patient() as (http, waits):
        assert (await http.text(f"{server.url}/a")).json() == {"path": "/a"}
    assert waits == [7.0, 4.0]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("status", "headers"),
    [(429, {"retry-after": "3600"}), (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999"})],
)
async def test_server_that_wants_long_rest_is_left_alone(status: int, headers: Mapping[str, str]) -> None:
    server = Server()
    server.failures = [Failure("GET /a", status, headers=headers)]
    async with server.running(), patient() as (http, waits):
        with pytest.raises(SourceBusy) as busy:
            await http.text(f"{server.url}/a")
    assert waits == []
    assert busy.value.retry_after_s is not None
    assert busy.value.retry_after_s >= 3600.0


@pytest.mark.parametrize(("said", "heeded_s"), [("1e12", 7 * 86_400.0), ("inf", 60.0), ("nan", 60.0)])
async def test_rest_without_measure_is_bounded(said: str, heeded_s: float) -> None:
    server = Server()
    server.failures = [Failure("GET /a", 429, headers={"retry-after": said})] * 3
    async with server.running(), patient() as (http, _):
        with pytest.raises(SourceBusy) as busy:
            await http.text(f"{server.url}/a")
    assert busy.value.retry_after_s == heeded_s


async def test_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_http_module, "_TEXT_S", 0.3)

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        over.set()

    over = asyncio.Event()
    server = await asyncio.start_server(drip, LOOPBACK)
    port = server.sockets[0].getsockname()[1]
    async with server, source_http(GUARD) as http:
        with pytest.raises(SourceAway, match="longer than"):
            await http.text(f"http://{LOOPBACK}:{port}/")
        await over.wait()


async def test_server_that_fails_for_good_is_asked_thrice() -> None:
    server = Server()
    server.failures = [Failure("GET /a", 500)] * 3
    async with server.running(), patient() as (http, _):
        assert (await http.text(f"{server.url}/a")).status_code == 500
    assert len(server.requests) == 3


async def test_redirect_takes_no_credentials_to_another_server() -> None:
    async def sign(_: httpx.Request) -> Mapping[str, str]:
        return {"Authorization": "Bearer s3cret"}

    home, other = Server(), Server()
    async with home.running(), other.running(OTHER_LOOPBACK), source_http(GUARD, sign) as http:
        home.failures = [Failure("GET /a", 302, headers={"location": f"{other.url}/b"})]
        assert (await http.text(f"{home.url}/a")).json() == {"path": "/b"}
    assert home.requests[0].headers["authorization"] == "Bearer s3cret"
    assert "authorization" not in other.requests[0].headers


async def test_redirects_that_never_end_are_given_up() -> None:
    server = Server()
    async with server.running(), source_http(GUARD) as http:
        server.failures = [Failure("GET /a", 302, headers={"location": "/a"})] * 9
        with pytest.raises(SourceAway, match="redirects"):
            await http.text(f"{server.url}/a")


async def test_file_that_ends_early_is_not_taken() -> None:
    async def cut_off(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(cut_off, LOOPBACK)
    port = server.sockets[0].getsockname()[1]
    async with server, source_http(GUARD) as http, http.ask(f"http://{LOOPBACK}:{port}/") as answer:
        with pytest.raises(FileNotTaken, match="ended early"):
            _ = [piece async for piece in body_of(answer)]


def test_addresses_that_lead_inside_reach_nothing_inside() -> None:
    told = attacked(OWN, "tests.service.ingest.outside_attacks")
    assert told["reached"] == [PUBLIC]
    assert read_inside(told["outcomes"]) == {}
    assert read_inside(told["behind_redirects"]) == {}
