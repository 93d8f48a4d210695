"""Reads hostile addresses in a network namespace that has nothing but loopback, and says which addresses were connected to. There,
the loopback interface has every address that must not be reached, and one that stands for the public internet, PUBLIC; a server
listens on all of them. It is a program: addresses come as JSON on its standard input."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import re
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from kit.network.egress import EgressGuard
from services.tools.adapters.http.web_client import GuardedWebClient
from services.tools.errors import ToolError
from services.tools.web.fetching import Fetcher
from services.tools.web.windows import SharedWindows
from tests.unit.orchestrator.limits.counting import MemoryCounters

PUBLIC = "93.184.216.34"
PRIVATE = (
    "169.254.169.254/32",
    "169.254.170.2/32",
    "10.0.0.5/32",
    "172.16.0.5/32",
    "192.168.0.5/32",
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "fd00:ec2::254/128",
    "fe80::a9fe:a9fe/128",
)
PORTS = (22, 25, 53, 80, 443, 3306, 5432, 6379, 8000, 8080, 9000, 9200, 11211)
_INSIDE = re.compile(r"(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})")
"""An address in a name, as 127.0.0.1.nip.io has one."""


class HostileNames:
    """A name server of the attacker's: whatever is asked for leads inside, or does so the second time."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    async def look_up(self, host: str, port: int) -> Sequence[str]:
        self._asked[host] += 1
        with contextlib.suppress(OSError, ValueError):
            ipaddress.ip_address(host.strip("[]"))
            return [str(found[4][0]) for found in socket.getaddrinfo(host.strip("[]"), port)]
        if host == "public.test":
            return [PUBLIC]
        if host == "rebind.test":
            return [PUBLIC if self._asked[host] % 2 else "127.0.0.1"]
        if host == "mixed.test":
            return ["169.254.169.254", "127.0.0.1", PUBLIC, "10.0.0.5"]
        if inside := _INSIDE.search(host):
            return [".".join(inside.groups())]
        return ["127.0.0.1", "::1", "169.254.169.254"]


class Servers:
    """Everything that listens. `reached` are the addresses that were connected to."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.redirects: dict[str, str] = {}
        self._numbers = count()

    def redirect(self, location: str) -> str:
        """An address of the public server that redirects."""
        path = f"/r{next(self._numbers)}"
        self.redirects[path] = location
        return f"http://public.test{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(writer.get_extra_info("sockname")[0])
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
            target = head.split(" ")[1]
            writer.write(self._answer(target))
            await writer.drain()
        writer.close()

    def _answer(self, target: str) -> bytes:
        if target == "/robots.txt":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        if target in self.redirects:
            return f"HTTP/1.1 302 Found\r\nLocation: {self.redirects[target]}\r\nContent-Length: 0\r\n\r\n".encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nSECRET"


Read = Callable[[str], Awaitable[str]]
"""Reads an address, and returns the reason of the refusal, or where what was read came from."""
OpenReader = Callable[[contextlib.AsyncExitStack, EgressGuard], Awaitable[Read]]


async def attack(urls: Sequence[str], open_reader: OpenReader) -> dict[str, Any]:
    """Reads each address, and each behind a redirect, and tells the outcomes and what was reached."""
    servers = Servers()
    async with contextlib.AsyncExitStack() as stack:
        for family, everywhere in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            for port in PORTS:
                listening = socket.socket(family)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind((everywhere, port))
                await stack.enter_async_context(await asyncio.start_server(servers.serve, sock=listening))
        read = await open_reader(stack, EgressGuard(look_up=HostileNames().look_up))
        outcomes = {url: await read(url) for url in urls}
        behind = {url: await read(servers.redirect(url)) for url in urls if url.isprintable()}
    return {"outcomes": outcomes, "behind_redirects": behind, "reached": sorted(set(servers.reached))}


async def _fetcher(stack: contextlib.AsyncExitStack, guard: EgressGuard) -> Read:
    client = GuardedWebClient(guard, "groundwork")
    stack.push_async_callback(client.close)
    hosts = ("*", *(f"*:{port}" for port in PORTS))
    windows = SharedWindows(10**6, 10**6, MemoryCounters(), lambda: datetime.now(UTC))
    fetcher = Fetcher(client, windows, hosts=hosts, user_agent="groundwork", fresh_s=0.0)

    async def read(url: str) -> str:
        try:
            return f"read from {urlsplit((await fetcher.fetch(url, 'run')).url).hostname}"
        except ToolError as error:
            return error.reason

    return read


def main(open_reader: OpenReader) -> None:
    """Attacks by the addresses on standard input."""
    print(json.dumps(asyncio.run(attack(json.load(sys.stdin), open_reader))))


if __name__ == "__main__":
    main(_fetcher)
