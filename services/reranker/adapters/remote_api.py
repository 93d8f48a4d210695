"""The way to a remote model API, whatever its shape: deadlines, retries that honour Retry-After, a breaker, and our errors."""

import asyncio
import email.utils
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeVar

import httpx
from opentelemetry.trace import SpanKind

from kit.network.local_models import LocalModelsOnly, is_bound_to_local_models, is_local_url
from kit.observability.telemetry import Attributes, span
from services.reranker import metrics
from services.reranker.errors import ProviderAnswerWrong, ProviderBusy, ProviderRejected, ProviderUnavailable

_RETRIED = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_FIRST_BACKOFF_S = 0.25
_LONGEST_BACKOFF_S = 8.0
_MAX_ATTEMPTS = 5
_FAILURES_TO_OPEN = 5
_OPEN_S = 10.0
_CONNECT_TIMEOUT_S = 3.0
_DEFAULT_TIMEOUT_S = 60.0
_SHOWN_CHARACTERS = 200

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Endpoint:
    """A remote API."""

    base_url: str
    """Without a path's end: the adapter appends its own."""

    api_key: str
    """Sent as a bearer token; empty sends none."""

    setting: str
    """Start of the names of the settings that configure it, for messages."""

    concurrency: int
    """Requests in flight at a time."""

    local: bool | None = None
    """Whether it is local; None: its address decides."""

    @property
    def is_local(self) -> bool:
        return is_local_url(self.base_url) if self.local is None else self.local


class RemoteApi:
    """Posts JSON. Open it with `open_remote_api`."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        endpoint: Endpoint,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._clock = clock
        self._jitter = jitter
        self._sleep = sleep
        self._in_flight = asyncio.Semaphore(endpoint.concurrency)
        self._failures = 0
        self._open_until = 0.0
        url = httpx.URL(endpoint.base_url)
        self._attributes: Attributes = {
            "http.request.method": "POST",
            "server.address": url.host,
            "server.port": url.port or (443 if url.scheme == "https" else 80),
        }

    async def post(self, path: str, body: dict[str, Any], timeout_s: float | None) -> Any:
        """The decoded answer. Retries what may pass, as long as `timeout_s` allows.

        Raises ProviderUnavailable, ProviderBusy, ProviderRejected, ProviderAnswerWrong or LocalModelsOnly.
        """
        if is_bound_to_local_models() and not self._endpoint.is_local:
            raise LocalModelsOnly(
                f"the collection allows local models only, and {self._endpoint.base_url} is not local; if it is, set "
                f"{self._endpoint.setting}_LOCAL, or let this machine compute"
            )
        deadline = self._clock() + (timeout_s or _DEFAULT_TIMEOUT_S)
        try:
            async with asyncio.timeout(timeout_s or _DEFAULT_TIMEOUT_S), self._in_flight:
                return await self._attempts(path, body, deadline)
        except TimeoutError as error:
            self._count("timeout")
            raise ProviderUnavailable(
                f"{self._endpoint.base_url} did not answer within {timeout_s or _DEFAULT_TIMEOUT_S:.1f} s; "
                "it may be overloaded: ask again",
                reason="MODEL_PROVIDER_TIMEOUT",
            ) from error

    async def _attempts(self, path: str, body: dict[str, Any], deadline: float) -> Any:
        for attempt in range(1, _MAX_ATTEMPTS + 1):
            self._check_breaker()
            failure, retry_after_s = await self._attempt(path, body)
            if not isinstance(failure, ProviderUnavailable | ProviderBusy):
                return failure
            # Full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter"): callers that failed together part.
            backoff_s = self._jitter() * min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2**attempt)
            wait_s = backoff_s if retry_after_s is None else retry_after_s
            if attempt == _MAX_ATTEMPTS or self._clock() + wait_s >= deadline:
                raise failure
            await self._sleep(wait_s)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, path: str, body: dict[str, Any]) -> tuple[Any, float | None]:
        """The answer, or the error that may pass and the seconds the API asked to wait."""
        try:
            with span("POST", self._attributes, SpanKind.CLIENT) as traced:
                response = await self._client.post(path, json=body)
                traced.set_attribute("http.response.status_code", response.status_code)
        except httpx.HTTPError as error:
            self._failed()
            return ProviderUnavailable(
                f"{self._endpoint.base_url} cannot be reached ({type(error).__name__}: {error}); "
                f"check {self._endpoint.setting}_URL and that the server runs"
            ), None
        status = response.status_code
        if status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return self._passing_failure(response)
        self._failures = 0
        if not response.is_success:
            raise self._refusal(response)
        self._count("ok")
        return self._decoded(response), None

    def _passing_failure(self, response: httpx.Response) -> tuple[Any, float | None]:
        retry_after_s = _retry_after_s(response.headers.get("retry-after"))
        said = f"{self._endpoint.base_url} answered HTTP {response.status_code}: {_excerpt(response)}"
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            self._count("busy")  # it lives: no reason to open the breaker
            error = ProviderBusy(f"{said}; lower the load or raise the quota there", retry_after_s=retry_after_s or 1.0)
            return error, retry_after_s
        self._failed()
        return ProviderUnavailable(f"{said}; ask again later", retry_after_s=retry_after_s), retry_after_s

    def _refusal(self, response: httpx.Response) -> ProviderRejected:
        self._count("rejected")
        cures: dict[int, str] = {
            HTTPStatus.UNAUTHORIZED: f"check {self._endpoint.setting}_API_KEY",
            HTTPStatus.FORBIDDEN: f"check {self._endpoint.setting}_API_KEY and what it may use",
            HTTPStatus.NOT_FOUND: f"check {self._endpoint.setting}_URL, _API and _MODEL",
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"lower {self._endpoint.setting}_BATCH_TEXTS",
        }
        cure = cures.get(response.status_code, f"check {self._endpoint.setting}_API and _MODEL")
        return ProviderRejected(
            f"{self._endpoint.base_url} refused with HTTP {response.status_code}: {_excerpt(response)}; {cure}"
        )

    def _decoded(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ProviderAnswerWrong(
                f"{self._endpoint.base_url} sent something that is not JSON; check {self._endpoint.setting}_URL"
            ) from error

    def _check_breaker(self) -> None:
        remaining_s = self._open_until - self._clock()
        if remaining_s > 0:
            self._count("breaker_open")
            raise ProviderUnavailable(
                f"{self._endpoint.base_url} failed {_FAILURES_TO_OPEN} times in a row and is left alone for {remaining_s:.0f} s",
                reason="MODEL_PROVIDER_BREAKER_OPEN",
                retry_after_s=remaining_s,
            )

    def _failed(self) -> None:
        """After the pause the next request is the probe: its failure opens the breaker again, its success closes it."""
        self._count("failed")
        self._failures += 1
        if self._failures >= _FAILURES_TO_OPEN:
            self._open_until = self._clock() + _OPEN_S

    def _count(self, outcome: str) -> None:
        metrics.PROVIDER_REQUESTS.labels(self._endpoint.setting.rsplit("_", 1)[-1].lower(), outcome).inc()


@asynccontextmanager
async def open_remote_api(endpoint: Endpoint) -> AsyncIterator[RemoteApi]:
    """A remote API with connections of its own. The environment's proxies are not used: an address is a setting here."""
    headers = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    timeout = httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S)  # the caller's deadline bounds the rest
    async with httpx.AsyncClient(
        base_url=endpoint.base_url, headers=headers, timeout=timeout, trust_env=False
    ) as client:
        yield RemoteApi(client, endpoint)


async def all_of(calls: Iterable[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """The answers, in order. The first failure cancels the other calls and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _retry_after_s(header: str | None) -> float | None:
    """RFC 9110, section 10.2.3: seconds, or a date."""
    if not header:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        at = email.utils.parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _excerpt(response: httpx.Response) -> str:
    return " ".join(response.text[:_SHOWN_CHARACTERS].split()) or "(nothing said)"
