"""When sources are synced: by their schedule, when a person wants it, when they tell of a change, and when a sync was cut off. Who
may read is refreshed by a clock of its own. Runs in one process at a time, the one that has the lease."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta

import structlog

from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError
from services.ingest.documents.uploads import naming
from services.ingest.ports import CollectionStore
from services.ingest.sources.access_refresh import AccessRefresh
from services.ingest.sources.models import SourceRecord
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import SourceStore
from services.ingest.sources.syncing import SourceSyncs

_log = structlog.get_logger()
_SUBJECT = "source-sync"
_AT_ONCE = 4
"""Sources that are synced side by side; the others wait for their turn."""
_AT_ONCE_OF_TENANT = 2
"""So that slow sources of one tenant leave room for those of others."""
_LOOK_EVERY_S = 2.0
"""A clock may be set, so that nobody sleeps until a moment."""
_RETRY_AFTER_S = 5.0
_WATCH_AGAIN_AFTER_S = 60.0

_Place = tuple[str, str]


class SourceSchedule:
    """Starts what is due."""

    def __init__(
        self,
        sources: SourceStore,
        collections: CollectionStore,
        syncs: SourceSyncs,
        opener: SourceOpener,
        refresh: AccessRefresh,
        now: Callable[[], datetime],
    ) -> None:
        self._sources = sources
        self._collections = collections
        self._syncs = syncs
        self._opener = opener
        self._refresh = refresh
        self._now = now
        self._records: dict[_Place, SourceRecord] = {}
        self._working: dict[_Place, asyncio.Task[None]] = {}
        self._watching: dict[_Place, asyncio.Task[None]] = {}
        self._refreshing: dict[_Place, asyncio.Task[None]] = {}
        """Sources that are asked who may read. They wait neither for a sync nor for an end of a pause."""
        self._removing: set[_Place] = set()
        self._touched: set[_Place] = set()
        """Sources that reported a change since their last sync began."""
        self._something = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled. Raises Unavailable when the store cannot be followed."""
        for left in (self._records, self._working, self._watching, self._refreshing, self._removing):
            left.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            while True:
                self._something.clear()
                for place, record in list(self._records.items()):
                    self._tend(group, place, record)
                try:
                    async with asyncio.timeout(_LOOK_EVERY_S):
                        await self._something.wait()
                except TimeoutError:
                    continue

    async def _follow(self) -> None:
        async with aclosing(self._sources.watch()) as changes:
            async for place, record in changes:
                if record is None:
                    self._records.pop(place, None)
                    for tasks in (self._watching, self._working, self._refreshing):
                        self._stop(tasks, place)
                else:
                    self._records[place] = record
                self._something.set()

    def _stop(self, tasks: dict[_Place, asyncio.Task[None]], place: _Place) -> None:
        if (task := tasks.get(place)) is not None:
            task.cancel()

    def _tend(self, group: asyncio.TaskGroup, place: _Place, record: SourceRecord) -> None:
        for tasks in (self._working, self._watching, self._refreshing):
            if place in tasks and tasks[place].done():
                del tasks[place]
                if tasks is self._working:
                    self._removing.discard(place)
        if record.paused or record.deleting:
            self._stop(self._watching, place)
            if place not in self._removing:
                self._stop(self._working, place)
        elif place not in self._watching:
            self._watching[place] = group.create_task(self._watch(record))
        if (
            place not in self._refreshing
            and self._has_room(self._refreshing, place[0])
            and self._refresh.is_due(record)
        ):
            self._refreshing[place] = group.create_task(self._charged(record, self._refresh.refresh))
        if place not in self._working and self._has_room(self._working, place[0]) and self._is_due(record):
            self._touched.discard(place)
            if record.deleting:
                self._removing.add(place)
            self._working[place] = group.create_task(self._charged(record, self._work))

    def _has_room(self, tasks: Mapping[_Place, object], tenant_id: str) -> bool:
        of_tenant = sum(1 for each, _ in tasks if each == tenant_id)
        return len(tasks) < _AT_ONCE and of_tenant < _AT_ONCE_OF_TENANT

    def _is_due(self, record: SourceRecord) -> bool:
        if record.deleting:
            return True
        if record.paused:
            return False
        if record.requested_at or record.sync.began_at or record.place in self._touched or not record.sync.next_at:
            return True
        wait = record.sync.next_at - self._now()
        # A wait that is longer than any is that of a clock which was set back.
        return wait <= timedelta() or wait > timedelta(days=8)

    async def _work(self, record: SourceRecord) -> None:
        if record.deleting or await self._lost_its_collection(record):
            await self._syncs.remove_all(record)
        else:
            await self._syncs.sync(record)

    async def _charged(self, record: SourceRecord, work: Callable[[SourceRecord], Awaitable[None]]) -> None:
        """Does what is due for one source. Whatever is wrong with it keeps nothing from the others."""
        tenant_id, source_id = record.place
        with (
            use_principal(Principal(tenant_id, _SUBJECT)),
            structlog.contextvars.bound_contextvars(tenant_id=tenant_id, source_id=source_id),
        ):
            try:
                await work(record)
            except GroundworkError as error:
                _log.warning("source_not_tended", reason=error.reason, error=error.message)
                await asyncio.sleep(_RETRY_AFTER_S)
            except Exception:
                _log.exception("source_not_tended")
                await asyncio.sleep(_WATCH_AGAIN_AFTER_S)
            else:
                await self._heard_of(record)
        self._something.set()

    async def _heard_of(self, record: SourceRecord) -> None:
        """Takes over what was written, which the watch brings a moment later."""
        now = await self._sources.get(*record.place)
        if now is not None:
            self._records[record.place] = now
        else:
            self._records.pop(record.place, None)

    async def _lost_its_collection(self, record: SourceRecord) -> bool:
        """Whether the collection was deleted; one that was made with the same id since is another."""
        if naming.is_default(record.collection_id):
            return False
        stored = await self._collections.get(record.tenant_id, record.collection_id)
        if stored is None:
            return await self._collections.was_deleted(record.tenant_id, record.collection_id)
        return stored.deleting or stored.created_at != record.collection_made_at

    async def _watch(self, record: SourceRecord) -> None:
        """Notes when a source tells of a change. Where it cannot, the schedule alone decides."""
        try:
            changes = self._opener.watch(record)
            if changes is None:
                await asyncio.Event().wait()  # until this is cancelled
                return
            async for _ in changes:
                self._touched.add(record.place)
                self._something.set()
        except GroundworkError as error:
            _log.info("source_not_watched", source_id=record.source_id, reason=error.reason)
        except Exception:
            _log.exception("source_not_watched", source_id=record.source_id)
        await asyncio.sleep(_WATCH_AGAIN_AFTER_S)
