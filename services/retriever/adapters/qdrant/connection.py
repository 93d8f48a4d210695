"""The line to a Qdrant server: which versions are spoken to, what is tried again, and what its failures are called here.

REST, not gRPC: encoding 64 points of 384 dimensions takes Python 3 ms either way (the client builds protobuf objects one by
one), REST passes every proxy and ingress, and its requests can be read and tested as they are.
"""

import json
import math
import ssl
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import TypeVar

import httpx
import structlog
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from services.retriever.adapters.server_retry import READ, WRITE, RetryPolicy, cure, retried, shown, too_slow
from services.retriever.errors import EngineUnsupported, IndexUnavailable
from services.retriever.options import READ_TIMEOUT_S, QdrantOptions

_log = structlog.get_logger()
OLDEST_VERSION = (1, 16)
"""Collections have carried metadata since 1.16; facets, tenant indexes and batch queries are older."""
_TESTED_MINORS_APART = 1
"""Qdrant promises that clients and servers one minor version apart understand each other."""
_TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
_WRITE_TIMEOUT_S = 60.0
"""Of one request; callers have shorter deadlines of their own. Deleting by a filter is the longest."""
_IDENTITY = {"accept-encoding": "identity"}
"""A compressed answer leaves the server in several small writes without TCP_NODELAY: on a connection that is kept, the second
waits for the acknowledgement of the first, which the system delays by 40 ms (Nagle's algorithm, RFC 1122 4.2.3.2). Asked for
plain answers, a search took 7 instead of 51 ms."""
_IDLE_CONNECTIONS = 20
"""Kept for the next request, whatever the address: the client's own rule is another for localhost."""

T = TypeVar("T")


class QdrantConnection:
    """Two clients, for reading and for writing, and their rules. Nothing is asked before the server's version is known to be one
    that is understood."""

    def __init__(self, options: QdrantOptions) -> None:
        self.url = shown(options.url)
        self._reader, self._writer = (_client(options, timeout_s) for timeout_s in (READ_TIMEOUT_S, _WRITE_TIMEOUT_S))
        self._is_checked = False

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def read(self, call: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Raises IndexUnavailable, CollectionNotThere when a collection is missing, or EngineUnsupported."""
        await self.check()
        return await self._translated(lambda: call(self._reader), READ)

    async def write(self, call: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Like `read`, with more patience."""
        await self.check()
        return await self._translated(lambda: call(self._writer), WRITE)

    async def check(self) -> None:
        """Raises EngineUnsupported when the server is not one that can be worked with, IndexUnavailable when it is silent."""
        if self._is_checked:
            return
        info = await self._translated(self._reader.info, READ)
        self._check_version(info.version)
        self._is_checked = True

    def _check_version(self, number: str) -> None:
        try:
            major, minor = (int(part) for part in number.split(".")[:2])
        except ValueError:
            raise EngineUnsupported(
                f"what answers at {self.url} calls itself version {number!r}, which is no version of Qdrant; check "
                "GROUNDWORK_QDRANT_URL"
            ) from None
        if (major, minor) < OLDEST_VERSION or major != OLDEST_VERSION[0]:
            raise EngineUnsupported(
                f"the Qdrant server at {self.url} is version {number}; this release works with "
                f"{'.'.join(map(str, OLDEST_VERSION))} and later 1.x: install one of them"
            )
        client_minor = _client_minor()
        if abs(minor - client_minor) > _TESTED_MINORS_APART:
            _log.warning("qdrant_version_untested", server=number, client=f"1.{client_minor}")

    async def _translated(self, call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
        try:
            return await retried(call, policy, _retry_after_s)
        except (ApiException, QdrantException, httpx.HTTPError) as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> Exception:
        if isinstance(error, UnexpectedResponse):
            if error.status_code == 404:
                return CollectionNotThere(f"Qdrant at {self.url} answered 404: {_reason(error)}")
            if error.status_code in (401, 403):
                return IndexUnavailable(
                    f"Qdrant at {self.url} refused the API key ({error.status_code}); check GROUNDWORK_QDRANT_API_KEY"
                )
            return IndexUnavailable(f"Qdrant at {self.url} answered {error.status_code}: {_reason(error)}")
        if isinstance(error, ResourceExhaustedResponse):
            return IndexUnavailable(
                f"Qdrant at {self.url} is asked too much: {error}; ask again later",
                retry_after_s=float(error.retry_after_s),
            )
        cause = error.source if isinstance(error, ResponseHandlingException) else error
        if isinstance(cause, httpx.TimeoutException) and not isinstance(cause, httpx.ConnectTimeout):
            return IndexUnavailable(too_slow(f"Qdrant at {self.url}", cause), retry_after_s=1.0)
        return IndexUnavailable(
            f"Qdrant at {self.url} could not be reached ({type(cause).__name__}: {cause}); {cure(str(cause), 'QDRANT')}"
        )


class CollectionNotThere(IndexUnavailable):
    """The server is well; the collection that was asked about does not exist."""


def _client(options: QdrantOptions, timeout_s: float) -> AsyncQdrantClient:
    # The API key goes as a header: the client's own argument prints a warning with every start on plain HTTP inside a cluster.
    key = {"api-key": options.api_key.get_secret_value()} if options.api_key else {}
    return AsyncQdrantClient(
        url=options.url,
        timeout=math.ceil(timeout_s),
        headers=_IDENTITY | key,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=_IDLE_CONNECTIONS),
        check_compatibility=False,  # it asks from a thread and prints; `check` asks once and says what to do
        verify=ssl.create_default_context(cafile=options.ca_file) if options.ca_file else True,
    )


def _retry_after_s(error: Exception) -> float | None:
    if isinstance(error, ResourceExhaustedResponse):
        return float(error.retry_after_s)
    if isinstance(error, UnexpectedResponse):
        return 0.0 if error.status_code in _TRANSIENT else None
    if isinstance(error, ResponseHandlingException):
        return 0.0 if isinstance(error.source, httpx.TransportError) else None
    return None


def _reason(error: UnexpectedResponse) -> str:
    """The server's own words: {"status": {"error": …}}; what a proxy answers may be anything."""
    try:
        return str(json.loads(error.content)["status"]["error"])
    except (ValueError, KeyError, TypeError):
        return error.reason_phrase or "no reason given"


def _client_minor() -> int:
    return int(version("qdrant-client").split(".")[1])
