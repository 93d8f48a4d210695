"""Whether the language models answer, for operators: without one answers quote the documents, which a quiet hour must not hide.

Each provider is asked for its list of models now and then, which costs nothing; what the requests of runs met counts too."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import structlog

from kit.breaker import BreakerState
from kit.llm.endpoint.discovery import listed_models
from kit.llm.endpoint.endpoint import base_url_of
from kit.llm.models import Models
from kit.llm.opening import setting_of
from kit.llm.providers import Provider
from kit.observability.ops import Trouble

_log = structlog.get_logger()
PART = "language model"
"""What each trouble is about, with the provider's name behind."""
KIND = "language_model"
_INTERVAL_S = 15.0
_TIMEOUT_S = 5.0
_FAILED_LATELY_S = 600.0
"""How long the failure of a run's request is shown when none has succeeded since: a provider that is not asked cannot show that it
is well again."""
_LISTS_NO_MODELS = frozenset({"anthropic"})
"""Presets whose list of models wants other credentials than their chat API."""
_LISTS_ALL = "vllm"
"""It lists all that it serves, by the names under which it may be asked."""


@dataclass(frozen=True)
class _Problem:
    since_s: float
    message: str


class ProviderWatch:
    """Asks all providers of the settings every quarter of a minute."""

    def __init__(
        self,
        models: Models,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._models = models
        self._transport = transport
        self._clock = clock
        self._problems: dict[str, _Problem] = {}

    def troubles(self) -> Sequence[Trouble]:
        """Which provider cannot be asked, or has failed. None stops the service: answers go on without it, and say so."""
        found = []
        for name in self._models.catalog.providers:
            message = self.problem(name)
            if message:
                found.append(Trouble(f"{PART} {name}", f"{message}; answers do without it and say so", kind=KIND))
        return found

    def problem(self, name: str) -> str:
        """What is wrong with the provider, in words; empty where it answers."""
        now = self._clock()
        if problem := self._problems.get(name):
            return f"{problem.message} (since {now - problem.since_s:.0f} s)"
        failure = self._models.last_failure(name)
        left_alone = self._models.state(name) is not BreakerState.CLOSED
        if failure is not None and (left_alone or now - failure.at_s < _FAILED_LATELY_S):
            return f"its last request failed: {failure.message}"
        return ""

    async def run(self) -> None:
        """Works until cancelled."""
        providers = self._models.catalog.providers
        if not providers:
            return
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(await asyncio.to_thread(self._client))
            while True:
                await self.look(client)
                await asyncio.sleep(_INTERVAL_S)

    def _client(self) -> httpx.AsyncClient:  # reads the certificates of the system: in a thread
        return httpx.AsyncClient(
            headers={"user-agent": "groundwork"}, timeout=_TIMEOUT_S, follow_redirects=False, transport=self._transport
        )

    async def look(self, client: httpx.AsyncClient) -> None:
        """Asks each once."""
        async with asyncio.TaskGroup() as group:
            for name, provider in self._models.catalog.providers.items():
                group.create_task(self._look_at(client, name, provider))

    async def _look_at(self, client: httpx.AsyncClient, name: str, provider: Provider) -> None:
        message = await self._ask(client, name, provider)
        known = self._problems.get(name)
        if not message:
            if self._problems.pop(name, None) is not None:
                _log.info("language_model_back", provider=name)
            return
        if known is None:
            _log.error("language_model_away", provider=name, problem=message)
        self._problems[name] = _Problem(known.since_s if known else self._clock(), message)

    async def _ask(self, client: httpx.AsyncClient, name: str, provider: Provider) -> str:
        """What is wrong; empty when nothing is."""
        url, setting = base_url_of(provider.url), setting_of(name)
        place = urlsplit(url).netloc.rpartition("@")[2]
        try:
            key = (await asyncio.to_thread(provider.key)).get_secret_value()  # from a file, perhaps
            async with asyncio.timeout(_TIMEOUT_S):
                answer = await client.get(f"{url}/models", headers={"authorization": f"Bearer {key}"} if key else {})
        except (httpx.HTTPError, TimeoutError, OSError, ValueError) as error:
            kind = type(error).__name__
            return f"{place} cannot be reached ({kind}); check {setting('base_url')} and that the server runs"
        if answer.is_server_error:
            return f"{place} answers with HTTP {answer.status_code}; look at the server"
        if answer.status_code in {401, 403} and provider.preset not in _LISTS_NO_MODELS:
            return f"{place} refuses the key (HTTP {answer.status_code}); check {setting('api_key')}"
        if answer.status_code == httpx.codes.NOT_FOUND and provider.preset == _LISTS_ALL:
            return f"{place} has no API there (HTTP 404); {setting('base_url')} usually ends in /v1"
        return self._unserved(name, provider, answer)

    def _unserved(self, name: str, provider: Provider, answer: httpx.Response) -> str:
        """A model that operations ask for and that its server does not have; only of a server that lists all it has."""
        served = listed_models(answer)
        if not served or (provider.preset != _LISTS_ALL and set(served.values()) != {_LISTS_ALL}):
            return ""
        asked = self._models.asked_of(name)
        missing = ", ".join(sorted(asked - served.keys()))
        if not missing:
            return ""
        return f"it serves {', '.join(sorted(served))} and not {missing}; check {setting_of(name)('model')}"
