"""The model that a user brings with a question, for as long as the run goes on and wherever it does."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from kit.errors import GroundworkError, Unavailable
from kit.llm import ModelUnavailable
from kit.llm.brought import BroughtModel, use_brought_model
from kit.llm.providers import PRESET_URLS
from kit.network.egress import EgressGuard
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.models import RunKey, RunRecord

_KEY = re.compile(r"[!-~]*")
_MAX_CHARS = 2_000


class ModelStore(Protocol):
    """Keeps models so that nobody but an orchestrator can read them. All methods raise Unavailable."""

    async def keep(self, key: RunKey, model: BroughtModel) -> None: ...

    async def get(self, key: RunKey) -> BroughtModel | None:
        """None when it is gone. Raises CannotOpen."""
        ...

    async def drop(self, key: RunKey) -> None:
        """Harmless when repeated."""
        ...


class BroughtModels:
    """Takes models with runs, and gives each run its own."""

    def __init__(self, store: ModelStore, guard: EgressGuard) -> None:
        self._store = store
        self._guard = guard

    async def check(self, model: BroughtModel) -> None:
        """Raises InvalidRequest, UrlRefused or AddressRefused."""
        _check(model)
        await self._guard.check(model.base_url or PRESET_URLS[model.preset])

    async def keep(self, key: RunKey, model: BroughtModel) -> None:
        """Stores the model of a run that is about to be made. Raises Unavailable."""
        await self._store.keep(key, model)

    @asynccontextmanager
    async def in_use(self, record: RunRecord) -> AsyncIterator[None]:
        """Within the block the run asks the model that it brought, if it brought one."""
        if record.request.model_credentials is None:
            yield
            return
        with use_brought_model(await self._read(record.key)):
            yield

    async def drop(self, record: RunRecord) -> None:
        """Forgets the model of a run that has ended. One that is handed over keeps it."""
        if record.request.model_credentials is not None:
            with suppress(Unavailable):  # then it vanishes by itself
                await self._store.drop(record.key)

    async def _read(self, key: RunKey) -> BroughtModel | GroundworkError:
        try:
            model = await self._store.get(key)
        except GroundworkError as error:
            return _gone(error.message)
        return model or _gone("it was kept for as long as it may be")


def _check(model: BroughtModel) -> None:
    if model.preset not in PRESET_URLS:
        known = ", ".join(filter(None, PRESET_URLS))
        raise InvalidRequest(f"there is no preset {model.preset[:80]!r}; use one of {known}", field="model.preset")
    if not model.base_url and not PRESET_URLS[model.preset]:
        raise InvalidRequest("name the endpoint of your model, or a preset", field="model.base_url")
    if "?" in model.base_url or "#" in model.base_url:
        raise InvalidRequest(
            "the endpoint of your model has a ? or #; name it up to its path, as in https://host/v1",
            field="model.base_url",
        )
    if not model.model:
        raise InvalidRequest("name your model", field="model.model")
    if max(map(len, (model.base_url, model.api_key.get_secret_value(), model.model))) > _MAX_CHARS:
        raise InvalidRequest(f"base_url, api_key and model have at most {_MAX_CHARS} characters each", field="model")
    if not _KEY.fullmatch(model.api_key.get_secret_value()):
        raise InvalidRequest(
            "the key of your model has spaces, line breaks or other letters than ASCII", field="model.api_key"
        )


def _gone(why: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"the model that was brought with this question can no longer be read ({why}); ask again to use it",
        reason="BROUGHT_MODEL_GONE",
        retryable=False,
    )
