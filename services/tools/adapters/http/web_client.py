"""Asks web servers for pages: at addresses that kit.network.egress permits, without cookies, with bounds on size and time. What a
server compresses although it is asked not to is unpacked up to the same bound (decompression bombs, CWE-409)."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping

import httpx

from kit.network.egress import EgressGuard, Place
from kit.network.guarded_http import guarded_transport
from services.tools.adapters.http.http_servers import location_of, plain_place
from services.tools.web.files import PAGE_BYTES_MAX, bytes_max
from services.tools.web.pages import WebAnswer, WebFailed

ANSWER_TIMEOUT_S = 8.0
"""Until an answer begins, and between two pieces of it."""
BODY_TIMEOUT_S = 6.0
"""For all of a body; what has come until then is used."""
_MORE_BYTES_PER_S = 1024 * 1024
"""A body that may be longer than a page's has a second more for each of these, for half of a file is of no use."""
_UNPACKED_AT_ONCE_BYTES = 4 * 1024 * 1024
_ACCEPT = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.8, */*;q=0.1"
_GZIP_OR_ZLIB = 47
"""zlib finds out by the header which of the two it is."""


class GuardedWebClient:
    """A client for all pages. `close` it."""

    def __init__(self, guard: EgressGuard, user_agent: str) -> None:
        self._guard = guard
        self._headers = {
            "User-Agent": user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        self._transport: httpx.AsyncBaseTransport | None = None

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    def place(self, url: str) -> Place:
        return plain_place(url)

    async def get(self, url: str, headers: Mapping[str, str]) -> WebAnswer:
        """Raises WebFailed; UrlRefused, AddressRefused and NameNotFound come from the guard."""
        if self._transport is None:
            self._transport = await asyncio.to_thread(guarded_transport, self._guard)  # it reads certificates
        timeout = httpx.Timeout(ANSWER_TIMEOUT_S).as_dict()
        # A transport, not a client of httpx: that would keep cookies of one user for another.
        request = httpx.Request("GET", url, headers={**self._headers, **headers}, extensions={"timeout": timeout})
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                response = await self._transport.handle_async_request(request)
            response.request = request
            try:
                return await _read(response)
            finally:
                await response.aclose()
        except (httpx.TransportError, TimeoutError) as error:
            raise WebFailed(
                f"{request.url.host} cannot be read: {str(error) or 'no answer in time'}; try another page"
            ) from error


async def _read(response: httpx.Response) -> WebAnswer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    url, location = str(response.request.url), location_of(response)
    if location or response.status_code == 304:
        return WebAnswer(url, response.status_code, headers, location=location)
    limit_bytes = bytes_max(headers.get("content-type", "").partition(";")[0].strip().lower())
    body, is_truncated = await _body(response, headers.get("content-encoding", "").strip().lower(), limit_bytes)
    return WebAnswer(url, response.status_code, headers, body, is_truncated)


async def _body(response: httpx.Response, encoding: str, limit_bytes: int) -> tuple[bytes, bool]:
    """The body, and whether there is more of it. A broken end leaves what came before it."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S + (limit_bytes - PAGE_BYTES_MAX) / _MORE_BYTES_PER_S):
            async for piece in _unpacked(response.stream, encoding):
                body += piece
                if len(body) > limit_bytes:
                    return bytes(body[:limit_bytes]), True
    except (httpx.TransportError, TimeoutError, zlib.error):
        return bytes(body), True
    return bytes(body), False


async def _unpacked(stream: object, encoding: str) -> AsyncIterator[bytes]:
    assert isinstance(stream, httpx.AsyncByteStream)
    if encoding in ("", "identity"):
        async for piece in stream:
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise WebFailed(f"the page is packed with {encoding[:40]!r}, which was not asked for; try another page")
    unpack = zlib.decompressobj(_GZIP_OR_ZLIB)
    async for piece in stream:
        packed = piece
        while packed:
            yield unpack.decompress(packed, _UNPACKED_AT_ONCE_BYTES)
            packed = unpack.unconsumed_tail
