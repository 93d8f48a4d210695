"""The records of all collections in memory, so that deciding who may read what asks nobody: every search and every document that is
shown needs it. The map follows the bucket; changes arrive within milliseconds.

What the map allows is allowed. What it refuses is looked up in the bucket, as its leader has it, before it is refused: a
collection may have been made or shared a moment ago by another process. One of somebody else is looked up like one that never was,
so that the time of a refusal tells nothing worth knowing.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Generic, TypeVar

import structlog

from kit.access.principal import Principal
from kit.errors import GroundworkError, Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.process.waiting import Sparing
from kit.shared_state import COLLECTIONS
from kit.stores.collections import DEFAULT_ID, CollectionRecord, may_read

_log = structlog.get_logger()
_CHECKS_PER_BOUND = 6
"""Two or three of them may be lost or late before the map counts as stale."""
_RETRY_S = 0.5
_RESYNC_S = 600.0
"""Everything is read again so often: what a broken connection swallowed is seen at last."""
_OWN_WRITE_TIMEOUT_S = 2.0

RecordT = TypeVar("RecordT", bound=CollectionRecord)


class CollectionsStale(Unavailable):
    """It is not known who may read what now."""

    reason = "COLLECTIONS_STALE"


class CollectionMap(Generic[RecordT]):
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
        self._bucket = bucket
        self._decode = decode
        self._staleness_s = staleness_s
        self._clock = clock
        self._records: dict[str, RecordT | None] = {}
        self._reached = 0
        """Revision that was read last."""
        self._followed_to = 0
        """Revision up to which everything is known."""
        self._progress = asyncio.Condition()
        self._confirmed_at_s: float | None = None
        self._confirmed = asyncio.Event()
        self._watchers: dict[asyncio.Event, tuple[Principal, str]] = {}

    @classmethod
    async def open_to_read(cls, nats: Nats, decode: Callable[[Entry], RecordT | None]) -> "CollectionMap[RecordT]":
        """For a service that never writes a record."""
        return cls(await KeyValue.open_to_read(nats, COLLECTIONS.name), decode)

    async def run(self) -> None:
        """Follows the bucket until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._confirm())

    async def wait_confirmed(self) -> None:
        """Returns once the map has been all that is stored: for readiness."""
        await self._confirmed.wait()

    def known(self, tenant_id: str, collection_id: str) -> RecordT | None:
        """The record as it is in memory. Raises CollectionsStale."""
        self.require_fresh()
        return self._records.get(f"{tenant_id}.{collection_id}")

    async def stored(self, tenant_id: str, collection_id: str) -> RecordT | None:
        """The record as the bucket's leader has it."""
        entry = await self._bucket.get(f"{tenant_id}.{collection_id}")
        return self._decode(entry) if entry is not None else None

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

    def require_fresh(self) -> None:
        """Raises CollectionsStale when rights may have changed without this process knowing."""
        confirmed_at_s = self._confirmed_at_s
        if confirmed_at_s is None or self._clock() - confirmed_at_s > self._staleness_s:
            raise CollectionsStale(
                f"for over {self._staleness_s:g} s this service has not heard who may read which collection, so it shows none; it "
                "goes on by itself once the message store (NATS) answers again",
                retry_after_s=2.0,
            )

    async def wait_written(self, revision: int) -> None:
        """Returns once a write of this process is known here, so that who wrote reads it at once. Gives up after a moment: the
        write is done, and what is known here follows."""
        try:
            async with asyncio.timeout(_OWN_WRITE_TIMEOUT_S):
                await self._wait_followed(revision)
        except TimeoutError:
            _log.warning("collection_written_and_not_heard_of", revision=revision)

    async def wait_rights_changed(self, caller: Principal, collection_id: str = "") -> None:
        """Returns when a collection that was there may be read by the caller and could not be before, or the other way round; only
        that collection where one is given."""
        if caller.sees_all:
            await asyncio.Event().wait()
        changed = asyncio.Event()
        self._watchers[changed] = caller, collection_id
        try:
            await changed.wait()
        finally:
            del self._watchers[changed]

    async def _follow(self) -> None:
        complaints = Sparing()
        while True:
            try:
                async with asyncio.timeout(_RESYNC_S):
                    await self._follow_once()
            except TimeoutError:
                continue
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning("collection_watch_lost", reason=error.reason, error=error.message)
            await asyncio.sleep(_RETRY_S)

    async def _follow_once(self) -> None:
        present: set[str] | None = set()
        # The bucket may have been made anew, and its numbers begin again: nothing is confirmed until all is read.
        self._reached = self._followed_to = 0
        async with aclosing(self._bucket.watch()) as changes:
            async for entry in changes:
                if entry is None:
                    for key in set(self._records).difference(present or ()):
                        self._note(key, None)
                    present = None
                else:
                    self._note(entry.key, entry if entry.value is not None else None)
                    if present is not None and entry.value is not None:
                        present.add(entry.key)
                    self._reached = entry.revision
                if present is None:
                    async with self._progress:
                        self._followed_to = self._reached
                        self._progress.notify_all()

    def _note(self, key: str, entry: Entry | None) -> None:
        if entry is None:
            self._records.pop(key, None)
            return
        before = self._records.get(key)
        was_there = key in self._records or key.endswith(f".{DEFAULT_ID}")
        self._records[key] = after = self._decode(entry)
        if was_there:
            self._tell(key, before, after)

    def _tell(self, key: str, before: RecordT | None, after: RecordT | None) -> None:
        tenant_id, _, collection_id = key.partition(".")
        for changed, (caller, only) in self._watchers.items():
            concerns = caller.tenant_id == tenant_id and only in ("", collection_id)
            if concerns and may_read(caller, collection_id, before) != may_read(caller, collection_id, after):
                changed.set()

    async def _wait_followed(self, revision: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: self._followed_to >= revision)

    async def _confirm(self) -> None:
        interval_s = self._staleness_s / _CHECKS_PER_BOUND
        while True:
            is_confirmed = await self._check(interval_s)
            await asyncio.sleep(interval_s if is_confirmed else min(_RETRY_S, interval_s))

    async def _check(self, timeout_s: float) -> bool:
        asked_at_s = self._clock()
        try:
            async with asyncio.timeout(timeout_s):
                revision = await self._bucket.last_revision()
                await self._wait_followed(revision)
        except (GroundworkError, TimeoutError):
            return False
        self._confirmed_at_s = asked_at_s
        self._confirmed.set()
        return True
