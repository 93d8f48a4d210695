"""Which model answers each operation can be changed while everything runs (`MODEL_SETTINGS`, one key an operation): all processes
that ask models follow that bucket, and after a restart it still holds. What is not set there is as configured."""

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from kit import deadline
from kit.errors import Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.jetstream.opening import patient
from kit.llm.errors import ModelRejected, ModelUnavailable
from kit.llm.messages import Operation
from kit.llm.models import Models
from kit.llm.providers import Choice, UnknownModel
from kit.records import UNREADABLE, set_aside
from kit.shared_state import MODEL_SETTINGS

_log = structlog.get_logger()
_AS_CONFIGURED = b"null"
_RETRY_AFTER_S = 1.0
_APPLIED_WITHIN_S = 5.0


@dataclass(frozen=True)
class SetModel:
    """A model that was set at run time."""

    choice: Choice
    set_by: str
    set_at: datetime


@dataclass(frozen=True)
class OperationModels:
    """What an operation asks: its chain, the first choice in front, and who set that at run time, if somebody did."""

    operation: Operation
    chain: Sequence[Choice]
    set_model: SetModel | None


class ModelSwitch:
    """Sets models, and has `models` follow what is set by anybody."""

    def __init__(self, models: Models, bucket: KeyValue, now: Callable[[], datetime]) -> None:
        self.models = models
        self._bucket = bucket
        self._now = now
        self._set: dict[Operation, SetModel] = {}
        self._applied_revision = 0
        self._applied = asyncio.Condition()

    @classmethod
    @patient
    async def open(cls, nats: Nats, models: Models, now: Callable[[], datetime]) -> "ModelSwitch":
        """With what is set already in force. Raises Unavailable."""
        switch = cls(models, await KeyValue.open(nats, MODEL_SETTINGS.name), now)
        async for entry in switch._bucket.entries(">"):
            await switch._apply(entry)
        return switch

    def operations(self) -> Sequence[OperationModels]:
        """All operations as they are now."""
        return [self.operation(each) for each in Operation]

    def operation(self, operation: Operation) -> OperationModels:
        return OperationModels(operation, self.models.chain(operation), self._set.get(operation))

    async def set(self, operation: Operation, choice: Choice, *, by: str, force: bool = False) -> None:
        """Has all processes ask this model first, and returns when this one does. Unless `force`, the model must answer.

        Raises UnknownModel or ModelRejected, and then nothing has changed.
        """
        self.models.catalog.require(choice)
        if not force:
            await self._check(choice)
        await self._put(operation, _encoded(SetModel(choice, by, self._now())))

    async def _check(self, choice: Choice) -> None:
        """Raises ModelRejected also of a model that is away, so that no client repeats the call: each try takes as long."""
        try:
            await self.models.check(choice)
        except (ModelUnavailable, ModelRejected) as error:
            message = f"{choice} does not answer, so nothing was changed: {error.message}. With `force` it is set all the same"
            raise ModelRejected(message, reason=error.reason) from error

    async def reset(self, operation: Operation) -> None:
        """Has all processes ask the configured models again, and returns when this one does. Harmless when repeated."""
        await self._put(operation, _AS_CONFIGURED)

    async def follow(self) -> None:
        """Applies what is set, here or elsewhere. Runs until cancelled."""
        while True:
            try:
                async with aclosing(self._bucket.watch()) as updates:
                    async for entry in updates:
                        if entry is not None:
                            await self._apply(entry)
            except Unavailable as error:
                _log.warning("model_settings_not_followed", error=error.message)
                await asyncio.sleep(_RETRY_AFTER_S)

    async def _put(self, operation: Operation, value: bytes) -> None:
        revision = await self._bucket.put(operation.value, value)
        try:
            async with asyncio.timeout(deadline.bounded_timeout_s(_APPLIED_WITHIN_S)), self._applied:
                await self._applied.wait_for(lambda: self._applied_revision >= revision)
        except TimeoutError as error:
            raise Unavailable(
                "the model is set, but this process has not heard of it yet; look again in a few seconds",
                reason="MODEL_NOT_YET_APPLIED",
            ) from error

    async def _apply(self, entry: Entry) -> None:
        try:
            operation = Operation(entry.key)
            setting = _decoded(entry.value or _AS_CONFIGURED)
        except UNREADABLE as error:  # a newer version's, perhaps
            set_aside(MODEL_SETTINGS.name, entry.key, error)
        else:
            await self._use(operation, setting)
        async with self._applied:
            self._applied_revision = max(self._applied_revision, entry.revision)
            self._applied.notify_all()

    async def _use(self, operation: Operation, setting: SetModel | None) -> None:
        try:
            await self.models.use(operation, setting.choice if setting else None)
        except UnknownModel as error:
            # The settings changed since: what they say holds, and operators see that nothing is set.
            _log.warning("set_model_not_offered", operation=operation.value, error=error.message)
            setting = None
            await self.models.use(operation)
        self._set.pop(operation, None)
        if setting is not None:
            self._set[operation] = setting
            _log.info("model_in_use", operation=operation.value, model=str(setting.choice), set_by=setting.set_by)


def _encoded(model: SetModel) -> bytes:
    choice = model.choice
    record = {
        "provider": choice.provider,
        "model": choice.model,
        "set_by": model.set_by,
        "set_at": model.set_at.isoformat(),
    }
    return json.dumps(record).encode()


def _decoded(value: bytes) -> SetModel | None:
    """Raises one of UNREADABLE."""
    data: dict[str, Any] | None = json.loads(value)
    if data is None:
        return None
    return SetModel(
        Choice(data["provider"], data["model"]), data.get("set_by", ""), datetime.fromisoformat(data["set_at"])
    )
