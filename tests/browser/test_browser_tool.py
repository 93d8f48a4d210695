"""The tools browser_task and browser_submit with a real Chromium, on web sites of the test's own."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import Mock

import pytest

from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.browser import running
from services.tools.adapters.browser.running import ChromiumBrowser, find_program
from services.tools.context import Services
from services.tools.web.pages import PageText
from services.tools.web.reader import FileReader
from services.tools.web.sections import PagePassage
from tests.service.tools.boxes import Box
from tests.service.tools.http_server import Asked, HttpServer, http_server, said
from tests.service.tools.web.attacks import PUBLIC
from tests.service.tools.web.reading import LOOPBACK, web_box
from tests.service.tools.web.test_web_attacks import OWN, attacked

pytestmark = pytest.mark.skipif(
    not find_program("chromium"), reason="skipped: Chromium is not installed; .ci/run installs the package of Debian"
)

DRAWN = """<!doctype html><title>Fees</title><main id=main></main>
<a href="/winter">Winter prices</a> <a href="/fees.pdf">As a file</a>
<form action="/book" method=post><label>Name <input name=name></label><button>Book</button></form>
<script>
  document.getElementById("main").innerHTML = "<h1>Fees</h1><p>A boat of up to ten metres pays 42 euros a night.</p>";
  fetch("/count", {method: "POST", body: "seen"}).catch(() => {});
  const field = document.querySelector("input");
  field.oninput = () => { fetch("/leak?typed=" + field.value).catch(() => {}); new Image().src = "/image?" + field.value; };
</script>"""
WINTER = "<!doctype html><title>Winter</title><main><p>In winter the harbour is closed to all visitors.</p></main>"


def harbour(asked: Asked) -> bytes:
    if asked.target == "/":
        return said(DRAWN, content_type="text/html")
    if asked.target == "/winter":
        return said(WINTER, content_type="text/html")
    if asked.target == "/fees.pdf":
        return said(
            "%PDF-1.4 fees", content_type="application/pdf", Content_Disposition="attachment; filename=fees.pdf"
        )
    if asked.target == "/book":
        return said(f"<p>Booked for {asked.body.decode()}, see you at the harbour.</p>", content_type="text/html")
    return said("", "404 Not Found")


def box(port: int, **more: Any) -> Box:
    files = Mock(spec=FileReader)

    async def read_file(name: str, data: bytes) -> PageText:
        text = f"{name} begins with {data[:4]!r}."
        return PageText(text, name, parts=[PagePassage(text, (), 0)])

    files.read_file = read_file
    services = Mock(spec=Services)
    services.browser = ChromiumBrowser(
        EgressGuard(parse_networks(LOOPBACK)),
        find_program("chromium"),
        (f"127.0.0.1:{port}",),
        "groundwork",
        memory_max_mb=1_500,
    )
    return web_box([port], services=services, files=files, **more)


async def test_pages_that_scripts_draw_are_read_and_nothing_typed_leaves() -> None:
    async with http_server(HttpServer(harbour)) as server:
        steps = [
            {"do": "open", "url": server.url()},
            {"do": "read"},
            {"do": "screenshot"},
            {"do": "click", "target": "Winter prices"},
            {"do": "read"},
            {"do": "open", "url": server.url()},
            {"do": "click", "target": "As a file"},
            {"do": "fill", "target": "Name", "text": "secret"},
            {"do": "click", "target": "Book"},
        ]
        outcome = await box(server.port).call("browser_task", {"steps": steps})
    assert outcome.ok, outcome.error_message
    texts = " ".join(passage.text for passage in outcome.passages)
    for words in (
        "42 euros a night",
        "closed to all visitors",
        "screenshot.png begins with b'\\x89PNG'",
        "fees.pdf begins with b'%PDF'",
    ):
        assert words in texts
    elements = outcome.output["pages"][0]["elements"]
    assert {"kind": "link", "name": "Winter prices"} in elements
    assert {"kind": "field", "name": "Name"} in elements
    assert {each.method for each in server.asked} == {"GET"}
    assert "secret" not in " ".join(each.target for each in server.asked)
    assert any("browser_submit" in each for each in outcome.output["not_let_out"])


async def test_form_is_submitted_with_a_persons_approval_only() -> None:
    async with http_server(HttpServer(harbour)) as server:
        own = box(server.port)
        steps = [
            {"do": "open", "url": server.url()},
            {"do": "fill", "target": "Name", "text": "Ann"},
            {"do": "submit"},
            {"do": "read"},
        ]
        outcome = await own.call("browser_submit", {"steps": steps}, "one call")
        again = await own.call("browser_submit", {"steps": steps}, "one call")
    assert outcome.ok, outcome.error_message
    assert "Booked for name=Ann" in " ".join(passage.text for passage in outcome.passages)
    assert again.output == outcome.output
    assert [each.body for each in server.asked if each.target == "/book"] == [b"name=Ann"]


async def test_page_that_never_ends_is_ended_with_its_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.Event()

    def endless(asked: Asked) -> bytes:
        if asked.target == "/robots.txt":
            return said("", "404 Not Found")
        began.set()
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999\r\n\r\n<p>It begins"

    async with http_server(HttpServer(endless)) as server:
        own = box(server.port)
        families: list[Any] = []
        make = running._Family
        monkeypatch.setattr(running, "_Family", lambda pid: families.append(make(pid)) or families[-1])
        call = asyncio.create_task(own.call("browser_task", {"steps": [{"do": "open", "url": server.url()}]}))
        await began.wait()
        server.ends = asyncio.Event()
        call.cancel()
        await asyncio.wait([call])
    assert not [each for each in families[0]._known if each.is_running() and each.status() != "zombie"]


def test_pages_reach_nothing_inside() -> None:
    """Each address as a picture, script, frame and socket, and by fetch, also behind redirects, where there is no network."""
    told = attacked([url for url in OWN if url.isprintable()], "tests.browser.hostile_page")
    assert told["opened"], told
    assert set(told["reached"]) == {PUBLIC}, json.dumps(told)[:2000]
    assert told["asked"] > 30
