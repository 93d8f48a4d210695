"""Reading several pages of a web site, over real connections to a site of the test's own."""

from __future__ import annotations

import pytest

from kit.limits.counters import Counters
from services.tools.errors import ToolError
from services.tools.settings import ToolsSettings
from services.tools.toolbox.network import crawl_website
from services.tools.web.crawling import Crawled, Crawler, CrawlTask
from services.tools.web.reading import read_page
from tests.service.tools.http_server import HttpServer, http_server, said
from tests.service.tools.web.reading import Clock, html, reader, settings, shared_windows, web_box
from tests.service.tools.web.test_web_fetch import page, site, targets
from tests.unit.orchestrator.limits.counting import MemoryCounters


def linked(name: str, *links: str) -> bytes:
    anchors = " ".join(f'<a href="{link}">to {link}</a>' for link in links)
    text = f"This is the page {name} of the guide, which says that the number of {name} is forty-two, and so on. "
    return page(
        html(f"<nav>{anchors}</nav><article><h1>{name}</h1><p>{text * 3}</p></article>", f"<title>{name}</title>")
    )


def guide() -> HttpServer:
    return site(
        {
            "/": linked("Start", "/guide/a", "/guide/b", "/blog/x", "https://elsewhere.example/", "/guide/a#part"),
            "/guide/a": linked("A", "/guide/c", "/", "/guide/gone"),
            "/guide/b": linked("B", "/guide/a", "/guide/picture"),
            "/guide/c": linked("C", "/guide/d"),
            "/guide/d": linked("D"),
            "/blog/x": linked("X"),
            "/guide/picture": said("", content_type="image/png"),
        }
    )


class Crawling:
    """Crawls with a clock of its own; sleeping moves it."""

    def __init__(
        self,
        server: HttpServer,
        *,
        time_s: float = 60.0,
        delay_s: float = 0.5,
        per_minute: int = 1_000,
        run_pages: int = 100,
        counters: Counters | None = None,
    ) -> None:
        self.clock = Clock()
        self.slept: list[float] = []
        self.told: list[str] = []
        self._server = server
        given = settings(
            tools_web_hosts=f"127.0.0.1:{server.port}",
            tools_web_host_per_minute=per_minute,
            tools_web_run_pages=run_pages,
        )
        self._crawler = Crawler(
            reader(given, self.clock, windows=shared_windows(given, self.clock, counters)),
            "run1",
            self._tell,
            time_s=time_s,
            delay_s=delay_s,
            clock=self.clock,
            sleep=self._sleep,
        )

    async def crawl(
        self, start: str = "/", *, pages: int = 20, depth: int = 3, path: str = "", from_page: int = 0
    ) -> Crawled:
        return await self._crawler.crawl(CrawlTask(self._server.url(start), pages, depth, path, from_page))

    async def _tell(self, message: str) -> None:
        self.told.append(message)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now_s += seconds


def titles(crawled: Crawled) -> list[str]:
    return [each.text.title for each in crawled.pages]


async def test_pages_are_read_nearest_first_on_one_host_and_each_once() -> None:
    async with http_server(guide()) as server:
        crawling = Crawling(server)
        crawled = await crawling.crawl()
    assert titles(crawled) == ["Start", "A", "B", "X", "C", "D"]
    assert [url.rpartition("/")[2] for url, _ in crawled.failed] == ["gone", "picture"]
    assert len(targets(server)) == len(set(targets(server)))
    assert crawling.told[1] == "Page 2: A"
    assert crawling.slept
    assert set(crawling.slept) == {0.5}


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"depth": 0}, ["Start"]),
        ({"depth": 1}, ["Start", "A", "B", "X"]),
        ({"path": "/guide/", "depth": 1}, ["Start", "A", "B"]),
        ({"pages": 2}, ["Start", "A"]),
    ],
)
async def test_bounds_hold(bounds: dict[str, object], expected: list[str]) -> None:
    async with http_server(guide()) as server:
        crawled = await Crawling(server).crawl(**bounds)  # type: ignore[arg-type] # by name
    assert titles(crawled) == expected


async def test_crawl_goes_on_where_it_ended_without_reading_anything_twice() -> None:
    async with http_server(guide()) as server:
        crawling = Crawling(server)
        first = await crawling.crawl(pages=2)
        then = await crawling.crawl(pages=20, from_page=2)
    assert (titles(first), titles(then)) == (["Start", "A"], ["B", "X", "C", "D"])
    assert first.left > 0
    assert [path for path in targets(server) if path in ("/", "/guide/a")] == ["/", "/guide/a"]


async def test_sitemap_and_its_index_are_read_for_their_pages() -> None:
    def listed(*paths: str, root: str = "urlset") -> bytes:
        places = "".join(f"<url><loc>http://127.0.0.1:{server.port}{path}</loc></url>" for path in paths)
        xml = f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</{root}>'
        return said(xml, content_type="application/xml")

    pages = {"/a": linked("A"), "/b": linked("B", "/c"), "/c": linked("C")}
    server = site(pages)
    async with http_server(server):
        pages["/sitemap.xml"] = listed("/one.xml", "/away.xml", root="sitemapindex")
        pages["/one.xml"] = listed("/a", "/b")
        crawled = await Crawling(server).crawl("/sitemap.xml", depth=0)
    assert titles(crawled) == ["A", "B"]
    assert [url.rpartition("/")[2] for url, _ in crawled.failed] == ["away.xml"]


def test_sitemap_with_entities_unfolds_nothing_and_reads_no_file() -> None:
    bomb = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    body = (
        f'<!DOCTYPE x [<!ENTITY a0 "aaaaaaaaaa">{bomb}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        "<urlset><url><loc>http://a.example/&a9;</loc></url><url><loc>http://a.example/&f;</loc></url></urlset>"
    )
    links = read_page(body.encode(), "application/xml", "", "http://a.example/sitemap.xml").links
    assert all("root:" not in link.url and len(link.url) < 100 for link in links)


async def test_delay_of_robots_is_kept_and_what_they_close_is_said() -> None:
    server = guide()
    inside = server.answer
    rules = "User-agent: *\nCrawl-delay: 4\nDisallow: /blog/"
    server.answer = lambda asked: said(rules) if asked.target == "/robots.txt" else inside(asked)
    async with http_server(server):
        crawling = Crawling(server)
        crawled = await crawling.crawl(depth=1)
    assert titles(crawled) == ["Start", "A", "B"]
    assert "robots.txt" in crawled.failed[0][1]
    assert set(crawling.slept) == {4.0}


async def test_time_ends_it_and_what_was_read_is_given() -> None:
    async with http_server(guide()) as server:
        crawled = await Crawling(server, time_s=10.0, delay_s=4.0).crawl()
    assert titles(crawled) == ["Start", "A", "B"]
    assert "the time is over" in crawled.stopped
    assert crawled.left > 0


async def test_crawl_waits_where_other_processes_ask_the_host_too_and_its_run_loses_no_page() -> None:
    counters = MemoryCounters()
    async with http_server(guide()) as server:
        crawls = [Crawling(server, time_s=200.0, per_minute=4, run_pages=8, counters=counters) for _ in range(2)]
        for crawling in crawls:
            crawled = await crawling.crawl()
            assert (titles(crawled), crawled.stopped) == (["Start", "A", "B", "X", "C", "D"], "")


async def test_start_that_cannot_be_read_is_an_error() -> None:
    async with http_server(guide()) as server:
        with pytest.raises(ToolError, match="no such page"):
            await Crawling(server).crawl("/nowhere")


async def test_tool_gives_a_passage_of_each_page_to_cite() -> None:
    async with http_server(guide()) as server:
        box = web_box([server.port], tools_web_crawl_delay_s=0.0)
        outcome = await box.call("crawl_website", {"url": server.url("/"), "depth": 1, "pages": 3})
    assert outcome.ok, outcome.error_message
    assert [known["title"] for known in outcome.output["pages"]] == ["Start", "A", "B"]
    assert len({passage.document_id for passage in outcome.passages}) == 3
    assert "from_page=3" in outcome.output["more"]


def test_without_hosts_it_is_not_offered() -> None:
    assert not crawl_website.is_available(ToolsSettings())
