"""A source in memory with a world of ingestion around it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from services.ingest.documents.models import Document, Status
from services.ingest.errors import FileNotTaken, SourceAway
from services.ingest.sources.access_refresh import AccessRefresh, AccessTimes
from services.ingest.sources.desk import SourceDesk
from services.ingest.sources.known import KnownFiles
from services.ingest.sources.models import FileReaders, SourceFile, SourceListing, SourceRecord
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import Opening, SourceField, SourceKind, Surroundings
from services.ingest.sources.source_access import SourceAccess
from services.ingest.sources.syncing import SourceSyncs
from services.ingest.sources.taking import FileTaking
from tests.unit.ingest.fakes import FakeKeys, FakeSourceStore
from tests.unit.ingest.world import TENANT, World

BEFORE = {"same.md": "Nobody touches this.", "edited.md": "First.", "old/name.md": "It moves.", "gone.md": "It goes."}
AFTER = {"same.md": "Nobody touches this.", "edited.md": "Second.", "new/name.md": "It moves.", "fresh.md": "It comes."}


class Place:
    """A source in memory."""

    is_public = False

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.broken: set[str] = set()
        self.fetched: list[str] = []
        self.listing: dict[str, Any] = {}
        self.cursors: list[str] = []
        self.readers: dict[str, FileReaders] = {}
        self.away: SourceAway | None = None
        """Raised when it is asked who may read."""
        self.before_fetch: Callable[[], Awaitable[None]] | None = None

    async def list_changes(self, cursor: str) -> SourceListing:
        self.cursors.append(cursor)
        files = [SourceFile(key, f"v-{text}", readers=self.readers.get(key)) for key, text in self.files.items()]
        return SourceListing(files, **self.listing)

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        self.fetched.append(file.key)
        if self.before_fetch is not None:
            await self.before_fetch()
        if file.key in self.broken:
            raise FileNotTaken("FILE_UNREADABLE", "it cannot be read; mend it")
        yield self.files[file.key].encode()

    async def describe_access(self, keys: Collection[str]) -> Mapping[str, FileReaders]:
        if self.away is not None:
            raise self.away
        return {key: readers for key, readers in self.readers.items() if key in self.files}


class PlainSealer:
    def seal(self, value: bytes, place: str) -> bytes:
        return place.encode() + value

    def open(self, sealed: bytes, place: str) -> bytes:
        return sealed.removeprefix(place.encode())


class Step:
    """A world with a source in it."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.place = Place()
        self.access_times = AccessTimes()
        self.sources = FakeSourceStore()
        self.record = SourceRecord(
            TENANT, "ab" * 8, "place", "notes", "default", "ann", self.world.clock(), every_s=900, settings={}
        )

        @asynccontextmanager
        async def open_place(_: Opening) -> AsyncIterator[Place]:
            yield self.place

        kind = SourceKind("place", "In memory.", (SourceField("at", "where"),), open_place, lambda _: "notes")
        self.opener = SourceOpener({"place": kind}, PlainSealer(), Surroundings(lambda _: {}, max_files=100))

    def syncs(self) -> SourceSyncs:
        """Of a process of its own, which knows nothing of others."""
        world = self.world
        access = SourceAccess(world.store, world.lists, world.clock)
        return SourceSyncs(
            sources=self.sources,
            opener=self.opener,
            known=KnownFiles(world.store, world.clock),
            documents=world.store,
            taking=FileTaking(world.uploads, access, world.clock),
            deletion=world.deletion,
            access=access,
            now=world.clock,
        )

    def refreshing(self, syncs: SourceSyncs | None = None) -> AccessRefresh:
        """Of the process of these syncs, or of its own."""
        world = self.world
        return AccessRefresh(
            sources=self.sources,
            opener=self.opener,
            known=KnownFiles(world.store, world.clock),
            syncs=syncs or self.syncs(),
            access=SourceAccess(world.store, world.lists, world.clock),
            times=self.access_times,
            now=world.clock,
        )

    def desk(self) -> SourceDesk:
        world = self.world
        known = KnownFiles(world.store, world.clock)
        return SourceDesk(
            self.sources, world.store, known, world.catalog, world.access, self.opener, FakeKeys(), world.clock, str
        )

    async def begin(self, files: dict[str, str]) -> None:
        await self.sources.create(self.record)
        self.place.files = dict(files)
        await self.sync()

    async def sync(self) -> SourceRecord:
        await self.syncs().sync(await self.stored())
        await self.work()
        return await self.stored()

    async def stored(self) -> SourceRecord:
        found = await self.sources.get(*self.record.place)
        assert found is not None
        return found

    async def work(self) -> None:
        world = self.world
        world.clock.now += timedelta(minutes=1)
        await world.sweeper.sweep()
        for job in list(world.jobs.jobs.values()):
            if await world.attempts.run(job, 1) is None:
                world.jobs.jobs.pop(job.revision_id, None)

    def living(self) -> list[Document]:
        found = (stored.document for stored in self.world.store.records.values())
        return [document for document in found if document.status is not Status.DELETED]

    def texts(self) -> dict[str, str]:
        """By key, of what is searchable."""
        living = self.living()
        keys = [document.origin.key if document.origin else "" for document in living]
        assert len(keys) == len(set(keys)), "a file is there twice"
        assert all(document.name == f"notes/{key}" for key, document in zip(keys, living, strict=True))
        searchable = (" ".join(self.world.index.searchable(document.document_id)) for document in living)
        return dict(zip(keys, searchable, strict=True))


def ids(step: Step) -> dict[str, str]:
    return {document.origin.key: document.document_id for document in step.living() if document.origin}
