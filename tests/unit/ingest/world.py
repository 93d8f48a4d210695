"""Ingestion put together from fakes: what the unit tests act on."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry

from kit.access.principal import ADMIN, Principal
from kit.limits.rules import Rules
from services.ingest.collections.document_access import AccessDesk
from services.ingest.documents.access import Access
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.listing import Listing
from services.ingest.documents.models import Document, IngestJob, Lane
from services.ingest.documents.revising import Reviser
from services.ingest.documents.uploads.document_limits import DocumentLimits
from services.ingest.documents.uploads.lanes import LaneChoice
from services.ingest.documents.uploads.storage_limits import StorageLimits, default_limits
from services.ingest.documents.uploads.upload import Limits, Upload, Uploads
from services.ingest.fairness import FairShares
from services.ingest.metrics import Metrics
from services.ingest.scanning import Gatekeeper, Scanner
from services.ingest.spool import Spool
from services.ingest.upkeep.agreement import Agreement
from services.ingest.upkeep.clearing import Clearing
from services.ingest.upkeep.collecting import Collector
from services.ingest.upkeep.reconciling import Reconciler
from services.ingest.upkeep.sweeping import Sweeper
from services.ingest.work.attempts import Attempts
from services.ingest.work.dead_letters import DeadLetters
from services.ingest.work.embedding import BatchEmbedder
from services.ingest.work.ledger import Ledger
from services.ingest.work.patience import Patience
from services.ingest.work.pipeline import Pipeline
from services.ingest.work.reuse import ChangeEmbedder
from tests.unit.ingest.fakes import (
    FakeAccessLists,
    FakeCollectionStore,
    FakeCondition,
    FakeDeadLetterStore,
    FakeDocumentStore,
    FakeEmbedder,
    FakeFileStore,
    FakeForgetting,
    FakeIndex,
    FakeJobQueue,
    FakeKeys,
    FakeLeases,
    InlinePreparer,
)
from tests.unit.orchestrator.limits.counting import MemoryCounters

TENANT = "local"
ANN, BOB = Principal(TENANT, "ann"), Principal(TENANT, "bob")
"""Ann is the local user, whose default collection has the plain id."""
ADMINISTRATOR = Principal(TENANT, "root", frozenset({ADMIN}))
IN_FLIGHT = 2
"""Calls of the embedder at once."""
LIMIT_BYTES = 1024 * 1024
BULK_AFTER = 3
MEMORY_BYTES = 16 * 1024**2
"""For what documents in hand take."""


class Clock:
    """Moves on a second with every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()


async def _no_sleep(_: float) -> None:
    await asyncio.sleep(0)


class MeteredShares(FairShares):
    """Remembers how much was held at most, by what was asked for."""

    def __init__(self, limit: int, per_document: int) -> None:
        super().__init__(limit, per_document)
        self.held = 0
        self.most = 0
        self.waiting = 0

    @asynccontextmanager
    async def hold(
        self, tenant_id: str, document_id: str, size: int, lane: Lane = Lane.INTERACTIVE
    ) -> AsyncIterator[None]:
        self.waiting += 1
        async with super().hold(tenant_id, document_id, size, lane):
            self.waiting -= 1
            self.held += size
            self.most = max(self.most, self.held)
            try:
                yield
            finally:
                self.held -= size


class World:
    """All use cases over one set of fakes."""

    def __init__(
        self, folder: Path, *, scanner: Scanner | None = None, takes_unscanned: bool = False, quota_bytes: int = 0
    ) -> None:
        self.scanner = scanner
        self.clock = Clock()
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry)
        self.store = FakeDocumentStore(lambda: self.clock.now)
        self.collections = FakeCollectionStore()
        self.files = FakeFileStore(lambda: self.clock.now)
        self.jobs = FakeJobQueue()
        self.leases = FakeLeases()
        self.index = FakeIndex()
        self.embedder = FakeEmbedder()
        self.preparer = InlinePreparer()
        numbers = itertools.count(1)
        spool = Spool(folder)
        self.forgetting = FakeForgetting(self.index)
        self.lists = FakeAccessLists()
        self.deletion = Deletion(
            self.store, self.files, self.leases, self.index, self.forgetting, self.lists, self.clock
        )
        self.clearing = Clearing(self.collections, self.store, self.deletion, self.leases)
        self.access = Access(self.collections, self.lists)
        self.catalog = Catalog(self.collections, self.clearing, self.clock, ANN)
        self.access_desk = AccessDesk(self.store, self.access, self.catalog, self.lists, self.clock)
        self.reviser = Reviser(self.store, self.jobs, self.clock, new_id=lambda: f"{next(numbers):032x}")
        self.listing = Listing(self.store, self.collections, self.files, self.catalog, self.access, spool)
        self.limit_rules, self.counters = Rules(default_limits(0, {TENANT: quota_bytes})), MemoryCounters()
        self.storage = StorageLimits(self.store, self.limit_rules, self.clock)
        self.uploads = Uploads(
            document_limits=DocumentLimits(self.limit_rules, self.counters, self.clock),
            documents=self.store,
            keys=FakeKeys(),
            files=self.files,
            leases=self.leases,
            catalog=self.catalog,
            deletion=self.deletion,
            access=self.access,
            lists=self.lists,
            reviser=self.reviser,
            spool=spool,
            limits=Limits(LIMIT_BYTES, 5.0),
            now=self.clock,
            new_id=lambda: f"{next(numbers):032x}",
            lanes=LaneChoice(BULK_AFTER, self.clock.seconds),
            storage=self.storage,
            gatekeeper=Gatekeeper(self.scanner, self.metrics, takes_unscanned=takes_unscanned),
            sleep=_no_sleep,
        )
        self.memory = MeteredShares(MEMORY_BYTES, MEMORY_BYTES // 2)
        patience = Patience(sleep=_no_sleep, jitter=lambda: 0.5)
        self.pipeline = Pipeline(
            documents=self.store,
            collections=self.collections,
            files=self.files,
            leases=self.leases,
            preparer=self.preparer,
            embedder=self.embedder,
            change_embedder=ChangeEmbedder(
                BatchEmbedder(self.embedder, patience, batch_tokens=256, batch_texts=8, in_flight=IN_FLIGHT),
                self.index,
                patience,
                spool,
                self.memory,
            ),
            index=self.index,
            deletion=self.deletion,
            reviser=self.reviser,
            spool=spool,
            memory=self.memory,
            patience=patience,
            metrics=self.metrics,
            ledger=Ledger(self.store, self.clock, worker_id="worker-0"),
            now=self.clock,
        )
        self.letters = FakeDeadLetterStore()
        self.attempts = Attempts(self.pipeline, self.store, self.letters, self.clock)
        self.dead_letters = DeadLetters(self.letters, self.store, self.reviser, self.access, self.clock)
        self.sweeper = Sweeper(
            documents=self.store,
            collections=self.collections,
            jobs=self.jobs,
            deletion=self.deletion,
            clearing=self.clearing,
            metrics=self.metrics,
            now=self.clock,
        )
        self.condition = FakeCondition()
        self.agreement = Agreement(self.condition, self.metrics, self.clock)
        self.collector = Collector(self.store, self.files, self.index, self.deletion, self.agreement, self.clock)
        self.reconciler = Reconciler(
            self.store,
            self.index,
            self.reviser,
            self.deletion,
            self.clock,
            self.collector,
            self.agreement,
            interval_s=3600,
            sleep=_no_sleep,
        )

    async def upload(
        self, text: str | bytes, name: str = "notes.txt", *, caller: Principal = ANN, **header: object
    ) -> Document:
        data = text.encode() if isinstance(text, str) else text
        fields = {"collection_id": "default", "size_bytes": 0, "sha256": "", "metadata": {}, **header}
        return await self.uploads.upload(caller, Upload(name=name, **fields), pieces(data))  # type: ignore[arg-type]

    def job(self, document: Document) -> IngestJob:
        assert document.pending is not None
        return self.jobs.jobs[document.pending.revision_id]

    async def ingest(self, document: Document, attempt: int = 1) -> Document:
        await self.pipeline.handle(self.job(document), attempt)
        return await self.record(document)

    async def record(self, document: Document) -> Document:
        stored = await self.store.get(TENANT, document.document_id)
        assert stored is not None
        return stored.document


async def pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@dataclass
class Crash(BaseException):
    """Stands for the death of the process at one step: nobody has the time to handle it."""

    step: str
