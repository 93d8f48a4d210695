"""Reading web pages, over real connections to servers of the test's own."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from typing import Any
from unittest.mock import Mock

import pytest
from pydantic import ValidationError

from kit.errors import Unavailable
from kit.limits.counters import Counter
from kit.network.egress import EgressGuard, parse_networks
from services.tools.adapters.http import web_client
from services.tools.context import Services
from services.tools.settings import ToolsSettings
from services.tools.toolbox.network import web_fetch
from services.tools.web.files import PAGE_BYTES_MAX
from tests.service.tools.boxes import Box
from tests.service.tools.http_server import Asked, HttpServer, http_server, said
from tests.service.tools.web.reading import LOOPBACK, Clock, html, web_box
from tests.unit.orchestrator.limits.counting import MemoryCounters

PARAGRAPH = (
    "The harbour fee for boats of up to ten metres is 42 euros a night, and children under twelve sleep for nothing."
)
ARTICLE = html(
    f"""<nav><a href="/imprint">Imprint</a></nav><article><h1>Fees of the harbour</h1><p>{PARAGRAPH}</p>
    <h2>Winter</h2><p>From <b>November</b> to March the harbour is closed; see <a href="/winter#ice">the winter page</a> for
    what happens to boats that stay.</p></article><footer>© the harbour</footer>""",
    """<title>Fees</title><meta name="author" content="Ann Seller">
    <meta property="article:published_time" content="2026-03-04T10:00:00Z">""",
)


def page(text: str = ARTICLE, **headers: str) -> bytes:
    return said(text, content_type="text/html; charset=utf-8", **headers)


def site(pages: dict[str, bytes], robots: str = "") -> HttpServer:
    def answer(asked: Asked) -> bytes:
        if asked.target == "/robots.txt":
            return said(robots) if robots else said("", "404 Not Found")
        return pages.get(asked.target, said("", "404 Not Found"))

    return HttpServer(answer)


def targets(server: HttpServer) -> list[str]:
    return [asked.target for asked in server.asked if asked.target != "/robots.txt"]


async def test_page_is_read_without_its_menu_as_passages_that_can_be_cited() -> None:
    async with http_server(site({"/fees": page()})) as server:
        outcome = await web_box([server.port]).call("web_fetch", {"url": server.url("/fees"), "links": True})
    assert outcome.ok, outcome.error_message
    known = outcome.output
    assert (known["url"], known["title"], known["published"], known["author"]) == (
        server.url("/fees"),
        "Fees of the harbour",
        "2026-03-04",
        "Ann Seller",
    )
    assert [link["url"] for link in known["links"]] == [server.url("/imprint"), server.url("/winter")]
    first, winter = outcome.passages
    assert (first.text, first.heading_path) == (PARAGRAPH, ("Fees of the harbour",))
    assert winter.heading_path == ("Fees of the harbour", "Winter")
    assert "From November to March" in winter.text
    assert all("Imprint" not in passage.text for passage in outcome.passages)
    assert first.document_name == "Fees of the harbour (127.0.0.1)"
    assert first.hit.chunk.text == PARAGRAPH
    assert [passage["source"]["text"] for passage in known["passages"]] == [first.text, winter.text]


async def test_long_page_is_read_on_from_a_passage() -> None:
    text = html(
        "<article>" + "".join(f"<p>Paragraph {number}. {PARAGRAPH}</p>" for number in range(200)) + "</article>"
    )
    async with http_server(site({"/long": page(text)})) as server:
        box = web_box([server.port])
        first = await box.call("web_fetch", {"url": server.url("/long")})
        on = first.passages[-1].ordinal + 1
        then = await box.call("web_fetch", {"url": server.url("/long"), "from_passage": on})
        past = await box.call("web_fetch", {"url": server.url("/long"), "from_passage": 10_000})
    assert f"from_passage={on}" in first.output["more"]
    assert then.passages[0].ordinal == on
    assert first.passages[-1].text not in then.passages[0].text
    assert past.error_reason == "INVALID_ARGUMENTS"
    assert targets(server) == ["/long"]


@pytest.mark.parametrize(
    ("content_type", "reason", "says"),
    [
        ("image/png", "WEB_NOT_A_PAGE", "image/png"),
        ("text/html", "WEB_NO_TEXT", "no text of its own"),
    ],
)
async def test_what_is_no_page_is_refused_with_what_to_do(content_type: str, reason: str, says: str) -> None:
    async with http_server(site({"/file": said("", content_type=content_type)})) as server:
        outcome = await web_box([server.port]).call("web_fetch", {"url": server.url("/file")})
    assert outcome.error_reason == reason
    assert says in outcome.error_message


async def test_text_is_read_in_the_charset_that_the_server_names() -> None:
    body = "Gebühr für Übernachtungen".encode("latin-1")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=latin-1\r\nContent-Length: {len(body)}\r\n\r\n"
    async with http_server(site({"/": head.encode() + body})) as server:
        outcome = await web_box([server.port]).call("web_fetch", {"url": server.url()})
    assert outcome.passages[0].text == "Gebühr für Übernachtungen"


async def test_page_is_kept_for_a_while_and_then_asked_for_only_if_it_changed() -> None:
    def answer(asked: Asked) -> bytes:
        if asked.headers.get("if-none-match") == '"v1"':
            return b"HTTP/1.1 304 Not Modified\r\n\r\n"
        return page(ETag='"v1"')

    clock = Clock()
    async with http_server(HttpServer(answer)) as server:
        box = web_box([server.port], clock, tools_web_robots=False)
        url = {"url": server.url("/fees")}
        texts = [(await box.call("web_fetch", url)).passages[0].text for _ in range(2)]
        clock.now_s += 601.0
        texts.append((await box.call("web_fetch", url)).passages[0].text)
        texts.append((await box.call("web_fetch", url)).passages[0].text)
    assert texts == [PARAGRAPH] * 4
    assert [asked.headers.get("if-none-match") for asked in server.asked] == [None, '"v1"']


async def test_page_that_must_not_be_stored_is_asked_for_anew() -> None:
    async with http_server(site({"/": page(Cache_Control="private, no-store")})) as server:
        box = web_box([server.port])
        for _ in range(2):
            await box.call("web_fetch", {"url": server.url()})
    assert targets(server) == ["/", "/"]


async def test_robots_are_obeyed_on_every_step_of_a_redirect() -> None:
    rules = "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: other\nDisallow: /"
    pages = {
        "/": page(),
        "/private/open": page(),
        "/private/x": page(),
        "/to": said("", "302 Found", Location="/private/x"),
    }
    async with http_server(site(pages, rules)) as server:
        box = web_box([server.port])
        reasons = [
            (await box.call("web_fetch", {"url": server.url(path)})).error_reason
            for path in ("/", "/private/open", "/private/x", "/to")
        ]
        switched_off = web_box([server.port], tools_web_robots=False)
        ignored = await switched_off.call("web_fetch", {"url": server.url("/private/x")})
    assert reasons == ["", "", "ROBOTS_DISALLOW", "ROBOTS_DISALLOW"]
    assert ignored.ok
    assert [asked.target for asked in server.asked].count("/robots.txt") == 1
    assert targets(server) == ["/", "/private/open", "/to", "/private/x"]


async def test_site_that_cannot_say_what_it_allows_is_not_read() -> None:
    def answer(asked: Asked) -> bytes:
        return said("", "500 Oops") if asked.target == "/robots.txt" else page()

    async with http_server(HttpServer(answer)) as server:
        outcome = await web_box([server.port]).call("web_fetch", {"url": server.url("/fees")})
    assert (outcome.error_reason, targets(server)) == ("WEB_FAILED", [])


async def test_host_and_run_have_windows() -> None:
    clock = Clock()
    async with http_server(site({f"/{number}": page() for number in range(9)})) as server:
        box = web_box([server.port], clock, tools_web_host_per_minute=2, tools_web_run_pages=3)

        async def read(number: int, call_id: str) -> str:
            outcome = await box.call("web_fetch", {"url": server.url(f"/{number}")}, call_id)
            return outcome.error_message

        assert [await read(number, f"run1/call{number}") for number in range(2)] == ["", ""]
        assert "try again in 60 s" in await read(2, "run2/call0")
        clock.now_s += 61.0
        assert await read(2, "run1/call2") == ""
        assert "has read 3 pages" in await read(3, "run1/call3")
        assert await read(3, "run2/call1") == ""
    assert targets(server) == ["/0", "/1", "/2", "/3"]


async def test_host_is_asked_by_all_replicas_together_as_often_as_one_may() -> None:
    clock, counters = Clock(), MemoryCounters()
    async with http_server(site({f"/{number}": page() for number in range(40)})) as server:
        more: dict[str, Any] = {"counters": counters, "tools_web_host_per_minute": 10, "tools_web_robots": False}
        replicas = [web_box([server.port], clock, **more) for _ in range(4)]

        async def read(number: int) -> str:
            url = {"url": server.url(f"/{number}")}
            return (await replicas[number % 4].call("web_fetch", url, f"run{number}/call")).error_message

        refused = [each for each in await asyncio.gather(*map(read, range(40))) if each]
        assert len(targets(server)) == 10
        assert {each.partition("try again in")[1] for each in refused} == {"try again in"}
        replicas[0] = web_box([server.port], clock, **more)  # it was started anew
        assert await read(4)
        clock.now_s += 61.0
        assert await read(0) == ""


async def test_replica_counts_for_itself_while_the_count_of_all_is_silent() -> None:
    class Silent(MemoryCounters):
        asked = 0

        async def add(self, counter: Counter, amount: int, once: str = "") -> int:
            self.asked += 1
            raise Unavailable("the message store does not answer")

    silent = Silent()
    async with http_server(site({f"/{number}": page() for number in range(4)})) as server:
        box = web_box([server.port], counters=silent, tools_web_host_per_minute=2, tools_web_robots=False)
        calls = [box.call("web_fetch", {"url": server.url(f"/{number}")}, f"run{number}/call") for number in range(4)]
        outcomes = [(await each).error_message for each in calls]
    assert [bool(each) for each in outcomes] == [False, False, True, True]
    assert silent.asked == 1  # the second request does not wait for it again


async def test_host_that_asks_for_a_pause_gets_it() -> None:
    clock = Clock()
    answers = [said("", "429 Too Many Requests", Retry_After="120"), page()]
    async with http_server(HttpServer(lambda _: answers.pop(0))) as server:
        box = web_box([server.port], clock, tools_web_robots=False)
        url = {"url": server.url()}
        told = [(await box.call("web_fetch", url)).error_message]
        clock.now_s += 100.0
        told.append((await box.call("web_fetch", url)).error_message)
        clock.now_s += 21.0
        told.append((await box.call("web_fetch", url)).error_message)
    assert "asked too often" in told[0]
    assert "try again in 20 s" in told[1]
    assert told[2] == ""


async def test_cookies_of_a_site_are_not_kept() -> None:
    async with http_server(site({"/a": page(Set_Cookie="id=ann"), "/b": page()})) as server:
        box = web_box([server.port])
        for path in ("/a", "/b"):
            await box.call("web_fetch", {"url": server.url(path)})
    assert all("cookie" not in asked.headers for asked in server.asked)


def _packed(kind: str, size: int) -> bytes:
    text = b"<p>" + b"a " * (size // 2)
    packed = gzip.compress(text) if kind == "gzip" else zlib.compress(text)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: {kind}\r\nContent-Length: {len(packed)}\r\n\r\n"
    return head.encode() + packed


@pytest.mark.parametrize("kind", ["gzip", "deflate"])
async def test_what_unfolds_to_far_more_than_it_may_is_cut(kind: str) -> None:
    async with http_server(site({"/": _packed(kind, 20_000_000), "/small": _packed(kind, 20)})) as server:
        client = web_client.GuardedWebClient(EgressGuard(parse_networks(LOOPBACK)), "groundwork")
        bomb, small = await client.get(server.url(), {}), await client.get(server.url("/small"), {})
        await client.close()
    assert (len(bomb.body), bomb.is_truncated) == (PAGE_BYTES_MAX, True)
    assert (small.body, small.is_truncated) == (b"<p>" + b"a " * 10, False)


async def test_endless_and_slow_bodies_are_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "BODY_TIMEOUT_S", 0.2)
    begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nThe beginning."
    async with http_server(HttpServer(lambda _: begun, ends=asyncio.Event())) as server:
        outcome = await web_box([server.port], tools_web_robots=False).call("web_fetch", {"url": server.url()})
        assert server.ends is not None
        server.ends.set()
    assert (outcome.passages[0].text, outcome.output["truncated"]) == ("The beginning.", True)
    async with http_server(HttpServer(lambda _: said("word " * 2_000_000))) as server:
        outcome = await web_box([server.port], tools_web_robots=False).call("web_fetch", {"url": server.url()})
    assert (outcome.ok, outcome.output["truncated"]) == (True, True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://localhost:{port}/", "HOST_NOT_ALLOWED"),
        ("http://127.0.0.1:1/", "HOST_NOT_ALLOWED"),
        ("http://127.0.0.1:{port}@evil.example/", "URL_REFUSED"),
        ("http://0x7f.1:{port}/", "URL_REFUSED"),
        ("file:///etc/passwd", "URL_REFUSED"),
        ("gopher://127.0.0.1:{port}/_GET", "URL_REFUSED"),
    ],
)
async def test_address_that_is_not_allowed_is_not_asked(url: str, reason: str) -> None:
    async with http_server(site({"/": page()})) as server:
        box = web_box([server.port])
        outcome = await box.call("web_fetch", {"url": url.format(port=server.port)})
    assert (outcome.error_reason, server.asked) == (reason, [])


async def test_private_address_needs_its_network_allowed_whatever_hosts_are() -> None:
    async with http_server(site({"/": page()})) as server:
        box = web_box([], tools_web_hosts=f"*:{server.port}", egress_allowed_networks="")
        outcome = await box.call("web_fetch", {"url": server.url()})
    assert (outcome.error_reason, server.asked) == ("ADDRESS_REFUSED", [])


async def test_redirects_end() -> None:
    async with http_server(site({"/loop": said("", "302 Found", Location="/loop")})) as server:
        outcome = await web_box([server.port]).call("web_fetch", {"url": server.url("/loop")})
    assert (outcome.error_reason, len(targets(server))) == ("TOO_MANY_REDIRECTS", 6)


async def test_without_hosts_it_is_not_offered() -> None:
    assert not web_fetch.is_available(ToolsSettings())
    assert web_fetch.is_available(ToolsSettings(tools_web_hosts="*"))
    outcome = await Box(ToolsSettings(), services=_without_web()).call("web_fetch", {"url": "https://example.com/"})
    assert outcome.error_reason == "TOOL_UNAVAILABLE"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tools_web_hosts": "https://example.com"}, "is not a host"),
        ({"tools_web_hosts": "example.com/fees"}, "is not a host"),
        ({"tools_web_hosts": "**"}, "is not a host"),
        ({"tools_web_user_agent": "a\r\nb"}, "match pattern"),
    ],
)
def test_settings_that_cannot_work_are_named_at_the_start(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ToolsSettings(**given)


def _without_web() -> Services:
    services = Mock(spec=Services)
    services.web = None
    return services
