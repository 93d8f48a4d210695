"""The line to an Elasticsearch cluster: which versions are spoken to, what is tried again, and what its failures are called.

The client's own retries are off: they know nothing of our deadlines and have no pauses. It still takes another node for each
try when several are named.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from elasticsearch import ApiError, AsyncElasticsearch, TransportError, UnsupportedProductError
from elasticsearch import ConnectionError as NotConnected
from elasticsearch import ConnectionTimeout as NoAnswer

from services.retriever.adapters.server_retry import READ, WRITE, RetryPolicy, cure, retried, shown, too_slow
from services.retriever.errors import EngineUnsupported, IndexUnavailable
from services.retriever.options import READ_TIMEOUT_S, ElasticsearchOptions

_log = structlog.get_logger()
OLDEST_MAJOR = 9
"""The client says "compatible-with=9" with each request: servers before 9 refuse that, later ones promise it for one major."""
_TRANSIENT = frozenset((408, 429, 502, 503, 504))
_WRITE_TIMEOUT_S = 60.0
"""Of one request; callers have shorter deadlines of their own. Deleting by a query is the longest."""
_CONNECTIONS_PER_NODE = 100
"""The client's 10 would have searches wait for revisions that are being written."""

T = TypeVar("T")


class ElasticsearchConnection:
    """One client and its rules. Nothing is asked before the server's version is known to be one that is understood."""

    def __init__(self, options: ElasticsearchOptions) -> None:
        self.url = ", ".join(map(shown, options.urls))
        self._client = AsyncElasticsearch(
            list(options.urls),
            **_access(options),
            connections_per_node=_CONNECTIONS_PER_NODE,
            request_timeout=_WRITE_TIMEOUT_S,
            max_retries=0,
            retry_on_timeout=False,
        )
        self._reader = self._client.options(request_timeout=READ_TIMEOUT_S)
        self._is_checked = False

    async def close(self) -> None:
        await self._client.close()

    async def read(self, call: Callable[[AsyncElasticsearch], Awaitable[T]]) -> T:
        """Raises IndexUnavailable, IndexNotThere when the index is missing, or EngineUnsupported."""
        await self.check()
        return await self._translated(lambda: call(self._reader), READ)

    async def write(self, call: Callable[[AsyncElasticsearch], Awaitable[T]]) -> T:
        """Like `read`, with more patience."""
        await self.check()
        return await self._translated(lambda: call(self._client), WRITE)

    async def check(self) -> None:
        """Raises EngineUnsupported when the server is not one that can be worked with, IndexUnavailable when it is silent."""
        if self._is_checked:
            return
        info: Any = await self._translated(self._reader.info, READ)
        number = str(info["version"]["number"])
        if not number.partition(".")[0].isdecimal() or int(number.partition(".")[0]) < OLDEST_MAJOR:
            raise self._too_old(number)
        self._is_checked = True

    def _too_old(self, number: str) -> EngineUnsupported:
        return EngineUnsupported(
            f"the Elasticsearch server at {self.url} is version {number}; this release works with {OLDEST_MAJOR}.0 and later: "
            "upgrade it"
        )

    async def _translated(self, call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
        try:
            return await retried(call, policy, _retry_after_s)
        except UnsupportedProductError as error:
            raise EngineUnsupported(
                f"what answers at {self.url} is not Elasticsearch (OpenSearch is another product); check "
                "GROUNDWORK_ELASTICSEARCH_URL"
            ) from error
        except (ApiError, TransportError) as error:
            raise self._failure(error) from error

    def _failure(self, error: ApiError | TransportError) -> Exception:
        if not isinstance(error, ApiError):
            return self._not_reached(error)
        if error.error == "media_type_header_exception":
            return self._too_old(f"older than {OLDEST_MAJOR}")
        if error.status_code == 401:
            return IndexUnavailable(
                f"Elasticsearch at {self.url} does not know these credentials; check GROUNDWORK_ELASTICSEARCH_API_KEY, or "
                "GROUNDWORK_ELASTICSEARCH_USERNAME and _PASSWORD"
            )
        reason = f"Elasticsearch at {self.url} answered {error.status_code} {error.error}: {reason_of(error.body)}"
        if error.status_code == 403:
            return IndexUnavailable(
                f"{reason}; give the credentials the privileges that docs/operations/search.md names"
            )
        if error.error == "index_not_found_exception":
            return IndexNotThere(reason)
        return IndexUnavailable(reason, retry_after_s=1.0 if error.status_code in _TRANSIENT else None)

    def _not_reached(self, error: TransportError) -> IndexUnavailable:
        if isinstance(error, NoAnswer):
            return IndexUnavailable(too_slow(f"Elasticsearch at {self.url}", error), retry_after_s=1.0)
        return IndexUnavailable(
            f"Elasticsearch at {self.url} could not be reached ({type(error).__name__}: {error.message}); "
            f"{cure(str(error.message), 'ELASTICSEARCH')}"
        )


class IndexNotThere(IndexUnavailable):
    """The server is well; the index that was asked about does not exist."""


def is_transient(status: int) -> bool:
    """Whether the same request, or item of a bulk request, may succeed shortly: a queue was full, a shard has no primary."""
    return status in _TRANSIENT


def reason_of(body: Any) -> str:
    """The server's own words: {"error": {"type": …, "reason": …, "caused_by": {"reason": …}}}; a proxy's may be anything."""
    error = body.get("error") if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return str(error)[:200]
    cause = error.get("caused_by") or {}
    reasons = [str(part["reason"]) for part in (error, cause) if part.get("reason")]
    return ": ".join(reasons)[:400] or "no reason given"


def _access(options: ElasticsearchOptions) -> dict[str, Any]:
    access: dict[str, Any] = {"ca_certs": str(options.ca_file)} if options.ca_file else {}
    if options.api_key:
        return access | {"api_key": options.api_key.get_secret_value()}
    if options.username and options.password:
        return access | {"basic_auth": (options.username, options.password.get_secret_value())}
    return access


def _retry_after_s(error: Exception) -> float | None:
    if isinstance(error, ApiError):
        return 0.0 if is_transient(error.status_code) else None
    return 0.0 if isinstance(error, NotConnected | NoAnswer) else None
