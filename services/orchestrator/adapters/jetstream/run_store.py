"""Summaries of runs, wishes to cancel and idempotency keys, in NATS key-value buckets.

RUN_RECORDS holds the summaries; RUN_ACTIVE a marker for each run that has not ended (see markers.py); RUN_CANCELS forgets wishes
after a day, RUN_KEYS idempotency keys after `key_ttl_s`.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime

from google.protobuf.message import DecodeError
from groundwork.orchestrator.v1 import orchestrator_pb2 as api
from groundwork.orchestrator.v1 import record_pb2 as pb

from kit.access.principal import Principal
from kit.errors import Aborted, AlreadyExists
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from kit.stores.idempotency import IdempotencyConflict
from services.orchestrator.adapters.codec import fill
from services.orchestrator.adapters.jetstream import records
from services.orchestrator.errors import RunDamaged
from services.orchestrator.models import Page, RunKey, RunRecord, RunRequest
from services.orchestrator.state import CANCELS, KEYS, MARKERS, RECORDS

_DAY_S = 86_400.0
_READ_AT_ONCE = 64
"""Records that a listing reads at a time. An answer takes about 10 KB."""


class KeyValueRunStore:
    """RunStore over four buckets."""

    def __init__(self, records_: KeyValue, active: KeyValue, cancels: KeyValue, keys: KeyValue) -> None:
        self._records = records_
        self._active = active
        self._cancels = cancels
        self._keys = keys

    @classmethod
    async def open(cls, nats: Nats, *, retention_days: float, key_ttl_s: float = _DAY_S) -> "KeyValueRunStore":
        return cls(
            await KeyValue.open(nats, RECORDS.name, ttl_s=retention_days * _DAY_S, erases=RECORDS.is_erased),
            await KeyValue.open(nats, MARKERS.name),
            await KeyValue.open(nats, CANCELS.name, ttl_s=CANCELS.kept_for_s),
            await KeyValue.open(nats, KEYS.name, ttl_s=key_ttl_s),
        )

    async def create(self, record: RunRecord) -> None:
        await self._records.create(record.key.name, records.encode(record))

    async def get(self, key: RunKey) -> RunRecord | None:
        entry = await self._records.get(key.name)
        if entry is None or entry.value is None:
            return None
        try:
            return records.decode(key, entry.value)
        except UNREADABLE as error:
            set_aside(RECORDS.name, key.name, error)
            raise RunDamaged(
                f"the record of run {key.run_id} is damaged and cannot be read; delete the run", run_id=key.run_id
            ) from error

    async def finish(self, record: RunRecord) -> None:
        await self._change(record.key, lambda message: records.set_end(message, record))
        await self.forget_active(record.key)

    async def set_status(self, record: RunRecord) -> None:
        await self._change(record.key, lambda message: records.set_going_on(message, record))

    async def drop_outcome(self, key: RunKey) -> None:
        await self._change(key, records.drop_outcome)

    async def drop_said_before(self, key: RunKey) -> None:
        await self._change(key, records.drop_said_before)

    async def forget(self, key: RunKey, at: datetime) -> None:
        await self._change(key, lambda message: records.set_forgotten(message, at))
        await self.forget_active(key)

    async def delete(self, key: RunKey) -> None:
        # The marker last: until it is gone, a sweeper that finds no record clears it away too.
        await self._records.purge(key.name)
        await self._cancels.purge(key.name)
        await self.forget_active(key)

    async def _change(self, key: RunKey, change: Callable[[pb.RunRecord], None]) -> None:
        """Changes the stored message in place: what a newer version added to it stays. A record that is gone stays gone; one that
        cannot be read goes."""
        while (entry := await self._records.get(key.name)) is not None and entry.value is not None:
            try:
                message = records.parse(entry.value)
            except UNREADABLE as error:
                set_aside(RECORDS.name, key.name, error)
                await self._records.purge(key.name)
                return
            change(message)
            try:
                await self._records.update(key.name, message.SerializeToString(), entry.revision)
            except Aborted:
                continue
            return

    async def forget_active(self, key: RunKey) -> None:
        await self._active.purge(key.name)

    async def all(self) -> AsyncGenerator[RunRecord, None]:
        async for entry in self._records.entries(">"):
            record = _decoded(RunKey.named(entry.key), entry.value or b"")
            if record is not None:
                yield record

    async def list(self, tenant_id: str, page_size: int, page_token: str, subject: str | None = None) -> Page:
        # Run ids begin with their time, so newest first is descending order of keys.
        names = await self._records.keys(f"{tenant_id}.>")
        keys = sorted((RunKey.named(name) for name in names), key=lambda key: key.run_id, reverse=True)
        keys = [key for key in keys if not page_token or key.run_id < page_token]
        runs: list[RunRecord] = []
        for start in range(0, len(keys), _READ_AT_ONCE):
            found = await asyncio.gather(*(self._listed(key) for key in keys[start : start + _READ_AT_ONCE]))
            runs += [run for run in found if run is not None and subject in (None, run.subject)]
            if len(runs) > page_size:
                return Page(runs[:page_size], runs[page_size - 1].key.run_id)
        return Page(runs, "")

    async def _listed(self, key: RunKey) -> RunRecord | None:
        entry = await self._records.get(key.name)
        record = None if entry is None else _decoded(key, entry.value or b"")
        return None if record is None else record.without_outcome

    async def request_cancel(self, key: RunKey) -> None:
        await self._cancels.put(key.name, b"")

    async def watch_cancels(self) -> AsyncIterator[RunKey]:
        async for entry in self._cancels.watch():
            if entry is not None and entry.value is not None:
                yield RunKey.named(entry.key)

    async def is_cancelled(self, key: RunKey) -> bool:
        return await self._cancels.get(key.name) is not None

    async def claim_key(self, principal: Principal, key: str, request: RunRequest, run_id: str) -> str:
        place = _place(principal, key)
        message = api.StartRunRequest()
        fill(message, request)
        wanted = pb.RunKeyClaim(run_id=run_id, request_digest=_digest(message.SerializeToString(deterministic=True)))
        claim = await self._claimed(place, wanted)
        if claim.request_digest != wanted.request_digest:
            raise IdempotencyConflict(
                "the idempotency key was used for another question; use a new key for a new request",
                run_id=claim.run_id,
            )
        return claim.run_id

    async def free_key(self, principal: Principal, key: str, run_id: str) -> None:
        place = _place(principal, key)
        entry = await self._keys.get(place)
        if entry is None or _claim_of(entry.value or b"").run_id != run_id:
            return
        if await self._records.get(RunKey(principal.tenant_id, run_id).name) is None:
            with suppress(Aborted):
                await self._keys.purge(place, entry.revision)

    async def _claimed(self, place: str, wanted: pb.RunKeyClaim) -> pb.RunKeyClaim:
        """What is stored under the key: `wanted`, unless somebody was first."""
        while True:
            try:
                await self._keys.create(place, wanted.SerializeToString())
            except AlreadyExists:
                entry = await self._keys.get(place)
            else:
                return wanted
            if entry is None:
                continue  # it expired meanwhile
            try:
                return pb.RunKeyClaim.FromString(entry.value or b"")
            except DecodeError as error:
                set_aside(KEYS.name, place, error)
                await self._keys.purge(place, entry.revision)


def _place(principal: Principal, key: str) -> str:
    """Where what an idempotency key stands for is stored."""
    return f"{principal.tenant_id}.{_digest(principal.subject.encode(), key.encode()).hex()}"


def _claim_of(value: bytes) -> pb.RunKeyClaim:
    """The claim; an empty one for bytes that are none."""
    try:
        return pb.RunKeyClaim.FromString(value)
    except DecodeError:
        return pb.RunKeyClaim()


def _decoded(key: RunKey, value: bytes) -> RunRecord | None:
    """The record, or None, said so, when it cannot be read."""
    try:
        return records.decode(key, value)
    except UNREADABLE as error:
        set_aside(RECORDS.name, key.name, error)
        return None


def _digest(*parts: bytes) -> bytes:
    """Of the parts and of where one ends."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
