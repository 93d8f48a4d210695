"""A web site: the pages of a sitemap, or what can be reached by links from a start page. Only pages of the same host are read, and
only those that robots.txt allows (RFC 9309), one after the other."""

import asyncio
import hashlib
import tempfile
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
from protego import Protego

from services.ingest.adapters.outside import USER_AGENT, Outside, body_of, outside
from services.ingest.adapters.sources._web_pages import document_name, known_encoding, links_of, plain_url, sitemap_of
from services.ingest.errors import BadSource, FileNotTaken, SourceAway
from services.ingest.sources.models import FailingFile, SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_PAGES, _PAGES_MOST = 200, 5_000
_DEPTH, _DEPTH_MOST = 3, 20
_DELAY_S, _DELAY_MOST_S = 1.0, 60.0
_SITEMAPS_MOST = 50
_PAGE_BYTES_MOST = 8 * 1024 * 1024
"""Of a page with links. Other files may be as large as an upload."""
_REMEMBERED_MOST = 50_000
_HTML = ("text/html", "application/xhtml+xml")
_XML = ("text/xml", "application/xml")
_VALIDATORS = {"If-None-Match": "etag", "If-Modified-Since": "last-modified"}


@dataclass(frozen=True)
class _Page:
    """What a page was when it was last read."""

    file: SourceFile
    links: tuple[str, ...]
    validators: Mapping[str, str]
    """Headers that ask for the page only if it has changed (RFC 9110, 13.1)."""


class _Memory:
    """Pages of all sites that this process has read, so that it asks for them anew only if they have changed."""

    def __init__(self) -> None:
        self._pages: OrderedDict[tuple[str, str], _Page] = OrderedDict()
        """By tenant and address."""

    def get(self, place: tuple[str, str]) -> _Page | None:
        return self._pages.get(place)

    def keep(self, place: tuple[str, str], page: _Page) -> None:
        self._pages[place] = page
        self._pages.move_to_end(place)
        while len(self._pages) > _REMEMBERED_MOST:
            self._pages.popitem(last=False)


_MEMORY = _Memory()


@dataclass
class _Crawl:
    """How far a listing is."""

    files: dict[str, SourceFile] = field(default_factory=dict)
    problems: list[FailingFile] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    waiting: deque[tuple[str, int]] = field(default_factory=deque)
    """Addresses, and how many links they are away from the start."""
    sitemaps: int = 0


class SiteReader:
    """The pages of one site."""

    def __init__(self, http: Outside, opening: Opening, folder: Path) -> None:
        """`folder`: where pages stay between the listing and the fetching."""
        settings = opening.settings
        self._http, self._tenant_id, self._folder = http, opening.tenant_id, folder
        self._start = plain_url(settings["url"])
        self._path = settings.get("path", "")
        self._pages = min(int(_number(settings, "pages", _PAGES, 1, _PAGES_MOST)), opening.surroundings.max_files)
        self._depth = int(_number(settings, "depth", _DEPTH, 0, _DEPTH_MOST))
        self._delay_s = _number(settings, "delay", _DELAY_S, 0, _DELAY_MOST_S)
        self._host = ""
        self._robots = Protego.parse("")
        self._turn = asyncio.Lock()

    async def look(self) -> None:
        """Finds out where the site is and what it allows. Raises SourceAway."""
        async with self._http.ask(self._start) as answer:
            if answer.status_code != 200:
                raise SourceAway(f"{self._start} answers with {answer.status_code}; see that the address is right")
            self._start = plain_url(str(answer.url))
        self._host = urlsplit(self._start).netloc
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

    async def list_changes(self, cursor: str) -> SourceListing:  # noqa: ARG002 - a site tells no changes
        crawl = _Crawl()
        self._note(crawl, [self._start], 0)
        while crawl.waiting and len(crawl.files) < self._pages:
            url, depth = crawl.waiting.popleft()
            await self._visit(crawl, url, depth)
        return SourceListing(list(crawl.files.values()), problems=crawl.problems)

    def _note(self, crawl: _Crawl, urls: Sequence[str], depth: int, *, all_paths: bool = False) -> None:
        for url in urls:
            parts = urlsplit(url)
            is_meant = parts.path.startswith(self._path) or all_paths or url == self._start
            if url and url not in crawl.seen and parts.netloc == self._host and is_meant:
                crawl.seen.add(url)
                if self._robots.can_fetch(url, USER_AGENT):
                    crawl.waiting.append((url, depth))

    async def _visit(self, crawl: _Crawl, url: str, depth: int) -> None:
        known = _MEMORY.get((self._tenant_id, url))
        async with self._asked(url, known.validators if known else {}) as answer:
            final = plain_url(str(answer.url))
            if answer.status_code == 304 and known:
                crawl.files[url] = known.file
                self._follow(crawl, known.links, depth)
            elif answer.status_code in (404, 410) or urlsplit(final).netloc != self._host:
                return  # it is gone, or leads elsewhere
            elif final != url:
                self._note(crawl, [final], depth)
            elif answer.status_code != 200:
                what = f"the site answers with {answer.status_code}; the next sync asks again"
                crawl.problems.append(FailingFile(url, "PAGE_UNREADABLE", what))
            else:
                try:
                    await self._read(crawl, url, depth, answer)
                except FileNotTaken as error:
                    crawl.problems.append(FailingFile(url, error.reason, error.message))

    async def _read(self, crawl: _Crawl, url: str, depth: int, answer: httpx.Response) -> None:
        """Raises FileNotTaken."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _HTML + _XML:
            version = answer.headers.get("etag") or answer.headers.get("last-modified", "")
            crawl.files[url] = SourceFile(url, version, 0, document_name(url, is_page=False), {"url": url})
            return
        body = await _whole(answer)
        if kind in _XML and (listed := sitemap_of(body)) is not None:
            self._note_sitemap(crawl, *listed)
            return
        links = await asyncio.to_thread(links_of, body, url) if kind in _HTML else ()
        version = hashlib.sha256(body).hexdigest()[:32]
        encoding = known_encoding(answer.charset_encoding or "")
        file = SourceFile(url, version, len(body), document_name(url, is_page=True), {"url": url}, encoding)
        await asyncio.to_thread((self._folder / _stored(url)).write_bytes, body)
        validators = {asks: answer.headers[says] for asks, says in _VALIDATORS.items() if says in answer.headers}
        _MEMORY.keep((self._tenant_id, url), _Page(file, links, validators))
        crawl.files[url] = file
        self._follow(crawl, links, depth)

    def _follow(self, crawl: _Crawl, links: tuple[str, ...], depth: int) -> None:
        if depth < self._depth and not crawl.sitemaps:
            self._note(crawl, links, depth + 1)

    def _note_sitemap(self, crawl: _Crawl, pages: list[str], sitemaps: list[str]) -> None:
        crawl.sitemaps += 1
        if crawl.sitemaps <= _SITEMAPS_MOST:
            self._note(crawl, pages, 0)
            self._note(crawl, sitemaps, 0, all_paths=True)

    @asynccontextmanager
    async def _asked(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """One request at a time, with the site's pause behind each."""
        async with self._turn:
            async with self._http.ask(url, headers) as answer:
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
    async for piece in body_of(answer):
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
        async with outside(opening.surroundings.guard) as http:
            reader = SiteReader(http, opening, Path(folder))
            await reader.look()
            yield reader


KIND = SourceKind(
    name="web",
    says="A web site: the pages of a sitemap, or those that are linked from a start page.",
    fields=(
        SourceField("url", "address of the start page or of a sitemap", is_required=True),
        SourceField("path", "only addresses whose path begins so, as /docs/"),
        SourceField("depth", f"how many links away from the start page, at most {_DEPTH_MOST}; {_DEPTH} by default"),
        SourceField("pages", f"how many pages, at most {_PAGES_MOST}; {_PAGES} by default"),
        SourceField(
            "delay", f"seconds between two requests; {_DELAY_S:g} by default, and more where robots.txt wants it"
        ),
    ),
    open=_open,
    default_name=lambda settings: urlsplit(settings["url"]).hostname or "site",
)
