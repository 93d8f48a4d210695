"""Writes entries of the audit log into the message store, in order and in batches, by one task.

The answer to a change waits until its entry is stored, but not for a message store that is silent: then entries wait in memory,
within a bound.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import nats.errors
import structlog
from nats.js.errors import APIError

from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.process.waiting import FailureLogLimit
from kit.stores.audit_chain import ChainLink, canonical
from services.gateway.access.audit_store import AuditStore, Head

_log = structlog.get_logger()
Fields = Mapping[str, Any]

_WAIT_S = 2.0
"""Longest that an answer waits for its entry. An append takes about 1 ms."""
_RETRY_S = 1.0
_BATCH = 200
_BATCH_BYTES = 256 * 1024
"""The message store takes 1 MB."""
_DRAIN_S = 2.0
"""Longest that a gateway that ends goes on storing."""
_WAITING_MAX = 20_000
"""Entries of some 500 bytes."""


@dataclass(frozen=True)
class _Waiting:
    fields: Fields
    size_bytes: int
    stored: asyncio.Future[None]


@dataclass(frozen=True)
class _Batch:
    """Entries of one tenant that are stored as one message."""

    tenant_id: str
    entries: Sequence[_Waiting]
    batch_id: str = field(default_factory=lambda: secrets.token_hex(8))


class AuditRecorder:
    """The recorder of one gateway."""

    def __init__(self, *, retention_days: float, max_bytes: int) -> None:
        self._retention_days = retention_days
        self._max_bytes = max_bytes
        self._heads: dict[str, Head] = {}
        self._in_hand: _Batch | None = None
        """Kept until it is stored, over all connections."""
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._count = 0
        self._left_out: dict[str, int] = {}
        self._arrived = asyncio.Event()
        self._store: AuditStore | None = None
        self._is_behind = False

    @property
    def store(self) -> AuditStore | None:
        """None until the message store has answered over the connection there is."""
        return self._store

    def add(self, tenant_id: str, fields: Fields) -> asyncio.Future[None] | None:
        """Has an entry stored; a future that is done once it is. None where too many wait: the next entry that is stored says how
        many were left out."""
        if self._count >= _WAITING_MAX:
            self._left_out[tenant_id] = self._left_out.get(tenant_id, 0) + 1
            return None
        if left_out := self._left_out.pop(tenant_id, 0):
            fields = {**fields, "left_out_before": left_out + fields.get("left_out_before", 0)}
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant_id, deque()).append(_Waiting(fields, len(canonical(fields)), stored))
        self._count += 1
        self._arrived.set()
        return stored

    async def wait_stored(self, stored: asyncio.Future[None]) -> None:
        """Returns once the entry is stored; soon also where the message store does not answer."""
        if not self._is_behind:
            await asyncio.wait([stored], timeout=_WAIT_S)

    async def run(self, nats_: Nats) -> None:
        """Stores what is added until cancelled, and then what still waits, if that is soon done. May be called again with another
        connection, and goes on where it was."""
        self._store, self._is_behind = None, False
        try:
            await self._keep_storing(nats_)
        except asyncio.CancelledError:
            if self._store is not None and not self._is_behind:
                await self._drain(self._store)
            raise

    async def _keep_storing(self, nats_: Nats) -> None:
        complaints = FailureLogLimit()
        while True:
            try:
                self._store = self._store or await self._open(nats_)
                await self._store_waiting(self._store)
            except (GroundworkError, APIError) as error:
                self._is_behind = True
                if complaints.is_due():
                    _log.error("audit_entries_not_stored", waiting=self._count, error=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            self._is_behind = False
            self._arrived.clear()
            await self._arrived.wait()

    async def _open(self, nats_: Nats) -> AuditStore:
        return await AuditStore.open(
            nats_, retention_days=self._retention_days, max_bytes=self._max_bytes, heads=self._heads
        )

    async def _drain(self, store: AuditStore) -> None:
        with suppress(GroundworkError, nats.errors.Error, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._store_waiting(store)

    async def _store_waiting(self, store: AuditStore) -> None:
        """Stores the batch in hand and all that waits behind it."""
        while (batch := self._in_hand or self._next_batch()) is not None:
            self._in_hand = batch
            link = await store.append(batch.tenant_id, [each.fields for each in batch.entries], batch.batch_id)
            self._in_hand = None
            self._is_behind = False
            self._note_stored(batch, link)

    def _note_stored(self, batch: _Batch, link: ChainLink) -> None:
        self._count -= len(batch.entries)
        for each in batch.entries:
            if not each.stored.done():
                each.stored.set_result(None)
        # Kept by those who collect logs, it shows that a chain was cut off or written anew.
        _log.info("audit_sealed", tenant_id=batch.tenant_id, number=link.number, hash=link.hash)

    def _next_batch(self) -> _Batch | None:
        """The next entries of one tenant; tenants take turns. None where nothing waits."""
        if not self._waiting:
            return None
        tenant_id, waiting = next(iter(self._waiting.items()))
        del self._waiting[tenant_id]
        batch, size_bytes = [waiting.popleft()], 0
        while waiting and len(batch) < _BATCH and size_bytes < _BATCH_BYTES:
            size_bytes += waiting[0].size_bytes
            batch.append(waiting.popleft())
        if waiting:
            self._waiting[tenant_id] = waiting
        return _Batch(tenant_id, batch)
