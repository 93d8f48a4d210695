"""Opens a page that asks for hostile addresses in every way that a page can, in a network namespace that has nothing but loopback
(tests/service/tools/web/attacks.py), and says which addresses were connected to. Addresses come as JSON on its standard input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Sequence
from html import escape
from typing import Any

from kit.network.egress import EgressGuard
from services.tools.adapters.browser.running import ChromiumBrowser, find_program
from services.tools.browser.steps import BrowserTask
from tests.service.tools.web.attacks import PORTS, HostileNames, Servers

SCRIPT = """
const urls = %s;
for (const url of urls) {
  try { fetch(url, {mode: "no-cors"}).catch(() => {}); } catch (e) {}
  try { new WebSocket(url.replace(/^http/, "ws")); } catch (e) {}
  try { navigator.sendBeacon(url, "x"); } catch (e) {}
}
try {
  const peer = new RTCPeerConnection({iceServers: [{urls: "stun:10.0.0.5:3478"}, {urls: "turn:10.0.0.5:3478?transport=tcp",
    username: "a", credential: "b"}]});
  peer.createDataChannel("x");
  peer.createOffer().then(offer => peer.setLocalDescription(offer));
} catch (e) {}
navigator.serviceWorker && navigator.serviceWorker.register("/worker.js").catch(() => {});
"""


class HostileSite(Servers):
    """The public server has a page that asks for everything."""

    def __init__(self) -> None:
        super().__init__()
        self.page = ""
        self.asked = 0

    def _answer(self, target: str) -> bytes:
        self.asked += 1
        if target == "/page":
            body = self.page.encode()
            return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        return super()._answer(target)


def _page(urls: Sequence[str]) -> str:
    ways = (
        "<img src='{0}'>",
        "<script async src='{0}'></script>",
        "<iframe src='{0}'></iframe>",
        "<link rel=stylesheet href='{0}'>",
    )
    more = ("<link rel=preconnect href='{0}'>", "<link rel=dns-prefetch href='{0}'>", "<link rel=prefetch href='{0}'>")
    tags = [way.format(escape(url, quote=True)) for url in urls for way in (*ways, *more)]
    return f"<!doctype html><title>Hostile</title><p>A page.</p>{''.join(tags)}<script>{SCRIPT % json.dumps(urls)}</script>"


async def _attack(urls: Sequence[str]) -> dict[str, Any]:
    servers = HostileSite()
    async with contextlib.AsyncExitStack() as stack:
        for family, everywhere in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            for port in PORTS:
                listening = socket.socket(family)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind((everywhere, port))
                await stack.enter_async_context(await asyncio.start_server(servers.serve, sock=listening))
        behind = [servers.redirect(url) for url in urls]
        servers.page = _page([*urls, *behind])
        hosts = ("*", *(f"*:{port}" for port in PORTS))
        guard = EgressGuard(look_up=HostileNames().look_up)
        browser = ChromiumBrowser(guard, find_program("chromium"), hosts, "groundwork", memory_max_mb=2_000)
        steps = [{"do": "open", "url": "http://public.test/page"}, {"do": "wait", "seconds": 3}, {"do": "read"}]

        async def permit(_: str) -> None:
            """The guard of the proxy alone is tried."""

        report = await browser.run(BrowserTask(steps, may_submit=True), permit)
    return {
        "reached": sorted(set(servers.reached)),
        "asked": servers.asked,
        "opened": [each.url for each in report.seen],
        "stopped": report.stopped,
        "outcomes": {},
        "behind_redirects": {},
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_attack(json.load(sys.stdin)))))
