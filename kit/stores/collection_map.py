"""The records of all collections in memory, so that deciding who may read what asks nobody: every search and every document that is
shown needs it. The map follows the bucket; changes arrive within milliseconds.

What the map allows is allowed. What it refuses is looked up in the bucket, as its leader has it, before it is refused: a
collection may have been made or shared a moment ago by another process. One of somebody else is looked up like one that never was,
so that the time of a refusal tells nothing worth knowing.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kit.access.principal import Principal
from kit.errors import Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.shared_state import COLLECTIONS
from kit.stores.collections import DEFAULT_ID, CollectionRecord, may_read, role_of
from kit.stores.followed_bucket import FollowedBucket

RecordT = TypeVar("RecordT", bound=CollectionRecord)


class CollectionsStale(Unavailable):
    """It is not known who may read what now."""

    reason = "COLLECTIONS_STALE"


class CollectionMap(FollowedBucket[RecordT | None], Generic[RecordT]):
    """All tenants' collections. `decode` returns None for an entry that is no record: then nobody may read the collection but who
    sees all. Nothing is decided by a map that was not known for `staleness_s` to be all that is stored."""

    def __init__(
        self,
        bucket: KeyValue,
        decode: Callable[[Entry], RecordT | None],
        *,
        staleness_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(bucket, decode, _stale, staleness_s=staleness_s, clock=clock)
        self._watchers: dict[asyncio.Event, tuple[Principal, str]] = {}

    @classmethod
    async def open_to_read(cls, nats: Nats, decode: Callable[[Entry], RecordT | None]) -> "CollectionMap[RecordT]":
        """For a service that never writes a record."""
        return cls(await KeyValue.open_to_read(nats, COLLECTIONS.name), decode)

    def known(self, tenant_id: str, collection_id: str) -> RecordT | None:
        """The record as it is in memory. Raises CollectionsStale."""
        self.require_fresh()
        return self._records.get(f"{tenant_id}.{collection_id}")

    async def stored(self, tenant_id: str, collection_id: str) -> RecordT | None:
        """The record as the bucket's leader has it."""
        entry = await self._bucket.get(f"{tenant_id}.{collection_id}")
        return self._decode(entry) if entry is not None else None

    def allows_local_models_only(self, tenant_id: str, collection_id: str) -> bool:
        """Whether operations on the collection ask local models only, as far as is known in memory. So does a record that cannot be
        read. Raises CollectionsStale."""
        self.require_fresh()
        key = f"{tenant_id}.{collection_id}"
        return key in self._records and _binds(self._records[key])

    async def stored_allows_local_models_only(self, tenant_id: str, collection_id: str) -> bool:
        """The same, as the bucket's leader has it."""
        entry = await self._bucket.get(f"{tenant_id}.{collection_id}")
        return entry is not None and _binds(self._decode(entry))

    def reads_one_with_local_models_only(self, caller: Principal) -> bool:
        """Whether one of the collections that the caller may search allows local models only. Raises CollectionsStale."""
        self.require_fresh()
        prefix = f"{caller.tenant_id}."
        return any(
            _binds(record) and may_read(caller, key.removeprefix(prefix), record)
            for key, record in self._records.items()
            if key.startswith(prefix)
        )

    async def readable(self, caller: Principal, collection_ids: Iterable[str]) -> tuple[str, ...]:
        """Those of the collections that the caller may search, in their order; none that is being deleted."""
        asked = list(collection_ids)
        refused = [each for each in asked if not self._is_shown(caller, each)]
        # Who sees all is refused only what is being deleted, and that does not come back.
        if not refused or caller.sees_all:
            return tuple(each for each in asked if each not in refused)
        stored = await asyncio.gather(*(self.stored(caller.tenant_id, each) for each in refused))
        still = {
            each
            for each, record in zip(refused, stored, strict=True)
            if not may_read(caller, each, record) or (record is not None and record.deleting)
        }
        return tuple(each for each in asked if each not in still)

    def _is_shown(self, caller: Principal, collection_id: str) -> bool:
        record = self.known(caller.tenant_id, collection_id)
        return may_read(caller, collection_id, record) and not (record is not None and record.deleting)

    async def wait_rights_changed(self, caller: Principal, collection_id: str = "") -> None:
        """Returns when the caller has another role than before, or none, on a collection that was there: owners read documents
        whose access list does not name them. Only on that collection where one is given."""
        if caller.sees_all:
            await asyncio.Event().wait()
        changed = asyncio.Event()
        self._watchers[changed] = caller, collection_id
        try:
            await changed.wait()
        finally:
            del self._watchers[changed]

    def _note(self, key: str, entry: Entry | None) -> None:
        before = self._records.get(key)
        was_there = key in self._records or key.endswith(f".{DEFAULT_ID}")
        super()._note(key, entry)
        if was_there and entry is not None:
            self._tell(key, before, self._records[key])

    def _tell(self, key: str, before: RecordT | None, after: RecordT | None) -> None:
        tenant_id, _, collection_id = key.partition(".")
        for changed, (caller, only) in self._watchers.items():
            concerns = caller.tenant_id == tenant_id and only in ("", collection_id)
            if concerns and role_of(caller, collection_id, before) != role_of(caller, collection_id, after):
                changed.set()


def _binds(record: CollectionRecord | None) -> bool:
    return record is None or record.local_models_only


def _stale(staleness_s: float) -> CollectionsStale:
    return CollectionsStale(
        f"for over {staleness_s:g} s this service has not heard who may read which collection, so it shows none; it goes on by "
        "itself once the message store (NATS) answers again",
        retry_after_s=2.0,
    )
