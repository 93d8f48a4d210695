"""Reads the pages of a web site one after the other, nearest to the start first: from a page by its links, or from a sitemap. It is
bounded by pages, depth, path and time, and waits between two requests. The order is the same each time, so that a crawl goes on
where another one ended: pages that were read before are still kept by the fetcher."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from services.tools.errors import ToolError
from services.tools.web.pages import Page, WebBusy, WebFailed
from services.tools.web.reader import Web
from services.tools.web.searching import page_key

_SITEMAPS_MAX = 5
_FAILURES_MAX = 20
"""In a row or not: a site that fails so often is left alone."""
_SEEN_MAX = 5_000

Tell = Callable[[str], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class CrawlTask:
    """What is read."""

    start: str
    pages: int
    """At most so many are given."""
    depth: int
    """How many links away from the start."""
    path: str = ""
    """Only addresses whose path begins so; the start is read anyway."""
    from_page: int = 0
    """So many pages, in the order of the crawl, were given by an earlier one."""


@dataclass
class Crawled:
    """What was read."""

    pages: list[Page] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Addresses that could not be read, and why."""
    left: int = 0
    """Addresses that are known and were not read."""
    stopped: str = ""
    """Why it ended before its bounds; empty where it did not."""

    def note_failure(self, url: str, why: str) -> None:
        self.failed.append((url, why))
        if len(self.failed) >= _FAILURES_MAX:
            self.stopped = "too many pages could not be read"


class Crawler:
    """Crawls for one run."""

    def __init__(
        self,
        web: Web,
        run: str,
        tell: Tell,
        *,
        time_s: float,
        delay_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`time_s`: longest that a crawl takes. `delay_s`: between two requests, where the site's robots.txt asks for no more."""
        self._web, self._run, self._tell = web, run, tell
        self._time_s, self._delay_s = time_s, delay_s
        self._clock, self._sleep = clock, sleep

    async def crawl(self, task: CrawlTask) -> Crawled:
        """Raises ToolError where the start cannot be read, or no page before the time is over."""
        ends_at = self._clock() + self._time_s
        crawled, way = Crawled(), _Way(task)
        while way.waiting and len(crawled.pages) < task.pages and not crawled.stopped:
            url, depth = way.waiting[0]
            try:
                page = await self._read(url, ends_at)
            except (WebBusy, TimeoutError) as error:
                crawled.stopped = str(error) or "the time is over"
                break
            except ToolError as error:
                if url == task.start:
                    raise
                way.waiting.popleft()
                crawled.note_failure(url, str(error))
                continue
            way.waiting.popleft()
            if way.takes(page, depth):
                crawled.pages.append(page)
                await self._tell(f"Page {way.read}: {page.text.title or page.url}")
        crawled.left = len(way.waiting)
        if not crawled.pages and crawled.stopped:
            raise WebFailed(f"no page was read: {crawled.stopped}")
        return crawled

    async def _read(self, url: str, ends_at: float) -> Page:
        """Waits for its turn first, and again where other processes have asked the host meanwhile as often as it may be. Raises
        TimeoutError when that or the page would take too long."""
        fetcher = self._web.fetcher
        while True:
            if not fetcher.is_fresh(url):
                asked_for_s = await fetcher.delay_s(url)
                wait_s = max(fetcher.wait_s(url), fetcher.since_s(url, max(self._delay_s, asked_for_s)))
                if self._clock() + wait_s >= ends_at:
                    raise TimeoutError(f"the time is over, and {_host(url)} is to be asked slowly")
                if wait_s > 0.0:
                    await self._sleep(wait_s)
            if (left_s := ends_at - self._clock()) <= 0.0:
                raise TimeoutError("the time is over")
            try:
                async with asyncio.timeout(left_s):
                    return await self._web.read(url, self._run)
            except WebBusy:
                if not fetcher.wait_s(url):  # the run has read as many pages as one may
                    raise


class _Way:
    """The addresses of a crawl: those that wait, and those that were seen."""

    def __init__(self, task: CrawlTask) -> None:
        self._task = task
        self._host = _host(task.start)
        self._seen = {page_key(task.start)}
        self._sitemaps = 0
        self.waiting = deque([(task.start, 0)])
        """With the number of links from the start."""
        self.read = 0
        """Pages in all, those of earlier crawls among them."""

    def takes(self, page: Page, depth: int) -> bool:
        """Notes what a page links to, and says whether it is one to give."""
        if self._host not in (_host(page.url), ""):
            if self.read or self._sitemaps:
                return False  # a redirect to another site
            self._host = _host(page.url)  # where the start has moved to
        if page.text.is_sitemap:
            self._sitemaps += 1
            if self._sitemaps <= _SITEMAPS_MAX:
                self._note(page, depth)
            return False
        self.read += 1
        if depth < self._task.depth:
            self._note(page, depth + 1)
        return self.read > self._task.from_page

    def _note(self, page: Page, depth: int) -> None:
        for link in page.text.links:
            key, path = page_key(link.url), urlsplit(link.url).path
            is_sitemap = page.text.is_sitemap and path.endswith(".xml")
            if not key or key in self._seen or len(self._seen) >= _SEEN_MAX or _host(link.url) != self._host:
                continue
            if is_sitemap or path.startswith(self._task.path):
                self._seen.add(key)
                self.waiting.append((link.url, depth))


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")
