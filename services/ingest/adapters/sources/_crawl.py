"""How far the listing of a web site is, and what is remembered of its pages until the next."""

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.ingest.sources.models import FailingFile, SourceFile

_REMEMBERED_BYTES_MOST = 64 * 1024 * 1024


@dataclass(frozen=True)
class SitePage:
    """What a page was when it was last read."""

    file: SourceFile
    links: tuple[str, ...]
    validators: Mapping[str, str]
    """Headers that ask for the page only if it has changed (RFC 9110, 13.1)."""

    @property
    def size_bytes(self) -> int:
        """In memory, roughly."""
        return 1_000 + sum(100 + len(link) for link in self.links)


class SiteMemory:
    """Pages of all sites that this process has read, so that it asks for them anew only if they have changed."""

    def __init__(self, bytes_most: int = _REMEMBERED_BYTES_MOST) -> None:
        self._pages: OrderedDict[tuple[str, str], SitePage] = OrderedDict()
        """By tenant and address."""
        self._size_bytes, self._bytes_most = 0, bytes_most

    def get(self, place: tuple[str, str]) -> SitePage | None:
        return self._pages.get(place)

    def keep(self, place: tuple[str, str], page: SitePage) -> None:
        if (before := self._pages.pop(place, None)) is not None:
            self._size_bytes -= before.size_bytes
        self._pages[place] = page
        self._size_bytes += page.size_bytes
        while self._size_bytes > self._bytes_most:
            self._size_bytes -= self._pages.popitem(last=False)[1].size_bytes


@dataclass
class SiteCrawl:
    """How far a listing is."""

    files: dict[str, SourceFile] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    problems: list[FailingFile] = field(default_factory=list)
    """Behind each may be pages that are not found now, and are not gone."""
    seen: set[str] = field(default_factory=set)
    waiting: deque[tuple[str, int]] = field(default_factory=deque)
    """Addresses, and how many links they are away from the start."""
    sitemaps: int = 0
    named_sitemaps: set[str] = field(default_factory=set)
    """Addresses that another sitemap names as sitemaps."""
    is_cut_short: bool = False

    def fail(self, url: str, what: str, reason: str = "PAGE_UNREADABLE") -> None:
        self.problems.append(
            FailingFile(url, reason, f"{what}; until then no page is taken to be gone for lack of links")
        )
