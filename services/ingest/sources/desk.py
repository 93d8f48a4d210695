"""What people do with sources. A source belongs to its collection: who may read that sees it, who may change that changes it. What
may remove documents that are hidden from an editor takes an owner."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from kit.access.principal import ADMIN, Principal
from kit.errors import AlreadyExists, GroundworkError
from kit.stores.idempotency import Attempt
from services.ingest.documents.access import Access, access_list, check_owned
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.uploads import naming
from services.ingest.errors import BadSource, CollectionNotFound, SourceNotFound
from services.ingest.ports import DocumentStore, Keys
from services.ingest.sources.access_refresh import AccessTimes
from services.ingest.sources.known import KnownFiles
from services.ingest.sources.models import SourceRecord, SourceReport
from services.ingest.sources.opening import NewSecrets, SourceOpener
from services.ingest.sources.ports import AccessReader, SourceStore

EVERY_S = 900
_EVERY_LEAST_S, _EVERY_MOST_S = 60, 7 * 86_400
_NAME_MAX = 64
_REJECTED_SHOWN = 200
_SOURCES_MAX = 1000
"""Of a tenant."""


@dataclass(frozen=True)
class NewSource:
    """A source as it is wanted."""

    kind: str
    collection_id: str
    name: str = ""
    """Empty: one that the kind chooses."""
    settings: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    every_s: int = 0
    """0: EVERY_S."""
    idempotency_key: str = ""


@dataclass(frozen=True)
class SourceChange:
    """What is to be another than before; None stays."""

    every_s: int | None = None
    paused: bool | None = None
    secrets: Mapping[str, str] | None = None


class SourceDesk:
    """Sources as callers see them: what a caller may not know of is as unknown as what was never made."""

    def __init__(
        self,
        sources: SourceStore,
        documents: DocumentStore,
        known: KnownFiles,
        catalog: Catalog,
        access: Access,
        opener: SourceOpener,
        keys: Keys,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        access_every_s: float = AccessTimes.every_s,
    ) -> None:
        self._sources = sources
        self._documents = documents
        self._known = known
        self._catalog = catalog
        self._access = access
        self._opener = opener
        self._keys = keys
        self._now = now
        self._new_id = new_id
        self._access_every_s = access_every_s

    async def create(self, caller: Principal, new: NewSource) -> SourceReport:
        """Makes a source, whose first sync begins at once. Raises BadSource, CollectionNotFound, NotYours, SourceAway."""
        kind = self._opener.kind(new.kind)
        if kind.needs_admin:
            caller.require(ADMIN)
        collection = await self._catalog.get_to_edit(caller, new.collection_id)
        settings = self._opener.checked_settings(kind, new.settings, new.secrets)
        name = _checked_name(new.name or kind.default_name(settings))
        content = json.dumps([new.kind, new.collection_id, name, sorted(settings.items()), new.every_s])

        async def make(attempt: Attempt) -> str:
            record = SourceRecord(
                caller.tenant_id,
                attempt.item_id,
                new.kind,
                name,
                new.collection_id,
                caller.subject,
                self._now(),
                _checked_pause(new.every_s or EVERY_S),
                settings=dict(settings),
                collection_made_at=collection.created_at,
            )
            record = self._opener.seal(record, new.secrets)
            if not attempt.is_first and await self._sources.get(*record.place):
                return record.source_id
            await self._check_room(record)
            secrets = NewSecrets(new.secrets)
            async with self._opener.open(record, secrets) as reader:  # what is wrong with its settings is said now
                if isinstance(reader, AccessReader) and kind.tells_readers(settings) and not reader.is_public:
                    check_owned(collection)
            if secrets.secrets != new.secrets:
                record = self._opener.seal(record, secrets.secrets)
            with suppress(AlreadyExists):  # an earlier attempt was
                await self._sources.create(record)
            return record.source_id

        if new.idempotency_key:
            key, place = new.idempotency_key, "source"
            source_id = await self._keys.once(caller, place, key, content.encode(), self._new_id, make)
        else:
            source_id = await make(Attempt(self._new_id(), is_first=True))
        return await self.get(caller, source_id)

    async def _check_room(self, new: SourceRecord) -> None:
        count = 0
        async for other in self._sources.all_of(new.tenant_id):
            count += 1
            if (other.collection_id, other.name) == (new.collection_id, new.name):
                raise BadSource(
                    f"the collection has a source {new.name} already, and documents are named by it; give this one another name"
                )
        if count >= _SOURCES_MAX:
            raise BadSource(f"there are {count} sources, and more are not taken; remove some")

    async def get(self, caller: Principal, source_id: str) -> SourceReport:
        """Raises SourceNotFound."""
        return await self._whole_report(caller, await self._found(caller, source_id))

    async def all_of(self, caller: Principal, collection_id: str = "") -> list[SourceReport]:
        """The sources of the collections that the caller may read, or of one, by name."""
        may_read: dict[str, bool] = {}
        found = []
        async for record in self._sources.all_of(caller.tenant_id):
            if collection_id and record.collection_id != collection_id:
                continue
            if record.collection_id not in may_read:
                may_read[record.collection_id] = await self._may_read(caller, record.collection_id)
            if may_read[record.collection_id]:
                found.append(record)
        found.sort(key=lambda record: (record.collection_id, record.name, record.source_id))
        return [await self._report(record) for record in found]

    async def update(self, caller: Principal, source_id: str, change: SourceChange) -> SourceReport:
        """Raises SourceNotFound, NotYours, BadSource."""
        record = await self._found_to_change(caller, source_id, by_owner=change.secrets is not None)
        every_s = None if change.every_s is None else _checked_pause(change.every_s)
        if change.secrets is not None:
            kind = self._opener.kind(record.kind)
            self._opener.checked_settings(kind, record.settings, change.secrets)

        def changed(now: SourceRecord) -> SourceRecord:
            sync = now.sync
            if every_s is not None and sync.next_at is not None and every_s < now.every_s:
                sync = replace(sync, next_at=None)
            now = replace(
                now,
                every_s=now.every_s if every_s is None else every_s,
                paused=now.paused if change.paused is None else change.paused,
                sync=sync,
            )
            if change.secrets is None:
                return now
            # With other secrets the source may say again who may read.
            return self._opener.seal(replace(now, access=replace(now.access, next_at=self._now())), change.secrets)

        return await self._changed(caller, source_id, changed)

    async def run(self, caller: Principal, source_id: str, *, accept_empty: bool) -> SourceReport:
        """Has a sync begin now, which also tries files again that could not be read. Raises SourceNotFound, NotYours, BadSource."""
        if (await self._found_to_change(caller, source_id, by_owner=accept_empty)).paused:
            raise BadSource("the source is paused; let it go on first")
        return await self._changed(
            caller, source_id, lambda now: replace(now, requested_at=self._now(), accepts_empty=accept_empty)
        )

    async def delete(self, caller: Principal, source_id: str) -> None:
        """Removes a source; its documents go behind the answer. Raises SourceNotFound, NotYours."""
        await self._found_to_change(caller, source_id, by_owner=True)
        await self._sources.change(caller.tenant_id, source_id, lambda now: replace(now, deleting=True))

    async def _changed(
        self, caller: Principal, source_id: str, change: Callable[[SourceRecord], SourceRecord]
    ) -> SourceReport:
        record = await self._sources.change(caller.tenant_id, source_id, change)
        if record is None:
            raise _not_found(source_id)
        return await self._whole_report(caller, record)

    async def _found(self, caller: Principal, source_id: str) -> SourceRecord:
        if naming.is_document_id(source_id):  # the same alphabet: anything else must not reach a key
            record = await self._sources.get(caller.tenant_id, source_id)
            if record is not None and not record.deleting and await self._may_read(caller, record.collection_id):
                return record
        raise _not_found(source_id)

    async def _found_to_change(self, caller: Principal, source_id: str, *, by_owner: bool = False) -> SourceRecord:
        """`by_owner`: the change may remove documents that an editor may not know of."""
        record = await self._found(caller, source_id)
        if self._opener.kind(record.kind).needs_admin:
            caller.require(ADMIN)
        if by_owner:
            await self._catalog.get_to_manage(caller, record.collection_id)
        else:
            await self._catalog.get_to_edit(caller, record.collection_id)
        return record

    async def _may_read(self, caller: Principal, collection_id: str) -> bool:
        try:
            await self._catalog.get(caller, collection_id)
        except CollectionNotFound:
            return False
        return True

    async def _report(self, record: SourceRecord) -> SourceReport:
        """With what the records of its documents say."""
        files = (await self._known.of(record.place)).values()
        pending, rejected = sum(file.is_pending for file in files), sum(file.is_rejected for file in files)
        every_s = self._access_every_s if self._opener.tells_readers(record) else 0.0
        return SourceReport(record, len(files), pending, rejected, access_every_s=every_s)

    async def _whole_report(self, caller: Principal, record: SourceRecord) -> SourceReport:
        """With the files that could not be taken and the documents that could not be read, as far as the caller may know of them;
        all are counted."""
        known = await self._known.of(record.place)
        of_owners = access_list(record.collection_id, (), ()) if self._opener.tells_readers(record) else None

        async def sees(key: str) -> bool:
            if key in known:
                return await self._access.sees(caller, record.collection_id, known[key].document_id)
            # The readers of a file that was never taken are not kept.
            return await self._access.would_see(caller, record.collection_id, of_owners)

        failing = tuple([file for file in record.sync.failing if await sees(file.key)])
        report = await self._report(replace(record, sync=replace(record.sync, failing=failing)))
        keys = [key for key in sorted(known) if known[key].is_rejected and await sees(key)]
        ids = [known[key].document_id for key in keys[:_REJECTED_SHOWN]]
        found = [await self._documents.get(record.tenant_id, document_id) for document_id in ids]
        rejected = [stored.document for stored in found if stored and stored.document.error and stored.document.origin]
        return replace(report, rejected=tuple(rejected))


def _checked_name(raw: str) -> str:
    """Raises BadSource."""
    try:
        name = naming.file_name(raw)
    except GroundworkError:
        name = ""
    if not name or "/" in name or len(name) > _NAME_MAX:
        raise BadSource(
            f"{raw[:80]!r} cannot be the name of a source; use 1 to {_NAME_MAX} characters without '/' and line breaks"
        )
    return name


def _checked_pause(every_s: int) -> int:
    """Raises BadSource."""
    if not _EVERY_LEAST_S <= every_s <= _EVERY_MOST_S:
        raise BadSource(f"a source is synced every {_EVERY_LEAST_S} to {_EVERY_MOST_S} seconds, not every {every_s}")
    return every_s


def _not_found(source_id: str) -> SourceNotFound:
    return SourceNotFound(f"there is no source {source_id[:80]}; it may have been removed")
