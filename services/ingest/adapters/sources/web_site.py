"""A web site: the pages of a sitemap, or what can be reached by links from a start page. Only pages of the same host are read, and
only those that robots.txt allows (RFC 9309), one after the other."""

import asyncio
import hashlib
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
from protego import Protego

from services.ingest.adapters.source_http import USER_AGENT, SourceHttp, body_of, redirect_of, source_http
from services.ingest.adapters.sources._crawl import SiteCrawl, SiteMemory, SitePage
from services.ingest.adapters.sources._web_pages import (
    document_name,
    known_encoding,
    links_of,
    looks_like_sitemap,
    plain_url,
    site_of,
    sitemap_of,
)
from services.ingest.errors import BadSource, FileNotTaken, SourceAway
from services.ingest.sources.models import SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_PAGES, _PAGES_MOST = 200, 5_000
_DEPTH, _DEPTH_MOST = 3, 20
_DELAY_S, _DELAY_MOST_S = 1.0, 60.0
_SITEMAPS_MOST = 50
_PAGE_BYTES_MOST = 8 * 1024 * 1024
"""Of a page with links. Other files may be as large as an upload."""
_PAGE_S = 120.0
"""Until a page with links is there as a whole."""
_LISTING_S = 6 * 3600.0
_REQUESTS_A_PAGE = 10
"""Addresses that a listing may ask for, for each page that is wanted."""
_KEPT_BYTES_MOST = 128 * 1024 * 1024
"""Of pages that stay on disk between listing and fetching; those beyond it are asked for again."""
_HTML = ("text/html", "application/xhtml+xml")
_XML = ("text/xml", "application/xml")
_VALIDATORS = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}


_MEMORY = SiteMemory()


class SiteReader:
    """The pages of one site."""

    def __init__(self, http: SourceHttp, opening: Opening, folder: Path) -> None:
        """`folder`: where pages stay between the listing and the fetching."""
        settings = opening.settings
        self._http, self._tenant_id, self._folder = http, opening.tenant_id, folder
        self._start = plain_url(settings["url"])
        self._path = settings.get("path", "")
        self._pages = min(int(_number(settings, "pages", _PAGES, 1, _PAGES_MOST)), opening.surroundings.max_files)
        self._depth = int(_number(settings, "depth", _DEPTH, 0, _DEPTH_MOST))
        self._delay_s = _number(settings, "delay", _DELAY_S, 0, _DELAY_MOST_S)
        self._host = urlsplit(self._start).netloc
        self._kept_bytes = 0
        self._robots = Protego.parse("")
        self._turn = asyncio.Lock()

    async def look(self) -> None:
        """Finds out where the site is and what it allows. Raises SourceAway."""
        if elsewhere := await self._begin():
            if site_of(elsewhere) != site_of(self._start):
                raise SourceAway(
                    f"{self._start} leads to another site ({site_of(elsewhere)[:200]}); if that is right, remove the source and "
                    "make one with the new address"
                )
            self._start = plain_url(elsewhere)
            self._host = urlsplit(self._start).netloc
            if await self._begin():
                raise SourceAway(f"{self._start} leads back and forth; see that the address is right")
        rules = await self._http.text(urljoin(self._start, "/robots.txt"))
        if rules.status_code >= 500:
            raise SourceAway(
                f"{self._host} cannot say what programs may read: its robots.txt answers with {rules.status_code}"
            )
        if rules.status_code == 200:
            self._robots = Protego.parse(rules.text)
        if not self._robots.can_fetch(self._start, USER_AGENT):
            raise SourceAway(f"{self._host} asks programs not to read this address (robots.txt); choose another start")
        wanted_s = float(self._robots.crawl_delay(USER_AGENT) or 0.0)
        self._delay_s = min(max(self._delay_s, wanted_s), _DELAY_MOST_S)

    async def _begin(self) -> str:
        """Takes the start page's own address over. Returns where it leads when that is another host. Raises SourceAway."""
        async with self._http.ask(self._start, only_host=self._host) as answer:
            if elsewhere := redirect_of(answer):
                return elsewhere
            if answer.status_code != 200:
                raise SourceAway(f"{self._start} answers with {answer.status_code}; see that the address is right")
            self._start = plain_url(str(answer.url))
            return ""

    async def list_changes(self, cursor: str) -> SourceListing:  # noqa: ARG002 - a site tells no changes
        crawl = SiteCrawl()
        if urlsplit(self._start).path.endswith(".xml"):
            crawl.named_sitemaps.add(self._start)
        self._note(crawl, [self._start], 0)
        until = time.monotonic() + _LISTING_S
        while crawl.waiting and len(crawl.files) < self._pages:
            if time.monotonic() > until:
                crawl.is_cut_short = True
                break
            url, depth = crawl.waiting.popleft()
            await self._visit(crawl, url, depth)
        if crawl.is_cut_short and len(crawl.files) < self._pages:
            what = f"a listing ends after {len(crawl.seen)} addresses or {_LISTING_S / 3600:g} hours; give the source a path"
            crawl.fail(self._start, what, "SITE_TOO_LARGE")
        files, is_complete = list(crawl.files.values()), not crawl.problems
        return SourceListing(files, is_complete, () if is_complete else crawl.gone, crawl.problems)

    def _note(self, crawl: SiteCrawl, urls: Sequence[str], depth: int, *, all_paths: bool = False) -> None:
        for url in urls:
            parts = urlsplit(url)
            is_wanted = parts.path.startswith(self._path) or all_paths or url == self._start
            if url and url not in crawl.seen and parts.netloc == self._host and is_wanted:
                if len(crawl.seen) >= self._pages * _REQUESTS_A_PAGE:
                    crawl.is_cut_short = True
                    return
                crawl.seen.add(url)
                if self._robots.can_fetch(url, USER_AGENT):
                    crawl.waiting.append((url, depth))

    async def _visit(self, crawl: SiteCrawl, url: str, depth: int) -> None:
        known = _MEMORY.get((self._tenant_id, url))
        async with self._asked(url, known.validators if known else {}) as answer:
            final = plain_url(str(answer.url))
            is_sitemap = url in crawl.named_sitemaps
            if answer.status_code == 304 and known:
                crawl.files[url] = known.file
                self._follow(crawl, known.links, depth)
            elif elsewhere := redirect_of(answer):
                crawl.fail(
                    url, f"it leads to another site, or in circles ({elsewhere[:200]}); mend it or do not link to it"
                )
            elif answer.status_code in (404, 410) and not is_sitemap:
                crawl.gone.append(url)
            elif final != url and answer.status_code == 200:
                crawl.gone.append(url)
                crawl.named_sitemaps.update([final] if is_sitemap else ())
                self._note(crawl, [final], depth, all_paths=is_sitemap)
            elif answer.status_code != 200:
                crawl.fail(url, f"the site answers with {answer.status_code}; the next sync asks again")
            else:
                try:
                    await self._read(crawl, url, depth, answer)
                except FileNotTaken as error:
                    crawl.fail(url, error.message, error.reason)

    async def _read(self, crawl: SiteCrawl, url: str, depth: int, answer: httpx.Response) -> None:
        """Raises FileNotTaken."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if url in crawl.named_sitemaps and kind not in _XML:
            raise FileNotTaken(
                "PAGE_UNREADABLE", f"it is named as a sitemap, and is {kind[:80] or 'of no type'}; mend the site"
            )
        if kind not in _HTML + _XML:
            version = answer.headers.get("etag") or answer.headers.get("last-modified", "")
            crawl.files[url] = SourceFile(url, version, 0, document_name(url, is_page=False), {"url": url})
            return
        body = await _whole(answer)
        if kind in _XML and (listed := sitemap_of(body)) is not None:
            self._note_sitemap(crawl, *listed)
            return
        if kind in _XML and (url in crawl.named_sitemaps or looks_like_sitemap(body)):
            raise FileNotTaken("PAGE_UNREADABLE", "the XML of this sitemap cannot be read; mend it")
        links = await asyncio.to_thread(links_of, body, url) if kind in _HTML else ()
        version = hashlib.sha256(body).hexdigest()[:32]
        encoding = known_encoding(answer.charset_encoding or "")
        file = SourceFile(url, version, len(body), document_name(url, is_page=True), {"url": url}, encoding)
        await self._keep(url, body)
        validators = {asks: answer.headers[says] for asks, says in _VALIDATORS.items() if says in answer.headers}
        _MEMORY.keep((self._tenant_id, url), SitePage(file, links, validators))
        crawl.files[url] = file
        self._follow(crawl, links, depth)

    async def _keep(self, url: str, body: bytes) -> None:
        """On disk for `fetch`, where there is room."""
        if self._kept_bytes + len(body) > _KEPT_BYTES_MOST:
            return
        self._kept_bytes += len(body)
        stored = self._folder / _stored(url)
        try:
            await asyncio.to_thread(stored.write_bytes, body)
        except OSError:
            await asyncio.to_thread(stored.unlink, missing_ok=True)

    def _follow(self, crawl: SiteCrawl, links: tuple[str, ...], depth: int) -> None:
        if depth < self._depth and not crawl.sitemaps:
            self._note(crawl, links, depth + 1)

    def _note_sitemap(self, crawl: SiteCrawl, pages: list[str], sitemaps: list[str]) -> None:
        """Raises FileNotTaken."""
        crawl.sitemaps += 1
        if crawl.sitemaps > _SITEMAPS_MOST:
            raise FileNotTaken(
                "SITE_TOO_LARGE", f"the site has more than {_SITEMAPS_MOST} sitemaps; make a source of each of them"
            )
        self._note(crawl, pages, 0)
        self._note(crawl, sitemaps, 0, all_paths=True)
        crawl.named_sitemaps.update(crawl.seen.intersection(sitemaps))

    @asynccontextmanager
    async def _asked(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """One request at a time, with the site's pause behind each."""
        async with self._turn:
            async with self._http.ask(url, headers, only_host=self._host) as answer:
                yield answer
            await asyncio.sleep(self._delay_s)

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        stored = self._folder / _stored(file.key)
        if await asyncio.to_thread(stored.exists):
            yield await asyncio.to_thread(stored.read_bytes)
            return
        async with self._asked(file.key, {}) as answer:
            if answer.status_code != 200 or answer.headers.get("content-encoding", "identity") != "identity":
                raise FileNotTaken(
                    "PAGE_UNREADABLE", f"the site answers with {answer.status_code}; the next sync asks again"
                )
            async for piece in body_of(answer):
                yield piece


async def _whole(answer: httpx.Response) -> bytes:
    """Raises FileNotTaken."""
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise FileNotTaken("PAGE_UNREADABLE", "the site packs it although it is asked not to")
    body = bytearray()
    async for piece in body_of(answer, _PAGE_S):
        body += piece
        if len(body) > _PAGE_BYTES_MOST:
            raise FileNotTaken("PAGE_TOO_LARGE", f"the page is larger than {_PAGE_BYTES_MOST >> 20} MiB")
    return bytes(body)


def _stored(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def _number(settings: Mapping[str, str], name: str, usual: float, least: float, most: float) -> float:
    """Raises BadSource."""
    try:
        number = float(settings.get(name, usual))
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise BadSource(f"{name} is a number from {least:g} to {most:g}, not {settings[name][:40]!r}")
    return number


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        async with source_http(opening.surroundings.guard) as http:
            reader = SiteReader(http, opening, Path(folder))
            await reader.look()
            yield reader


KIND = SourceKind(
    name="web",
    says="A web site: the pages of a sitemap, or those that are linked from a start page.",
    fields=(
        SourceField("url", "address of the start page or of a sitemap", is_required=True, is_url=True),
        SourceField("path", "only pages whose path begins with this, as /docs/"),
        SourceField("depth", f"how many links away from the start page, at most {_DEPTH_MOST}; {_DEPTH} by default"),
        SourceField("pages", f"how many pages, at most {_PAGES_MOST}; {_PAGES} by default"),
        SourceField(
            "delay", f"seconds between two requests; {_DELAY_S:g} by default, and more where robots.txt wants it"
        ),
    ),
    open=_open,
    default_name=lambda settings: urlsplit(settings["url"]).hostname or "site",
)
