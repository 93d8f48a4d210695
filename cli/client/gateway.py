"""The HTTP API as the commands use it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

import h11
import httpx

from cli.client.sse import Event, read_events
from cli.errors import ApiError, CliError, ServerUnreachable, UsageError, given

Json = dict[str, Any]

REQUEST_TIMEOUT_S = 60.0
LIST_PAGE = 1000
STREAM_SILENCE_S = 60.0
"""The server pings its streams far more often; silence for this long means a dead connection."""
UPLOAD_TIMEOUT_S = 3600.0
UPLOAD_ATTEMPTS = 8
RETRY_DELAY_MAX_S = 15.0


def in_path(id_: str, what: str) -> str:
    """The id of `what` as a part of a path. Raises UsageError when it is empty: the path would lead elsewhere."""
    return quote(given(id_, what), safe="")


class Gateway:
    """One server. Raises ServerUnreachable and ApiError."""

    def __init__(self, base_url: str, http: httpx.AsyncClient) -> None:
        self.base_url = base_url
        self._http = http

    @classmethod
    @asynccontextmanager
    async def open(cls, base_url: str, api_key: str = "") -> AsyncIterator[Self]:
        """A proxy of the environment is for the world outside, never for this machine. Raises UsageError for a key or an address
        that is none."""
        _require_address(base_url)
        headers = {"Authorization": f"Bearer {_sendable(api_key)}"} if api_key else {}
        timeout = httpx.Timeout(REQUEST_TIMEOUT_S, connect=5.0)
        trust_env = not is_this_machine(base_url)
        async with httpx.AsyncClient(base_url=base_url, timeout=timeout, trust_env=trust_env, headers=headers) as http:
            yield cls(base_url, http)

    async def request(self, method: str, path: str, **options: Any) -> Json:
        """One call; its JSON answer, or {} when it has none."""
        content = await self.content(path, method=method, **options)
        try:
            answer: Json = json.loads(content) if content else {}
        except ValueError as error:
            raise self._is_not_groundwork() from error
        return answer

    async def content(self, path: str, *, method: str = "GET", **options: Any) -> bytes:
        """One call; the bytes of its answer."""
        return (await self._answered(method, path, **options)).content

    async def _answered(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = await self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise self.unreachable(error) from error
        if response.is_error:
            raise _api_error(response)
        return response

    async def tagged(self, method: str, path: str, **options: Any) -> tuple[Json, str]:
        """One call; its JSON answer and the ETag, which names this state of what was answered."""
        response = await self._answered(method, path, **options)
        return response.json(), response.headers.get("ETag", "")

    async def pages(self, path: str, items: str, params: Mapping[str, Any] | None = None) -> list[Json]:
        """All `items` of a list that comes in pages."""
        found: list[Json] = []
        token = ""
        while True:
            page = await self.request(
                "GET", path, params={**(params or {}), "page_size": LIST_PAGE, "page_token": token}
            )
            found += page[items]
            token = page.get("next_page_token") or ""
            if not token:
                return found

    async def lines(self, path: str, params: Mapping[str, Any]) -> AsyncIterator[str]:
        """The lines of an answer that may be long, as they come."""
        try:
            async with self._http.stream("GET", path, params=params) as response:
                if response.is_error:
                    await response.aread()
                    raise _api_error(response)
                async for line in response.aiter_lines():
                    yield line
        except httpx.TransportError as error:
            raise self.unreachable(error) from error

    async def readiness(self) -> tuple[bool, Json]:
        """Whether every service is serving, and the state of each."""
        try:
            response = await self._http.get("/readyz")
            answer: Json = response.json()
        except httpx.TransportError as error:
            raise self.unreachable(error) from error
        except ValueError as error:
            raise self._is_not_groundwork() from error
        return response.status_code == 200, answer

    async def upload(self, collection_id: str, file: Path, name: str, fields: Mapping[str, str] | None = None) -> Json:
        """Streams a file from disk, as document `name`, with further fields of the form. Repeats what may be repeated: the same
        file and name are one document."""
        for attempt in range(1, UPLOAD_ATTEMPTS + 1):
            try:
                return await self._upload_once(collection_id, file, name, fields or {})
            except (ApiError, httpx.TransportError) as error:
                delay_s = _retry_delay_s(error, attempt)
                if delay_s is None or attempt == UPLOAD_ATTEMPTS:
                    if isinstance(error, httpx.TransportError):
                        raise self.unreachable(error) from error
                    raise
                await asyncio.sleep(delay_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _upload_once(self, collection_id: str, file: Path, name: str, fields: Mapping[str, str]) -> Json:
        timeout = httpx.Timeout(UPLOAD_TIMEOUT_S, connect=5.0)
        path = f"/v1/collections/{in_path(collection_id, 'collection')}/documents"
        with file.open("rb") as stream:
            try:
                response = await self._http.post(path, data=fields, files={"file": (name, stream)}, timeout=timeout)
            except (h11.LocalProtocolError, httpx.LocalProtocolError) as error:
                # Its size is said before it is sent; the client lets one of these through and wraps the other.
                raise OSError(
                    errno.EBUSY, "it changed while it was read; ingest it again when it is complete"
                ) from error
        if response.is_error:
            raise _api_error(response)
        document: Json = response.json()["document"]
        return document

    @asynccontextmanager
    async def events(
        self, method: str, path: str, *, json: Json | None = None, params: Mapping[str, Any] | None = None
    ) -> AsyncIterator[tuple[str | None, AsyncIterator[Event]]]:
        """An event stream: the run it belongs to, if any, and its events. Lets httpx.TransportError through: a broken
        stream is taken up again by those who know how."""
        timeout = httpx.Timeout(STREAM_SILENCE_S, connect=5.0)
        headers = {"Accept": "text/event-stream"}
        async with self._http.stream(
            method, path, json=json, params=params, headers=headers, timeout=timeout
        ) as response:
            if response.is_error:
                await response.aread()
                raise _api_error(response)
            async with aclosing(response.aiter_bytes()) as pieces:  # type: ignore[type-var]  # it is a generator
                yield response.headers.get("x-run-id"), read_events(pieces)

    def _is_not_groundwork(self) -> CliError:
        return CliError(f"{self.base_url} answers, but it is not Groundwork. Check GROUNDWORK_URL.")

    def unreachable(self, error: Exception) -> ServerUnreachable:
        """What to say when nobody answers, or nobody who can be trusted."""
        if isinstance(tls := _root_cause(error), ssl.SSLCertVerificationError):
            # Of this machine nothing in the environment is heeded, see `open`.
            own = "" if is_this_machine(self.base_url) else "; an authority of your own is named by SSL_CERT_FILE"
            return ServerUnreachable(
                f"{self.base_url} has a certificate that is not trusted: {tls.verify_message}. Check the address{own}"
            )
        if isinstance(tls, ssl.SSLError):
            return ServerUnreachable(
                f"{self.base_url} does not speak TLS as this machine does ({tls.reason}). Perhaps its address begins with http://"
            )
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ServerUnreachable(
                f"No Groundwork answers at {self.base_url}. Start it with `groundwork up` (or `make run`). "
                "If it runs somewhere else, say where: GROUNDWORK_PORT=… or GROUNDWORK_URL=http://host:port"
            )
        return ServerUnreachable(
            f"The connection to {self.base_url} broke ({str(error) or type(error).__name__}). Try again."
        )


def _root_cause(error: BaseException) -> BaseException:
    """What httpx wrapped, layer by layer: its own errors do not tell a refused connection from a refused certificate."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return error


def _api_error(response: httpx.Response) -> ApiError:
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    retry_after = response.headers.get("retry-after", "")
    return ApiError(
        response.status_code,
        problem if isinstance(problem, dict) else {},
        float(retry_after) if retry_after.isdigit() else None,
    )


def _retry_delay_s(error: Exception, attempt: int) -> float | None:
    """None when a repetition would not help. A refused connection does not heal by itself; a busy server does."""
    if isinstance(error, httpx.ConnectError):
        return None
    if isinstance(error, ApiError):
        if error.status not in {429, 503}:
            return None
        if error.retry_after_s is not None:
            return min(error.retry_after_s, RETRY_DELAY_MAX_S)
    return min(0.5 * 2.0**attempt, RETRY_DELAY_MAX_S)


def _sendable(api_key: str) -> str:
    """The key as a header can carry it. Raises UsageError, without quoting it."""
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise UsageError(
            "GROUNDWORK_API_KEY (--api-key) is no API key: it has spaces, line breaks or other letters. Copy it again."
        )
    return api_key


def _require_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or too large
        is_address = False
    if is_address:
        return
    if "://" not in base_url and base_url.partition(":")[0] not in {"http", "https"}:
        raise UsageError(f"GROUNDWORK_URL={base_url} lacks http:// or https://. Write GROUNDWORK_URL=http://{base_url}")
    raise UsageError(
        f"GROUNDWORK_URL={base_url} is no address of a server. Write it as http://host:port or https://host"
    )


def is_this_machine(base_url: str) -> bool:
    """Whether the address is one of this machine's own."""
    name = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
