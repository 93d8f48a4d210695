"""How many bytes and documents each caller, group, tenant and all together may store, by the rules of kit.limits. What is stored
is counted by the documents' records: all are read once, after that only changes. So a deletion has nothing to give back, and no
counter can drift from what is there."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from kit.access.principal import Principal
from kit.limits.errors import describe_limit, name_holder
from kit.limits.rules import EACH, STORED, Applied, Limit, Per, Rules, Scope, What, Whose
from services.ingest.documents.changes import Changes
from services.ingest.documents.life import holders_of
from services.ingest.documents.models import Document, Status, StoredDocument
from services.ingest.errors import StorageQuotaExceeded
from services.ingest.ports import DocumentStore

_GIB = 1024**3
_MIB = 1024**2
_KEPT_UP_EVERY_S = 600.0


@dataclass(frozen=True)
class StorageState:
    """A limit of what is stored, and how much of it is used."""

    applied: Applied
    used: int


@dataclass(frozen=True)
class _Counted:
    """What a document counts for, and under whose limits."""

    files: Mapping[str, int]
    """Sizes by hash."""
    holders: Sequence[Whose]


class HeldRoom:
    """Room that is kept for a file until it is stored or refused."""

    def __init__(self, limits: "StorageLimits", uploader: Principal, name: str) -> None:
        """StorageLimits.hold makes it."""
        self._limits = limits
        self.uploader, self.name = uploader, name
        self.kept: Mapping[Whose, int] = {}
        """Bytes, by whose limits they count under."""

    async def resize(self, size_bytes: int, sha256: str) -> None:
        """Keeps room for so many bytes in place of what was kept, now that they are known. Raises StorageQuotaExceeded."""
        await self._limits.resize(self, size_bytes, sha256)


class StorageLimits:
    """Knows how much is stored, and refuses what would be too much. A file counts once for each holder, however many of their
    documents have it.

    Uploads on their way in this process count as well. Two processes do not know of each other's: together they may exceed a limit
    by what both check at one moment.
    """

    def __init__(self, documents: DocumentStore, rules: Rules, now: Callable[[], datetime]) -> None:
        """`now`: the time of day."""
        self._rules = rules
        self._changes = Changes(documents, self._forget, now)
        self._documents: dict[tuple[str, str], _Counted] = {}
        """By tenant and id."""
        self._users: Counter[tuple[Whose, str]] = Counter()
        """Documents that need a file, by holder and hash."""
        self._used: Counter[tuple[Whose, What]] = Counter()
        self._coming: Counter[tuple[Whose, What]] = Counter()
        self._interned: dict[Whose, Whose] = {}
        """One object for all documents of a holder."""
        self._reading = asyncio.Lock()

    def labels(self, uploader: Principal) -> tuple[str, ...]:
        """Under whose limits a document of the uploader counts besides its tenant's, for its record. Of the groups these are the
        ones that are limited now: a caller may be in hundreds."""
        groups = {each.whose.name for each in self._of(uploader, *STORED) if each.whose.scope is Scope.GROUP}
        key = [f"{Scope.KEY.value}:{uploader.key_id}"] if uploader.key_id else []
        return (f"{Scope.SUBJECT.value}:{uploader.subject}", *key, *sorted(groups))

    @asynccontextmanager
    async def hold(
        self, uploader: Principal, name: str, size_bytes: int, sha256: str = ""
    ) -> AsyncIterator["HeldRoom"]:
        """Keeps room for a file that is about to come, for the block; its hash may be unknown. Raises StorageQuotaExceeded."""
        room = HeldRoom(self, uploader, name)
        try:
            await room.resize(size_bytes, sha256)
            yield room
        finally:
            self._keep(room, {})

    async def resize(self, room: "HeldRoom", size_bytes: int, sha256: str) -> None:
        """As HeldRoom.resize."""
        uploader = room.uploader
        await self._read(uploader, *STORED)  # of documents too: later the upload holds a name and a lease
        for each in self._of(uploader, What.STORAGE):
            most, growth = each.limit.amount, self._growth(uploader, each.whose, size_bytes, sha256)
            used = self._sum(each) + self._coming[each.whose, What.STORAGE] - room.kept.get(each.whose, 0)
            if growth and used + growth > most:
                refused = f"{room.name} ({shown(size_bytes)}) does not fit"
                raise _exceeded(each, used, refused, shown(most), f"{shown(used)} are used")
        self._keep(
            room, {whose: self._growth(uploader, whose, size_bytes, sha256) for whose in self._holders_of(uploader)}
        )

    @asynccontextmanager
    async def hold_document(
        self, uploader: Principal, name: str, replaced: Document | None = None
    ) -> AsyncIterator[None]:
        """Keeps a place for a document while its record is written: under the limits that it does not count under already where it
        is a version of one that is there. Raises StorageQuotaExceeded."""
        there = [Whose(Scope.ALL), *_holders(replaced.tenant_id, holders_of(replaced))] if replaced else []
        await self._read(uploader, What.STORED_DOCUMENTS)
        for each in self._of(uploader, What.STORED_DOCUMENTS):
            if each.whose in there:
                continue
            most, used = each.limit.amount, self._sum(each) + self._coming[each.whose, What.STORED_DOCUMENTS]
            if used + 1 > most:
                raise _exceeded(
                    each, used, f"{name} is one document too many", f"{most:.0f} documents", f"{used} are there"
                )
        holders = [whose for whose in self._holders_of(uploader) if whose not in there]
        for whose in holders:
            self._count_coming((whose, What.STORED_DOCUMENTS), 1)
        try:
            yield
        finally:
            for whose in holders:
                self._count_coming((whose, What.STORED_DOCUMENTS), -1)

    async def states(self, caller: Principal) -> Sequence[StorageState]:
        """The limits that hold for a caller, with what is stored."""
        await self._read(caller, *STORED)
        return [StorageState(each, self._sum(each)) for each in self._of(caller, *STORED)]

    async def keep_up(self) -> None:
        """Reads where anything is limited, until cancelled: no caller waits for all records then. Raises Unavailable."""
        while True:
            if self._changes.has_begun or self._rules.limit(STORED):
                await self._take_in()
            await asyncio.sleep(_KEPT_UP_EVERY_S)

    def _of(self, uploader: Principal, *things: What) -> Sequence[Applied]:
        return [each for each in self._rules.of(uploader) if each.limit.what in things]

    async def _read(self, uploader: Principal, *things: What) -> None:
        """Takes in what has changed; nothing is read where nothing is limited."""
        if self._of(uploader, *things):
            await self._take_in()

    async def _take_in(self) -> None:
        async with self._reading:
            async for stored in self._changes.read():
                self._note(stored)

    def _sum(self, applied: Applied) -> int:
        return self._used[applied.whose, applied.limit.what]

    def _growth(self, uploader: Principal, whose: Whose, size_bytes: int, sha256: str) -> int:
        """Bytes that the holder's files grow by: none where the file is there already."""
        holder = _tenant(uploader.tenant_id) if whose.scope is Scope.ALL else whose
        return 0 if (holder, sha256) in self._users else size_bytes

    def _holders_of(self, uploader: Principal) -> Sequence[Whose]:
        return [Whose(Scope.ALL), *_holders(uploader.tenant_id, self.labels(uploader))]

    def _keep(self, room: "HeldRoom", kept: Mapping[Whose, int]) -> None:
        """Counts what a room keeps, in place of what it kept until now."""
        for whose in {*room.kept, *kept}:
            self._count_coming((whose, What.STORAGE), kept.get(whose, 0) - room.kept.get(whose, 0))
        room.kept = kept

    def _count_coming(self, place: tuple[Whose, What], change: int) -> None:
        self._coming[place] += change
        if not self._coming[place]:
            del self._coming[place]

    def _forget(self) -> None:
        for known in (self._documents, self._users, self._used, self._interned):
            known.clear()

    def _note(self, stored: StoredDocument) -> None:
        document = stored.document
        key = (document.tenant_id, document.document_id)
        before = self._documents.pop(key, None)
        after = None if document.status is Status.DELETED else self._counted(document)
        if after is not None:
            self._documents[key] = after
            self._count(after, 1)
        if before is not None:
            self._count(before, -1)

    def _counted(self, document: Document) -> _Counted:
        holders = _holders(document.tenant_id, holders_of(document))
        return _Counted(_sizes(document), [self._interned.setdefault(whose, whose) for whose in holders])

    def _count(self, counted: _Counted, change: int) -> None:
        for whose in counted.holders:
            self._add((whose, What.STORED_DOCUMENTS), change)
            for sha256, size_bytes in counted.files.items():
                was_there = (whose, sha256) in self._users
                self._users[whose, sha256] += change
                is_there = self._users[whose, sha256] > 0
                self._add((whose, What.STORAGE), size_bytes * (is_there - was_there))
                if not is_there:
                    del self._users[whose, sha256]

    def _add(self, place: tuple[Whose, What], change: int) -> None:
        """Keeps nothing of a holder that has nothing, as guests who are gone. All together have what the tenants have."""
        whose, what = place
        self._used[place] += change
        if whose.scope is Scope.TENANT:
            self._used[Whose(Scope.ALL), what] += change
        if not self._used[place]:
            del self._used[place]
            if what is What.STORED_DOCUMENTS:
                self._interned.pop(whose, None)


def default_limits(each_tenant: int, by_tenant: Mapping[str, int]) -> Mapping[Whose, Sequence[Limit]]:
    """The limits of tenants' bytes that the settings say; 0 is without bound."""
    sizes = {EACH: each_tenant, **by_tenant}
    return {_tenant(name): [Limit(What.STORAGE, size, Per.EVER)] if size else [] for name, size in sizes.items()}


def shown(size_bytes: float) -> str:
    """A size for people: `9.8 GiB`, `1.8 MiB`, `3,000 bytes`."""
    if size_bytes >= _GIB:
        return f"{size_bytes / _GIB:.1f} GiB"
    if size_bytes < _MIB / 10:
        return f"{size_bytes:,} bytes"
    return f"{size_bytes / _MIB:.1f} MiB"


def _tenant(tenant_id: str) -> Whose:
    return Whose(Scope.TENANT, tenant_id)


def _holders(tenant_id: str, labels: Sequence[str]) -> Sequence[Whose]:
    """The tenant, and those that the labels name; words of a newer version are left out."""
    scopes = {scope.value: scope for scope in (Scope.SUBJECT, Scope.KEY, Scope.GROUP)}
    named = [label.partition(":") for label in labels]
    return [
        _tenant(tenant_id),
        *(Whose(scopes[scope], tenant_id, name) for scope, _, name in named if scope in scopes),
    ]


def _sizes(document: Document) -> Mapping[str, int]:
    revisions = [revision for revision in (document.pending, document.active) if revision]
    contents = [document.content, *(revision.content for revision in revisions)]
    return {content.sha256: content.size_bytes for content in contents}


def _exceeded(applied: Applied, used: int, refused: str, most: str, use: str) -> StorageQuotaExceeded:
    is_all = applied.whose.scope is Scope.ALL  # how much all tenants store is an operator's to know
    error = StorageQuotaExceeded(
        f"{refused}: {name_holder(applied.whose)} may store {most}{'' if is_all else f', and {use}'}. Delete documents, or have "
        "the limit raised: groundwork limits"
    )
    error.metadata.update(describe_limit(applied), **({} if is_all else {"used": str(used)}))
    return error
