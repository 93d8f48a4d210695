"""Calls in a NATS key-value bucket. A call is noted before it looks whether its caller was forgotten, and forgetting marks the
caller before it lists the calls: whichever comes first, one sees the other."""

import hashlib
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from google.protobuf.message import DecodeError
from groundwork.tools.v1 import record_pb2

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import Entry, KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from services.tools.adapters.wire import decode_outcome, encode_outcome
from services.tools.ports import NotedCall
from services.tools.state import CALLS

_UNREADABLE = NotedCall("", datetime.fromtimestamp(0, UTC))
"""Stands for a note that cannot be read: somebody began something, long ago."""
_FORGOTTEN = "forgotten"
"""In place of a call's digest: marks a caller whose calls were forgotten."""


class KeyValueCallStore:
    """CallStore over one bucket; keys are `<tenant>.<digest of the caller>.<digest of the call id>`."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats) -> "KeyValueCallStore":
        return cls(await KeyValue.open(nats, CALLS.name, ttl_s=CALLS.kept_for_s))

    async def begin(self, tenant_id: str, call_id: str, call: NotedCall) -> NotedCall | None:
        while True:
            try:
                await self._bucket.create(_key(tenant_id, call_id), _encode(call))
            except AlreadyExists:
                if (there := await self._read(_key(tenant_id, call_id))) is not None:
                    return there
            else:
                break
        if not await self._caller_is_forgotten(tenant_id, call_id):
            return None
        await self._forget(_key(tenant_id, call_id))
        return replace(call, forgotten=True)

    async def get(self, tenant_id: str, call_id: str) -> NotedCall | None:
        return await self._read(_key(tenant_id, call_id))

    async def end(self, tenant_id: str, call_id: str, call: NotedCall) -> None:
        key = _key(tenant_id, call_id)
        while (entry := await self._bucket.get(key)) is not None and not _decoded(entry).forgotten:
            if await self._caller_is_forgotten(tenant_id, call_id):
                call = replace(call, outcome=None, forgotten=True)
            if await self._replaced(entry, call):
                return

    async def forget(self, tenant_id: str, caller: str) -> None:
        prefix = f"{tenant_id}.{_digest(caller)}"
        await self._bucket.put(f"{prefix}.{_FORGOTTEN}", b"")
        for key in await self._bucket.keys(f"{prefix}.*"):
            if not key.endswith(f".{_FORGOTTEN}"):
                await self._forget(key)

    async def _forget(self, key: str) -> None:
        while (entry := await self._bucket.get(key)) is not None:
            call = _decoded(entry)
            if call.forgotten or await self._replaced(entry, replace(call, outcome=None, forgotten=True)):
                return

    async def _replaced(self, entry: Entry, call: NotedCall) -> bool:
        """False when somebody has written it meanwhile."""
        try:
            await self._bucket.update(entry.key, _rewritten(entry.value or b"", call), entry.revision)
        except Aborted:
            return False
        return True

    async def _caller_is_forgotten(self, tenant_id: str, call_id: str) -> bool:
        mark = f"{tenant_id}.{_digest(_caller(call_id))}.{_FORGOTTEN}"
        return await self._bucket.get(mark) is not None

    async def _read(self, key: str) -> NotedCall | None:
        entry = await self._bucket.get(key)
        return _decoded(entry) if entry else None


def _key(tenant_id: str, call_id: str) -> str:
    return f"{tenant_id}.{_digest(_caller(call_id))}.{_digest(call_id)}"


def _caller(call_id: str) -> str:
    return call_id.partition("/")[0]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _encode(call: NotedCall) -> bytes:
    return _filled(record_pb2.CallRecord(), call)


def _rewritten(value: bytes, call: NotedCall) -> bytes:
    """The stored record changed to `call`. What a newer version put into it stays, unless the call is forgotten: it may be text."""
    record = record_pb2.CallRecord()
    if not call.forgotten:
        with suppress(DecodeError):
            record.ParseFromString(value)
    return _filled(record, call)


def _filled(record: record_pb2.CallRecord, call: NotedCall) -> bytes:
    record.fingerprint, record.forgotten = call.fingerprint, call.forgotten
    record.begun_at.FromDatetime(call.begun_at)
    record.ClearField("result")
    if call.outcome is not None:
        record.result.CopyFrom(encode_outcome(call.outcome))
    return record.SerializeToString()


def _decoded(entry: Entry) -> NotedCall:
    data = entry.value or b""
    try:
        return _from_record(data)
    except (DecodeError, *UNREADABLE) as error:
        set_aside(CALLS.name, entry.key, error)
        return _UNREADABLE


def _from_record(data: bytes) -> NotedCall:
    record = record_pb2.CallRecord.FromString(data)
    outcome = decode_outcome(record.result) if record.HasField("result") else None
    return NotedCall(record.fingerprint, record.begun_at.ToDatetime(UTC), outcome, record.forgotten)
