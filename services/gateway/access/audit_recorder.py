"""Writes entries of the audit log into the message store, in order and in batches, by one task.

The answer to a change waits until its entry is stored, but not for a message store that is silent: then entries wait in memory,
within a bound.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from nats.js.errors import APIError

from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.process.waiting import FailureLogLimit
from kit.stores.audit_chain import ChainLink, canonical
from services.gateway.access.audit_store import AuditStore

_log = structlog.get_logger()
Fields = Mapping[str, Any]

_WAIT_S = 2.0
"""Longest that an answer waits for its entry. An append takes about 1 ms."""
_RETRY_S = 1.0
_BATCH = 200
_BATCH_BYTES = 256 * 1024
"""The message store takes 1 MB."""
_WAITING_MAX = 20_000
"""Entries of some 500 bytes."""


@dataclass(frozen=True)
class _Waiting:
    fields: Fields
    size_bytes: int
    stored: asyncio.Future[None]


class AuditRecorder:
    """The recorder of one gateway."""

    def __init__(self, retention_days: float) -> None:
        self._retention_days = retention_days
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._count = 0
        self._left_out: dict[str, int] = {}
        self._arrived = asyncio.Event()
        self._store: AuditStore | None = None
        self._is_behind = True

    @property
    def store(self) -> AuditStore | None:
        """None until the message store has answered for the first time."""
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

    async def run(self, nats: Nats) -> None:
        """Stores what is added until cancelled."""
        complaints = FailureLogLimit()
        tenant_id, batch, batch_id = "", list[_Waiting](), ""
        while True:
            try:
                self._store = self._store or await AuditStore.open(nats, retention_days=self._retention_days)
                if batch:
                    link = await self._store.append(tenant_id, [each.fields for each in batch], batch_id)
                    self._note_stored(tenant_id, batch, link)
            except (GroundworkError, APIError) as error:
                self._is_behind = True
                if complaints.is_due():
                    _log.error("audit_entries_not_stored", waiting=self._count, error=str(error))
                await asyncio.sleep(_RETRY_S)
                continue
            self._is_behind = False
            tenant_id, batch = await self._next_batch()
            batch_id = secrets.token_hex(8)

    def _note_stored(self, tenant_id: str, batch: Sequence[_Waiting], link: ChainLink) -> None:
        self._count -= len(batch)
        for each in batch:
            if not each.stored.done():
                each.stored.set_result(None)
        # Kept by those who collect logs, it shows that a chain was cut off or written anew.
        _log.info("audit_sealed", tenant_id=tenant_id, number=link.number, hash=link.hash)

    async def _next_batch(self) -> tuple[str, list[_Waiting]]:
        """The next entries of one tenant; tenants take turns."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        tenant_id, waiting = next(iter(self._waiting.items()))
        del self._waiting[tenant_id]
        batch, size_bytes = [waiting.popleft()], 0
        while waiting and len(batch) < _BATCH and size_bytes < _BATCH_BYTES:
            size_bytes += waiting[0].size_bytes
            batch.append(waiting.popleft())
        if waiting:
            self._waiting[tenant_id] = waiting
        return tenant_id, batch
