"""Which model answers each operation can be changed while everything runs (`MODEL_SETTINGS`, one key an operation): all processes
that ask models follow that bucket, and after a restart it still holds. What is not set there is as configured."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from kit.jetstream import Entry, Nats
from kit.llm.errors import ModelRejected, ModelUnavailable
from kit.llm.messages import Operation
from kit.llm.models import Models
from kit.llm.providers import Choice, UnknownModel
from kit.shared_state import MODEL_SETTINGS
from kit.stores.followed_settings import FollowedSettings

_log = structlog.get_logger()
_AS_CONFIGURED = b"null"


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

    def __init__(self, models: Models, now: Callable[[], datetime]) -> None:
        """`open` makes it."""
        self.models = models
        self._now = now
        self._set: dict[Operation, SetModel] = {}
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, models: Models, now: Callable[[], datetime]) -> "ModelSwitch":
        """Returns the switch with what is stored already in force. Raises Unavailable."""
        switch = cls(models, now)
        switch.settings = await FollowedSettings.open(nats, MODEL_SETTINGS.name, switch._apply)
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
        await self.settings.put(operation.value, _encoded(SetModel(choice, by, self._now())))

    async def _check(self, choice: Choice) -> None:
        """Raises ModelRejected also of a model that is away, so that no client repeats the call: each try takes as long."""
        try:
            await self.models.check(choice)
        except (ModelUnavailable, ModelRejected) as error:
            message = f"{choice} does not answer, so nothing was changed: {error.message}. With `force` it is set all the same"
            raise ModelRejected(message, reason=error.reason) from error

    async def reset(self, operation: Operation) -> None:
        """Has all processes ask the configured models again, and returns when this one does. Harmless when repeated."""
        await self.settings.put(operation.value, _AS_CONFIGURED)

    async def _apply(self, entry: Entry) -> None:
        await self._use(Operation(entry.key), _decoded(entry.value or _AS_CONFIGURED))

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
