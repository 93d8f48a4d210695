"""Models that users bring with their questions, sealed, in a bucket whose entries vanish by themselves."""

import json

from pydantic import SecretStr

from kit.access.sealing import CannotOpen, Sealer
from kit.jetstream import KeyValue, Nats
from kit.llm.brought import BroughtModel
from kit.records import UNREADABLE
from services.orchestrator.models import RunKey
from services.orchestrator.state import MODEL_CREDENTIALS


class SealedModelStore:
    """ModelStore over a bucket. A value can be opened at its own key only."""

    def __init__(self, bucket: KeyValue, sealer: Sealer) -> None:
        self._bucket = bucket
        self._sealer = sealer

    @classmethod
    async def open(cls, nats: Nats, sealer: Sealer, *, life_s: float) -> "SealedModelStore":
        return cls(await KeyValue.open(nats, MODEL_CREDENTIALS.name, ttl_s=life_s), sealer)

    async def keep(self, key: RunKey, model: BroughtModel) -> None:
        await self._bucket.put(_name(key), self._sealer.seal(_encode(model), _place(key)))

    async def get(self, key: RunKey) -> BroughtModel | None:
        entry = await self._bucket.get(_name(key))
        if entry is None or entry.value is None:
            return None
        try:
            return _decode(self._sealer.open(entry.value, _place(key)))
        except UNREADABLE as error:
            raise CannotOpen("a newer version wrote it") from error

    async def drop(self, key: RunKey) -> None:
        await self._bucket.purge(_name(key))


def _name(key: RunKey) -> str:
    return f"{key.tenant_id}.{key.run_id}"


def _place(key: RunKey) -> str:
    return f"{MODEL_CREDENTIALS.name}/{_name(key)}"


def _encode(model: BroughtModel) -> bytes:
    return json.dumps(
        {
            "base_url": model.base_url,
            "api_key": model.api_key.get_secret_value(),
            "model": model.model,
            "preset": model.preset,
        }
    ).encode()


def _decode(data: bytes) -> BroughtModel:
    value = json.loads(data)
    return BroughtModel(value["base_url"], SecretStr(value["api_key"]), value["model"], value["preset"])
