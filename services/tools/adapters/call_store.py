"""Calls in a NATS key-value bucket."""

import hashlib
import json
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from kit.errors import AlreadyExists
from kit.jetstream import Entry, KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from services.tools.models import ToolOutcome
from services.tools.ports import NotedCall

_BUCKET = "TOOL_CALLS"
_KEEP_S = 7 * 86_400.0
"""A run that waits for a person may come back after days and ask for a call by its id."""
_UNREADABLE = NotedCall("", datetime.fromtimestamp(0, UTC))
"""Stands for a note that cannot be read: somebody began something, long ago."""
_OUTCOME = {field.name for field in fields(ToolOutcome)}


class KeyValueCallStore:
    """CallStore over one bucket; keys are `<tenant>.<digest of the call id>`."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats) -> "KeyValueCallStore":
        return cls(await KeyValue.open(nats, _BUCKET, ttl_s=_KEEP_S))

    async def begin(self, tenant_id: str, call_id: str, call: NotedCall) -> NotedCall | None:
        while True:
            try:
                await self._bucket.create(_key(tenant_id, call_id), _encode(call))
            except AlreadyExists:
                if (there := await self.get(tenant_id, call_id)) is not None:
                    return there
            else:
                return None

    async def get(self, tenant_id: str, call_id: str) -> NotedCall | None:
        entry = await self._bucket.get_current(_key(tenant_id, call_id))
        return _decoded(entry) if entry else None

    async def end(self, tenant_id: str, call_id: str, call: NotedCall) -> None:
        await self._bucket.put(_key(tenant_id, call_id), _encode(call))


def _key(tenant_id: str, call_id: str) -> str:
    return f"{tenant_id}.{hashlib.sha256(call_id.encode()).hexdigest()}"


def _encode(call: NotedCall) -> bytes:
    record = {
        "fingerprint": call.fingerprint,
        "begun_at": call.begun_at.isoformat(),
        "outcome": asdict(call.outcome) if call.outcome else None,
    }
    return json.dumps(record, ensure_ascii=False).encode()


def _decoded(entry: Entry) -> NotedCall:
    try:
        record: dict[str, Any] = json.loads(entry.value or b"")
        said = record["outcome"]
        outcome = ToolOutcome(**{name: said[name] for name in said.keys() & _OUTCOME}) if said else None
        return NotedCall(record["fingerprint"], datetime.fromisoformat(record["begun_at"]), outcome)
    except UNREADABLE as error:
        set_aside(_BUCKET, entry.key, error)
        return _UNREADABLE
