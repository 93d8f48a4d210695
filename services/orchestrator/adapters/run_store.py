"""Run summaries, leases and wishes to cancel, in NATS key-value buckets.

RUN_RECORDS holds the summaries; RUN_ACTIVE a marker for each run that has not ended, so that the sweeper need not read the
history of all runs; RUN_LEASES expires by itself when its holder falls silent; RUN_CANCELS forgets wishes after a day.
"""

import json
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from services.orchestrator.errors import RunDamaged
from services.orchestrator.log.events import Budgets, RunMode, RunStatus
from services.orchestrator.models import BroughtName, Page, RunKey, RunRecord, RunRequest

_DAY_S = 86_400.0
_RECORDS = "RUN_RECORDS"

E = TypeVar("E", bound=Enum)


class KeyValueRunStore:
    """RunStore over four buckets. `holder` names this orchestrator in leases."""

    def __init__(self, records: KeyValue, active: KeyValue, leases: KeyValue, cancels: KeyValue) -> None:
        self._records = records
        self._active = active
        self._leases = leases
        self._cancels = cancels
        self._holder = secrets.token_hex(8).encode()
        self._held: dict[RunKey, int] = {}

    @classmethod
    async def open(cls, nats: Nats, *, lease_s: float, retention_days: float) -> "KeyValueRunStore":
        return cls(
            await KeyValue.open(nats, _RECORDS, ttl_s=retention_days * _DAY_S),
            await KeyValue.open(nats, "RUN_ACTIVE"),
            await KeyValue.open(nats, "RUN_LEASES", ttl_s=lease_s),
            await KeyValue.open(nats, "RUN_CANCELS", ttl_s=_DAY_S),
        )

    async def create(self, record: RunRecord) -> None:
        # The marker first: a crash between the two leaves a marker without a record, which the sweeper clears away.
        await self._active.put(_name(record.key), b"")
        await self._records.create(_name(record.key), _encode(record))

    async def get(self, key: RunKey) -> RunRecord | None:
        entry = await self._records.get(_name(key))
        if entry is None or entry.value is None:
            return None
        try:
            return _decode(key, entry.value)
        except UNREADABLE as error:
            set_aside(_RECORDS, _name(key), error)
            raise RunDamaged(
                f"the record of run {key.run_id} is damaged and cannot be read; delete the run", run_id=key.run_id
            ) from error

    async def finish(self, record: RunRecord) -> None:
        end = {"status": record.status.value, "finished_at": _time(record.finished_at)}
        await self._change(record.key, lambda _: end)
        await self.forget_active(record.key)

    async def forget(self, key: RunKey, at: datetime) -> None:
        await self._change(key, lambda data: _forgotten(data, at))
        await self.forget_active(key)

    async def delete(self, key: RunKey) -> None:
        # The marker last: until it is gone, a sweeper that finds no record clears it away too.
        await self._records.purge(_name(key))
        await self._cancels.purge(_name(key))
        await self.forget_active(key)

    async def _change(self, key: RunKey, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Changes what `change` names and keeps the rest, which a newer version may have added to. A record that is gone stays
        gone; one that cannot be read goes."""
        while (entry := await self._records.get(_name(key))) is not None and entry.value is not None:
            try:
                data: dict[str, Any] = json.loads(entry.value)
                value = json.dumps(data | change(data)).encode()
            except UNREADABLE as error:
                set_aside(_RECORDS, _name(key), error)
                await self._records.purge(_name(key))
                return
            try:
                await self._records.update(_name(key), value, entry.revision)
            except Aborted:
                continue
            return

    async def forget_active(self, key: RunKey) -> None:
        await self._active.purge(_name(key))

    async def all(self) -> AsyncGenerator[RunRecord, None]:
        async for entry in self._records.entries(">"):
            record = _decoded(_key(entry.key), entry.value or b"")
            if record is not None:
                yield record

    async def list(self, tenant_id: str, page_size: int, page_token: str) -> Page:
        # Run ids begin with their time, so newest first is descending order of keys.
        found = {_key(entry.key): entry.value async for entry in self._records.entries(f"{tenant_id}.>")}
        keys = sorted((key for key in found if not page_token or key.run_id < page_token), key=_by_time, reverse=True)
        runs = [record for key in keys[:page_size] if (record := _decoded(key, found[key] or b"")) is not None]
        return Page(runs, keys[page_size - 1].run_id if len(keys) > page_size else "")

    async def watch_running(self) -> AsyncIterator[tuple[RunKey, bool]]:
        async for entry in self._active.watch():
            if entry is not None:
                yield _key(entry.key), entry.value is not None

    async def acquire_lease(self, key: RunKey) -> bool:
        try:
            self._held[key] = await self._leases.create(_name(key), self._holder)
        except AlreadyExists:
            return False
        return True

    async def renew_lease(self, key: RunKey) -> bool:
        try:
            self._held[key] = await self._leases.update(_name(key), self._holder, self._held[key])
        except Aborted:
            # It may still be ours, renewed by an attempt whose answer was lost; or it ran out while the store was away.
            return await self._find_mine(key) is not None or await self.acquire_lease(key)
        return True

    async def release_lease(self, key: RunKey) -> None:
        revision = self._held.pop(key, None)
        while revision is not None:
            try:
                await self._leases.delete(_name(key), revision)
            except Aborted:
                await self._find_mine(key)
            revision = self._held.pop(key, None)

    async def _find_mine(self, key: RunKey) -> int | None:
        """The lease's revision, when this orchestrator still holds it."""
        entry = await self._leases.get(_name(key))
        if entry is None or entry.value != self._holder:
            return None
        self._held[key] = entry.revision
        return entry.revision

    async def request_cancel(self, key: RunKey) -> None:
        await self._cancels.put(_name(key), b"")

    async def watch_cancels(self) -> AsyncIterator[RunKey]:
        async for entry in self._cancels.watch():
            if entry is not None and entry.value is not None:
                yield _key(entry.key)

    async def is_cancelled(self, key: RunKey) -> bool:
        return await self._cancels.get(_name(key)) is not None


def _name(key: RunKey) -> str:
    return f"{key.tenant_id}.{key.run_id}"


def _key(name: str) -> RunKey:
    tenant_id, _, run_id = name.partition(".")
    return RunKey(tenant_id, run_id)


def _by_time(key: RunKey) -> str:
    return key.run_id


def _encode(record: RunRecord) -> bytes:
    request = record.request
    return json.dumps(
        {
            "subject": record.subject,
            "status": record.status.value,
            "created_at": record.created_at.isoformat(),
            "finished_at": _time(record.finished_at),
            "mode": request.mode.value,
            "question": request.question,
            "collection_ids": list(request.collection_ids),
            "thread_id": request.thread_id,
            "agent": request.agent,
            "document_ids": list(request.document_ids),
            "wall_clock_s": request.budgets.wall_clock_s,
            "answer_tokens": request.budgets.answer_tokens,
            "top_k": request.top_k,
            "model_credentials": asdict(request.model_credentials) if request.model_credentials else None,
            "traceparent": record.traceparent,
        }
    ).encode()


def _decoded(key: RunKey, value: bytes) -> RunRecord | None:
    """The record, or None, said so, when it cannot be read."""
    try:
        return _decode(key, value)
    except UNREADABLE as error:
        set_aside(_RECORDS, _name(key), error)
        return None


def _decode(key: RunKey, value: bytes) -> RunRecord:
    """Raises one of UNREADABLE. A word that only a newer version knows becomes UNKNOWN."""
    data: dict[str, Any] = json.loads(value)
    request = RunRequest(
        mode=_member(RunMode, data["mode"]),
        question=data["question"],
        collection_ids=tuple(data["collection_ids"]),
        thread_id=data["thread_id"],
        agent=data["agent"],
        document_ids=tuple(data["document_ids"]),
        budgets=Budgets(data["wall_clock_s"], data["answer_tokens"]),
        top_k=data["top_k"],
        model_credentials=_brought(data.get("model_credentials")),
    )
    return RunRecord(
        key,
        data["subject"],
        request,
        _member(RunStatus, data["status"]),
        datetime.fromisoformat(data["created_at"]),
        _moment(data["finished_at"]),
        _moment(data.get("forgotten_at")),
        data.get("traceparent", ""),  # records of earlier versions have none
    )


def _brought(data: dict[str, Any] | None) -> BroughtName | None:
    return BroughtName(data["model"], data["preset"]) if data else None


def _forgotten(data: dict[str, Any], at: datetime) -> dict[str, Any]:
    now = _time(at)
    if data["finished_at"]:
        return {"forgotten_at": now}
    return {"forgotten_at": now, "finished_at": now, "status": RunStatus.CANCELLED.value}


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _member(kind: type[E], word: str) -> E:
    return kind(word) if word in {member.value for member in kind} else kind["UNKNOWN"]
