"""Reads documents of the web: only hosts that the operator allows, as often as the windows allow, and what robots.txt allows. Each
redirect is judged like the first address. What was read is kept for a while, and asked for anew only if it has changed (RFC 9110,
13.1)."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol

from cachetools import TTLCache

from kit.errors import GroundworkError
from kit.network.egress import Place
from services.tools.outside.hosts import web_host_is_listed
from services.tools.web.pages import WebAnswer, WebDocument, WebFailed
from services.tools.web.robots import Robots
from services.tools.web.windows import SharedWindows

REDIRECTS_MAX = 5
TIMEOUT_S = 20.0
"""For a document, with its redirects and robots.txt."""
_CACHE_BYTES_MAX = 64 * 1024 * 1024
_KEEP_S = 24 * 3_600.0
"""How long a document may be asked for anew only if it has changed."""
_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_BUSY_S = 60.0
"""How long a host is left alone that says it is asked too often, and not for how long."""


class WebClient(Protocol):
    """Asks web servers, at addresses that may be connected to."""

    def place(self, url: str) -> Place:
        """Where a URL leads. Raises UrlRefused."""
        ...

    async def get(self, url: str, headers: Mapping[str, str]) -> WebAnswer:
        """The answer to one request; a redirect is not followed. Raises WebFailed and GroundworkError."""
        ...


@dataclass(frozen=True)
class _Kept:
    document: WebDocument
    fresh_until: float


class Fetcher:
    """Reads documents, for all runs of this process."""

    def __init__(
        self,
        client: WebClient,
        windows: SharedWindows,
        *,
        hosts: tuple[str, ...],
        user_agent: str,
        asks_robots: bool = True,
        fresh_s: float = 600.0,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hosts` as in the setting tools_web_hosts. `fresh_s`: how long a document is used again without asking."""
        self._client, self._windows = client, windows
        self._hosts = hosts
        self._user_agent = user_agent
        self._fresh_s = fresh_s
        self._now, self._clock = now, clock
        self.robots = Robots(self._robots_answer, user_agent, clock) if asks_robots else None
        self._kept: TTLCache[str, _Kept] = TTLCache(_CACHE_BYTES_MAX, _KEEP_S, timer=clock, getsizeof=_size)

    async def fetch(self, url: str, run: str) -> WebDocument:
        """The document at an address. `run` is in whose window it counts. Raises WebFailed and WebBusy."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._fetched(url, run)
        except TimeoutError as error:
            raise WebFailed(f"{_short(url)} did not answer in time; try another page") from error
        except GroundworkError as error:  # of the guard, before anything is sent
            raise WebFailed(error.message, reason=error.reason) from error

    async def check(self, url: str, run: str) -> None:
        """Counts a page that something else opens. Raises WebFailed and WebBusy where it must not be opened now."""
        try:
            host = self._permitted(url).host
            await self._windows.take_shared(host, run)
            if self.robots is not None:
                async with asyncio.timeout(TIMEOUT_S):
                    await self.robots.check(url)
        except TimeoutError as error:
            raise WebFailed(f"{_short(url)} did not answer in time; try another page") from error
        except GroundworkError as error:
            raise WebFailed(error.message, reason=error.reason) from error

    def wait_s(self, url: str) -> float:
        """Seconds until the host of an address may be asked again."""
        return self._windows.wait_s(self._client.place(url).host)

    def is_fresh(self, url: str) -> bool:
        """Whether the document would be used again without asking."""
        kept = self._kept.get(url)
        return kept is not None and self._clock() < kept.fresh_until

    async def delay_s(self, url: str) -> float:
        """Seconds that the site wants between two requests; 0 where it does not say. Raises WebFailed."""
        if self.robots is None:
            return 0.0
        try:
            self._permitted(url)
            async with asyncio.timeout(TIMEOUT_S):
                return await self.robots.delay_s(url)
        except TimeoutError as error:
            raise WebFailed(f"{_short(url)} did not answer in time") from error
        except GroundworkError as error:
            raise WebFailed(error.message, reason=error.reason) from error

    def since_s(self, url: str, delay_s: float) -> float:
        """Seconds left until the last request to the host of an address is `delay_s` ago."""
        return self._windows.since_s(self._client.place(url).host, delay_s)

    async def _fetched(self, url: str, run: str) -> WebDocument:
        for _ in range(REDIRECTS_MAX + 1):
            host = self._permitted(url).host
            kept = self._kept.get(url)
            if kept is not None and self._clock() < kept.fresh_until:
                return kept.document
            await self._windows.take_shared(host, run)
            if self.robots is not None:
                await self.robots.check(url)
            answer = await self._ask(url, host, kept.document.validators if kept else {})
            if answer.status == 304 and kept is not None:
                return self._keep(url, replace(kept.document, read_at=self._now()), answer)
            if not answer.location:
                return self._keep(url, self._document(answer, host), answer)
            url = answer.location
        raise WebFailed(f"{_short(url)}: more than {REDIRECTS_MAX} redirects", reason="TOO_MANY_REDIRECTS")

    async def _robots_answer(self, url: str) -> WebAnswer:
        """RFC 9309, 2.3.1.2: at least five redirects are followed."""
        answer = WebAnswer(url, 404, {})
        for _ in range(REDIRECTS_MAX + 1):
            host = self._permitted(url).host
            answer = await self._ask(url, host, {})
            if not answer.location:
                break
            url = answer.location
        return answer

    async def _ask(self, url: str, host: str, headers: Mapping[str, str]) -> WebAnswer:
        answer = await self._client.get(url, headers)
        if answer.status in (429, 503):
            self._windows.leave_alone(host, _retry_after_s(answer.headers.get("retry-after", ""), self._now()))
        return answer

    def _permitted(self, url: str) -> Place:
        """Raises UrlRefused and WebFailed."""
        place = self._client.place(url)
        if not web_host_is_listed(place, self._hosts):
            raise WebFailed(
                f"{place.host}, port {place.port}, is not a web site that this installation reads; it reads: "
                f"{', '.join(self._hosts) or 'none'}",
                reason="HOST_NOT_ALLOWED",
            )
        return place

    def _document(self, answer: WebAnswer, host: str) -> WebDocument:
        if not 200 <= answer.status < 300:
            raise WebFailed(
                f"{host} answered with {answer.status}: {_MEANING.get(answer.status, 'the page cannot be read')}"
            )
        said = answer.headers.get("content-type", "")
        charset = _CHARSET.search(said)
        validators = {ask: answer.headers[name] for name, ask in _VALIDATORS.items() if name in answer.headers}
        return WebDocument(
            answer.url,
            said.partition(";")[0].strip().lower(),
            charset[1] if charset else "",
            answer.body,
            self._now(),
            answer.is_truncated,
            validators,
        )

    def _keep(self, url: str, document: WebDocument, answer: WebAnswer) -> WebDocument:
        if "no-store" not in answer.headers.get("cache-control", "").lower() and not document.is_truncated:
            self._kept[url] = _Kept(document, self._clock() + self._fresh_s)
        return document


_VALIDATORS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_MEANING = {
    401: "it wants a login, which this tool does not have",
    403: "it does not let programs read this page",
    404: "there is no such page",
    410: "the page is gone",
    429: "it was asked too often; try again later",
    503: "it is not available now; try again later",
}


def _size(kept: _Kept) -> int:
    return len(kept.document.body) + 1_000


def _retry_after_s(said: str, now: datetime) -> float:
    """RFC 9110, 10.2.3: seconds, or a date."""
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        return max(0.0, (parsedate_to_datetime(said) - now).total_seconds())
    except (TypeError, ValueError):
        return _BUSY_S


def _short(url: str) -> str:
    return url if len(url) <= 200 else f"{url[:199]}…"
