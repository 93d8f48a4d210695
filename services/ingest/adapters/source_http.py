"""Asks servers outside for the files of sources: at addresses that kit.network.egress permits, each redirect judged like the first
address. A server that wants to be left alone for a while is, by all requests of the source."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import httpx

from kit.network.egress import EgressGuard, UrlRefused, place_of
from kit.network.guarded_http import guarded_transport
from kit.network.hosts import is_loopback_name
from kit.version import release
from services.ingest.errors import BadSource, FileNotTaken, SourceAway, SourceBusy

USER_AGENT = f"Groundwork/{release()} (sources)"
# Not compressed: a small answer could unfold to gigabytes.
_HEADERS = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
_TIMEOUT = httpx.Timeout(30.0).as_dict()
"""Until a connection is there, an answer begins, and between two pieces of it."""
_BEGIN_S, _TEXT_S, FILE_S = 60.0, 120.0, 3600.0
"""Until the head of an answer, a text and a file are there as a whole, however steadily the server sends."""
_PAUSES_S = (1.0, 4.0)
"""Before the second and the third try, where the server does not say how long it wants to be left alone."""
_WAIT_MOST_S = 30.0
"""A server that wants more is left alone by ending the sync."""
_REST_MOST_S = 7 * 86_400.0
"""What a server wants beyond it is not heeded."""
_REDIRECTS_MAX = 5
_TRY_AGAIN = {429, 500, 502, 503, 504}
_TEXT_BYTES_MAX = 32 * 1024 * 1024
"""Of an answer that is read as a whole, such as a page of a listing."""

Sign = Callable[[httpx.Request], Awaitable[Mapping[str, str]]]
"""The headers that let a request in."""


class SourceHttp:
    """The servers of one source, for as long as it is open."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        sign: Sign | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sign`: called for requests to the server of the first request alone, so that no redirect takes credentials away."""
        self._transport, self._sign = transport, sign
        self._sleep, self._clock = sleep, clock
        self._origin: tuple[str, str, int] | None = None
        self._rests_until = 0.0

    @asynccontextmanager
    async def ask(
        self, url: str, headers: Mapping[str, str] | None = None, *, only_host: str = ""
    ) -> AsyncIterator[httpx.Response]:
        """The answer to a GET, of any status but what means "later"; a server that fails is asked thrice. With `only_host`, a
        host with its port, a redirect to another, or one too many, is the answer itself. Raises SourceAway, SourceBusy, and as the
        guard."""
        response = await self._answer(url, headers or {}, only_host)
        try:
            yield response
        finally:
            await response.aclose()

    async def post(self, url: str, form: Mapping[str, str]) -> httpx.Response:
        """The answer to a form, read as a whole. It is not sent on to where a redirect leads."""
        request = self._request(url, {}, form)
        try:
            async with asyncio.timeout(_TEXT_S):
                response = await self._transport.handle_async_request(request)
                response.request = request
                return await self._read(response)
        except (httpx.TransportError, TimeoutError) as error:
            raise _away(request.url, error) from error

    async def text(self, url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """As `ask`, with all of the answer read."""
        async with self.ask(url, headers) as response:
            return await self._read(response)

    async def _read(self, response: httpx.Response) -> httpx.Response:
        try:
            pieces, size = [], 0
            async for piece in _pieces(response, _TEXT_S):
                pieces.append(piece)
                size += len(piece)
                if size > _TEXT_BYTES_MAX:
                    raise SourceAway(f"{response.url.host} answers with more than {_TEXT_BYTES_MAX >> 20} MiB")
        except httpx.TransportError as error:
            raise _away(response.url, error) from error
        finally:
            await response.aclose()
        return httpx.Response(
            response.status_code, headers=response.headers, content=b"".join(pieces), request=response.request
        )

    async def _answer(self, url: str, headers: Mapping[str, str], only_host: str) -> httpx.Response:
        for pause_s in (*_PAUSES_S, None):
            if (rest_s := self._rests_until - self._clock()) > 0.0:
                await self._sleep(rest_s)
            response = await self._follow(url, headers, only_host)
            wait_s = _wanted_rest_s(response, pause_s)
            if wait_s is None:
                return response
            if pause_s is None and not _says_when(response):
                return response
            await response.aclose()
            if pause_s is None or wait_s > _WAIT_MOST_S:
                raise SourceBusy(
                    f"{response.url.host} wants to be asked later ({response.status_code}); the next sync comes after that",
                    retry_after_s=wait_s,
                )
            self._rests_until = max(self._rests_until, self._clock() + wait_s)
        raise AssertionError("the last try returns or raises")

    async def _follow(self, url: str, headers: Mapping[str, str], only_host: str) -> httpx.Response:
        for left in reversed(range(_REDIRECTS_MAX + 1)):
            request = self._request(url, headers)
            if self._sign is not None and self._place(request) == self._origin:
                request.headers.update(await self._sign(request))
            try:
                async with asyncio.timeout(_BEGIN_S):
                    response = await self._transport.handle_async_request(request)
            except (httpx.TransportError, TimeoutError) as error:
                raise _away(request.url, error) from error
            response.request = request
            url = redirect_of(response)
            if not url or (only_host and (not left or urlsplit(url).netloc.lower() != only_host)):
                return response
            await response.aclose()
        raise SourceAway(f"{request.url.host} answers with more than {_REDIRECTS_MAX} redirects")

    def _request(self, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None) -> httpx.Request:
        """Raises UrlRefused, also where two readers of the URL would not agree on its host."""
        place = place_of(url)
        try:
            request = httpx.Request(
                "GET" if form is None else "POST",
                url,
                headers={**_HEADERS, **headers},
                data=form,
                extensions={"timeout": _TIMEOUT},
            )
        except httpx.InvalidURL as error:
            raise UrlRefused(f"the URL cannot be read ({error})") from error
        if request.url.raw_host.decode().lower() != place.host.lower():
            raise UrlRefused("the URL's host must be written plainly, as in https://files.example.com")
        if self._origin is None:
            self._origin = self._place(request)
        return request

    @staticmethod
    def _place(request: httpx.Request) -> tuple[str, str, int]:
        place = place_of(str(request.url))
        return place.scheme, place.host, place.port


def secret_url(url: str, what: str) -> str:
    """The URL, to which secrets are sent; `what` names it. Raises UrlRefused, and BadSource where others could read along."""
    place = place_of(url)
    if place.scheme != "https" and not is_loopback_name(place.host):
        raise BadSource(f"{what} begins with https://; secrets are sent over no open line")
    return url


@asynccontextmanager
async def source_http(guard: EgressGuard, sign: Sign | None = None) -> AsyncIterator[SourceHttp]:
    """For one source."""
    # A transport, not a client of httpx: that reads the addresses of redirects by itself.
    async with await asyncio.to_thread(guarded_transport, guard) as transport:  # it reads certificates
        yield SourceHttp(transport, sign)


async def body_of(response: httpx.Response, within_s: float = FILE_S) -> AsyncIterator[bytes]:
    """The bytes of a file as they come. Raises FileNotTaken when they end early, or take longer than `within_s` altogether."""
    try:
        async for piece in _pieces(response, within_s):
            yield piece
    except httpx.TransportError as error:
        raise FileNotTaken("FILE_CUT_OFF", f"it ended early ({_said(error)}); the next sync reads it again") from error


def redirect_of(response: httpx.Response) -> str:
    """Where an answer sends us; empty for one that does not, or whose address nobody can read."""
    if response.has_redirect_location:
        with contextlib.suppress(ValueError):
            url = urljoin(str(response.url), response.headers["location"])
            urlsplit(url)
            return url
    return ""


async def _pieces(response: httpx.Response, within_s: float) -> AsyncIterator[bytes]:
    """Raises httpx.TransportError, also when the body is not there in time."""
    until = asyncio.get_running_loop().time() + within_s
    pieces = aiter(response.aiter_raw())
    while True:
        try:
            async with asyncio.timeout_at(until):
                piece = await anext(pieces, None)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"it took longer than {within_s:g} s") from error
        if piece is None:
            return
        yield piece


def _wanted_rest_s(response: httpx.Response, pause_s: float | None) -> float | None:
    """Seconds until the server may be asked again; None where it has answered."""
    if response.status_code not in _TRY_AGAIN and not (response.status_code == 403 and _says_when(response)):
        return None
    said = response.headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return _rest_s(float(said))
    with contextlib.suppress(ValueError, TypeError):
        return _rest_s((parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds())
    with contextlib.suppress(ValueError):
        return _rest_s(float(response.headers.get("x-ratelimit-reset", "")) - datetime.now(UTC).timestamp(), 1.0)
    return pause_s if pause_s is not None else 60.0


def _rest_s(wanted_s: float, least_s: float = 0.0) -> float:
    """Raises ValueError for what is no number of seconds."""
    if not math.isfinite(wanted_s):
        raise ValueError(wanted_s)
    return min(max(least_s, wanted_s), _REST_MOST_S)


def _says_when(response: httpx.Response) -> bool:
    """Whether the server limits how often it is asked, rather than fails."""
    is_used_up = response.headers.get("x-ratelimit-remaining") == "0"
    return response.status_code == 429 or is_used_up or "retry-after" in response.headers


def _away(url: httpx.URL, error: Exception) -> SourceAway:
    return SourceAway(f"{url.host} cannot be asked ({_said(error)}); see that it is there, the next sync tries again")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
