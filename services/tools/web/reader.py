"""The web as tools are given it: pages with their main text, and files with what they say."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from cachetools import LRUCache

from services.tools.errors import ToolUnavailable
from services.tools.web.fetching import Fetcher
from services.tools.web.files import FILE_BYTES_MAX, file_name
from services.tools.web.pages import Page, PageText, WebDocument, WebFailed
from services.tools.web.reading import TIMEOUT_S, read_page

Compute = Callable[[Callable[..., Any], Mapping[str, Any], float], Awaitable[Any]]
"""Runs a function with arguments in another process, for at most so many seconds. Raises TimeoutError."""


_FILES_KEPT = 8
"""A long file is read on, passage by passage, and is not taken apart anew each time."""


class FileReader(Protocol):
    """Reads files that are no pages."""

    async def read_file(self, name: str, data: bytes) -> PageText:
        """What a file says, in passages. Raises ToolError with the reason."""
        ...


class Web:
    """Reads pages and files."""

    def __init__(self, fetcher: Fetcher, compute: Compute, files: FileReader) -> None:
        self.fetcher = fetcher
        self._compute = compute
        self._files = files
        self._kept: LRUCache[tuple[str, bytes], Page] = LRUCache(_FILES_KEPT)

    async def read(self, url: str, run: str) -> Page:
        """The page or file at an address; `run` is in whose window it counts. Raises WebFailed and WebBusy, and ToolError for a
        file that cannot be read."""
        document = await self.fetcher.fetch(url, run)
        if name := file_name(document):
            return await self._file(document, name)
        text = await self.page_text(document.body, document.content_type, document.charset, document.url)
        return Page(document.url, text, document.read_at, document.is_truncated)

    async def page_text(self, body: bytes, content_type: str, charset: str, url: str) -> PageText:
        """The main text of a page. Raises WebFailed."""
        arguments = {"body": body, "content_type": content_type, "charset": charset, "url": url}
        try:
            text: PageText = await self._compute(read_page, arguments, TIMEOUT_S)
        except TimeoutError as error:
            raise WebFailed("the page takes too long to be read; try another page") from error
        return text

    async def file_text(self, name: str, data: bytes) -> PageText:
        """What a file says. Raises ToolError with the reason."""
        return await self._files.read_file(name, data)

    async def _file(self, document: WebDocument, name: str) -> Page:
        if document.is_truncated:
            raise WebFailed(
                f"{name} is larger than {FILE_BYTES_MAX // 1024**2} MiB, or comes too slowly to be read here; a person can "
                "download it and upload it as a document",
                reason="WEB_FILE_TOO_LARGE",
            )
        key = document.url, hashlib.sha256(document.body).digest()
        if (kept := self._kept.get(key)) is not None:
            return replace(kept, read_at=document.read_at)
        text = await self._files.read_file(name, document.body)
        page = Page(document.url, text, document.read_at, text.is_cut)
        self._kept[key] = page
        return page


def web_of(web: Web | None) -> Web:
    """Raises ToolUnavailable where there is none."""
    if web is None:
        raise ToolUnavailable("pages of the web are not read here; an operator can set GROUNDWORK_TOOLS_WEB_HOSTS")
    return web
