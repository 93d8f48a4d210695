"""The web as tools are given it: pages with their main text."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from services.tools.errors import ToolUnavailable
from services.tools.web.fetching import Fetcher
from services.tools.web.pages import Page, PageText, WebFailed
from services.tools.web.reading import TIMEOUT_S, read_page

Compute = Callable[[Callable[..., Any], Mapping[str, Any], float], Awaitable[Any]]
"""Runs a function with arguments in another process, for at most so many seconds. Raises TimeoutError."""


class Web:
    """Reads pages."""

    def __init__(self, fetcher: Fetcher, compute: Compute) -> None:
        self.fetcher = fetcher
        self._compute = compute

    async def read(self, url: str, run: str) -> Page:
        """The page at an address; `run` is in whose window it counts. Raises WebFailed and WebBusy."""
        document = await self.fetcher.fetch(url, run)
        arguments = {
            "body": document.body,
            "content_type": document.content_type,
            "charset": document.charset,
            "url": document.url,
        }
        try:
            text: PageText = await self._compute(read_page, arguments, TIMEOUT_S)
        except TimeoutError as error:
            raise WebFailed("the page takes too long to be read; try another page") from error
        return Page(document.url, text, document.read_at, document.is_truncated)


def web_of(web: Web | None) -> Web:
    """Raises ToolUnavailable where there is none."""
    if web is None:
        raise ToolUnavailable("pages of the web are not read here; an operator can set GROUNDWORK_TOOLS_WEB_HOSTS")
    return web
