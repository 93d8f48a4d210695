"""Searches the web by a search engine of the operator's choice: each page once, with its date where the engine knows it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from cachetools import TTLCache

from services.tools.errors import ToolUnavailable
from services.tools.web.windows import SharedWindows

FRESHNESS = ("day", "week", "month", "year")
RESULTS_MAX = 10
_SEARCHES_KEPT = 500
_TRACKING = ("fbclid", "gclid", "msclkid", "mc_cid", "mc_eid", "yclid")


@dataclass(frozen=True)
class Result:
    """A page that a search engine found."""

    url: str
    title: str
    snippet: str
    """Plain text."""
    date: str = ""
    """Of the page, as 2026-11-20; empty where the engine does not say."""


class SearchEngine(Protocol):
    """A search engine of the web."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, freshness: str) -> Sequence[Result]:
        """Pages, best first, at most some twenty. `freshness`: one of FRESHNESS, or empty for any. Raises ToolError."""
        ...


class WebSearch:
    """Searches for all runs of this process."""

    def __init__(
        self,
        engine: SearchEngine,
        windows: SharedWindows,
        *,
        fresh_s: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`fresh_s`: how long results are used again."""
        self.engine = engine
        self._windows = windows
        self._known: TTLCache[tuple[str, str, str], Sequence[Result]] = TTLCache(_SEARCHES_KEPT, fresh_s, timer=clock)

    async def search(self, query: str, freshness: str, *, tenant_id: str, run: str) -> Sequence[Result]:
        """Pages, best first, each once. Raises ToolError."""
        key = (tenant_id, query, freshness)
        known = self._known.get(key)
        if known is None:
            await self._windows.take_shared(self.engine.name, run)
            known = self._known[key] = each_once(await self.engine.search(query, freshness))
        return known


def web_search_of(search: WebSearch | None) -> WebSearch:
    """Raises ToolUnavailable where there is none."""
    if search is None:
        raise ToolUnavailable("the web is not searched here; an operator can set GROUNDWORK_TOOLS_WEB_SEARCH")
    return search


def each_once(results: Sequence[Result]) -> list[Result]:
    """The results without those that lead to the page of a better one, or have its title and snippet."""
    pages: set[str] = set()
    texts: set[tuple[str, str]] = set()
    kept = []
    for result in results:
        page, text = page_key(result.url), (result.title.casefold(), result.snippet.casefold())
        if page and page not in pages and text not in texts:
            kept.append(result)
        pages.add(page)
        texts.add(text)
    return kept


def page_key(url: str) -> str:
    """What two addresses of one page have in common: without scheme, `www.`, fragment, marks of campaigns and a slash at the end.
    Empty for what is no address of the web."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host:
        return ""
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not _is_tracking(name)]
    return f"{host}{parts.path.rstrip('/')}?{urlencode(sorted(kept))}"


def _is_tracking(name: str) -> bool:
    return name.lower().startswith("utm_") or name.lower() in _TRACKING
