"""What a model server says of itself: what kind it is, how long its context is, and how many tokens a text has."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from kit.llm.endpoint.presets import Preset, TokenizerApi, preset_of_owner
from kit.llm.endpoint.streaming.decoding import parsed

TIMEOUT_S = 2.0
"""A server that has not answered by then is asked later: an estimate does until then."""
ASK_AGAIN_S = 30.0
_AT_ONCE = 8
_NO_SUCH_PATH = {401, 403, 404, 405, 501}
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""vLLM; OpenRouter and Together; Groq; Mistral."""


@dataclass(frozen=True)
class ServerFacts:
    """What was found out; 0 and None where the server does not say."""

    context_tokens: int = 0
    preset: Preset | None = None


async def discover(client: httpx.AsyncClient, base_url: str, model: str) -> ServerFacts | None:
    """What the server says; None when it does not answer, so that it may be asked again."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            listed = await _get(client, f"{base_url}/models")
            entry = _entry_of(listed, model)
            preset = preset_of_owner(str(entry.get("owned_by", "")))
            said = _tokens_in(entry) or await _context_of(client, root_of(base_url), model, preset)
    except (httpx.HTTPError, TimeoutError):
        return None
    return ServerFacts(said, preset)


def listed_models(response: httpx.Response) -> dict[str, str]:
    """The names of an answer to GET /models, each with its owner; empty for anything else."""
    try:
        listed = parsed(response.text) if response.status_code == httpx.codes.OK else None
    except ValueError:
        return {}
    data = _mapping(listed).get("data")
    entries = [_mapping(each) for each in data] if isinstance(data, list) else []
    return {str(each["id"]): str(each.get("owned_by", "")) for each in entries if "id" in each}


def root_of(base_url: str) -> str:
    """The server's root, where what is not of OpenAI's API lies."""
    return base_url.removesuffix("/v1")


async def _context_of(client: httpx.AsyncClient, root: str, model: str, preset: Preset | None) -> int:
    """The context of servers that do not say it in their list of models."""
    match preset.name if preset else "":
        case "llama.cpp":
            settings = _mapping(_mapping(await _get(client, f"{root}/props")).get("default_generation_settings"))
            return _positive(settings.get("n_ctx"))
        case "ollama":
            running = _mapping(await _get(client, f"{root}/api/ps")).get("models")
            entries = [_mapping(each) for each in running] if isinstance(running, list) else []
            return next((_positive(each.get("context_length")) for each in entries if each.get("model") == model), 0)
        case _:
            return 0


async def _get(client: httpx.AsyncClient, url: str) -> Any:
    """The JSON at an address; None for anything else. Raises HTTPError for a server that is not ready: llama.cpp says 503 while it
    loads its model."""
    response = await client.get(url)
    if response.is_server_error:
        response.raise_for_status()
    if response.status_code != httpx.codes.OK:
        return None
    try:
        return parsed(response.text)
    except ValueError:
        return None


def _entry_of(listed: Any, model: str) -> dict[str, Any]:
    data = _mapping(listed).get("data")
    entries = [_mapping(each) for each in data] if isinstance(data, list) else []
    named = [entry for entry in entries if entry.get("id") == model]
    return next(iter(named or entries[:1]), {}) if named or len(entries) == 1 else {}


def _tokens_in(entry: dict[str, Any]) -> int:
    return next((tokens for name in _CONTEXT_FIELDS if (tokens := _positive(entry.get(name)))), 0)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


class RemoteCounter:
    """Counts with the server's own tokenizer."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        base_url: str,
        model: str,
        api: TokenizerApi,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._url = f"{root_of(base_url)}/tokenize"
        self._model = model
        self._api = api
        self._clock = clock
        self._ask_again_at = 0.0

    async def count(self, texts: Sequence[str]) -> Sequence[int | None]:
        if self._clock() < self._ask_again_at:
            return [None] * len(texts)
        at_once = asyncio.Semaphore(_AT_ONCE)
        counts: list[int | None] = [None] * len(texts)

        async def count_one(index: int) -> None:
            async with at_once:
                counts[index] = await self._count(texts[index])

        try:
            async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
                for index in range(len(texts)):
                    group.create_task(count_one(index))
        except* (httpx.HTTPError, ValueError, TimeoutError):
            self._ask_again_at = max(self._ask_again_at, self._clock() + ASK_AGAIN_S)
        return counts

    async def _count(self, text: str) -> int:
        """Raises ValueError for an answer that is no count."""
        response = await self._client.post(self._url, json=self._body(text))
        if response.status_code in _NO_SUCH_PATH:
            self._ask_again_at = float("inf")
        value = _mapping(parsed(response.text) if response.status_code == httpx.codes.OK else None)
        tokens = value.get("tokens")
        count = value.get("count", len(tokens) if isinstance(tokens, list) else None)
        if isinstance(count, int):
            return count
        raise ValueError("no count")

    def _body(self, text: str) -> dict[str, Any]:
        if self._api is TokenizerApi.LLAMA_CPP:
            return {"content": text, "add_special": False}
        return {"model": self._model, "prompt": text, "add_special_tokens": False}
