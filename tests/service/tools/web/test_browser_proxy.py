"""The proxy that carries a browser's requests, over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.browser.proxy import BrowserProxy
from tests.service.tools.http_server import HttpServer, http_server, said
from tests.service.tools.web.attacks import HostileNames

LOOPBACK = parse_networks("127.0.0.0/8")
PAGE = said("a page", "200 OK", "text/plain")


class Proxied:
    """Requests through the proxy."""

    def __init__(self, proxy: BrowserProxy, path: Path) -> None:
        self.proxy = proxy
        self._path = path

    async def send(self, head: str, body: str = "") -> str:
        """All that comes back."""
        reader, writer = await asyncio.open_unix_connection(self._path)
        writer.write(f"{head}\r\n\r\n{body}".encode())
        answer = (await reader.read()).decode()
        writer.close()
        return answer


@asynccontextmanager
async def proxied(
    folder: Path, hosts: str = "*", guard: EgressGuard | None = None, *, may_submit: bool = False
) -> AsyncIterator[Proxied]:
    proxy = BrowserProxy(guard or EgressGuard(LOOPBACK), tuple(hosts.split(",")), may_submit=may_submit)
    async with proxy.listening(folder / "out"):
        yield Proxied(proxy, folder / "out")


async def test_request_is_carried_over_a_connection_of_its_own(tmp_path: Path) -> None:
    async with http_server(HttpServer(lambda _: PAGE)) as server, proxied(tmp_path, f"*:{server.port}") as through:
        answer = await through.send(
            f"GET {server.url('/a?b=c')} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nProxy-Connection: keep-alive"
        )
    assert answer.startswith("HTTP/1.1 200")
    assert answer.endswith("a page")
    assert "connection: close" in answer.lower()
    assert server.asked[0].target == "/a?b=c"
    assert "proxy-connection" not in server.asked[0].headers
    assert server.asked[0].headers["connection"] == "close"


async def test_tunnel_leads_to_the_judged_address(tmp_path: Path) -> None:
    async with http_server(HttpServer(lambda _: PAGE)) as server, proxied(tmp_path, f"*:{server.port}") as through:
        place = f"127.0.0.1:{server.port}"
        answer = await through.send(
            f"CONNECT {place} HTTP/1.1\r\nHost: {place}", f"GET / HTTP/1.1\r\nHost: {place}\r\n\r\n"
        )
    assert answer.startswith("HTTP/1.1 200")
    assert answer.endswith("a page")


async def test_what_would_submit_is_carried_only_where_it_may(tmp_path: Path) -> None:
    async with http_server(HttpServer(lambda _: PAGE)) as server:
        head = f"POST {server.url('/send')} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5"
        async with proxied(tmp_path, f"*:{server.port}") as reading:
            assert (await reading.send(head, "n=Ann")).startswith("HTTP/1.1 403")
        assert server.asked == []
        async with proxied(tmp_path, f"*:{server.port}", may_submit=True) as submitting:
            assert (await submitting.send(head, "n=Ann")).startswith("HTTP/1.1 200")
    assert [each.body for each in server.asked] == [b"n=Ann"]


async def test_hosts_that_are_not_listed_and_addresses_inside_are_refused(tmp_path: Path) -> None:
    names = HostileNames()
    targets = [
        "rebind.test:443",
        "mixed.inside.test:443",
        "169.254.169.254:80",
        "[fd00:ec2::254]:80",
        "[::ffff:127.0.0.1]:443",
        "localhost:80",
        "0x7f000001:80",
        "127.1:80",
    ]
    async with proxied(tmp_path, "*", EgressGuard(look_up=names.look_up)) as through:
        await names.look_up("rebind.test", 443)  # its next answer leads inside
        for target in targets:
            answer = await through.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}")
            assert answer.startswith("HTTP/1.1 403"), target
            answer = await through.send(f"GET http://{target.replace('rebind', 'evil')}/ HTTP/1.1\r\nHost: x")
            assert answer.startswith("HTTP/1.1 403"), target
        for target in ("ftp://public.test/", "file:///etc/passwd", "https://public.test/"):
            assert (await through.send(f"GET {target} HTTP/1.1\r\nHost: x")).startswith("HTTP/1.1 403")
    assert len(through.proxy.refused) >= len(targets)
    async with proxied(tmp_path, "docs.example.com") as listed:
        answer = await listed.send("CONNECT other.example.com:443 HTTP/1.1\r\nHost: other.example.com")
    assert answer.startswith("HTTP/1.1 403")
    assert "not a web site that this installation reads" in answer


async def test_what_chromium_asks_for_itself_goes_nowhere_and_is_not_told(tmp_path: Path) -> None:
    async with proxied(tmp_path) as through:
        answer = await through.send("CONNECT update.googleapis.com:443 HTTP/1.1\r\nHost: update.googleapis.com")
    assert answer.startswith("HTTP/1.1 410")
    assert through.proxy.refused == {}


async def test_endless_answer_ends_at_the_bound_of_a_task(tmp_path: Path) -> None:
    body = said("x" * 200_000)
    async with http_server(HttpServer(lambda _: body)) as server, proxied(tmp_path, f"*:{server.port}") as through:
        through.proxy._bytes_left = 100_000
        answer = await through.send(f"GET {server.url()} HTTP/1.1\r\nHost: 127.0.0.1")
    assert len(answer) < 150_000
    assert list(through.proxy.refused) == ["more data"]
