"""Finds what a crash left half done and takes it up again: documents whose job was never queued or vanished, deletions of documents
and collections that stopped midway, tombstones past their time. Everything here is harmless when done twice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import structlog

from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError, Unavailable
from services.ingest.documents import life
from services.ingest.documents.changes import Changes
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.models import Document, Status, StoredDocument
from services.ingest.metrics import Metrics
from services.ingest.ports import CollectionStore, DocumentStore, JobQueue
from services.ingest.upkeep.clearing import Clearing

_log = structlog.get_logger()
_SUBJECT = "ingest-sweep"

QUIET_BEFORE_SWEEP = timedelta(seconds=20)
"""A record younger than this is still in the hands of the call that wrote it."""

LOOKS_MAX = 100
"""Documents a sweep looks after: each costs the store a question. A longer queue is gone through in several sweeps."""


class Sweeper:
    """Looks after all tenants' documents that are on their way in or out. All records are read once, after that only changes."""

    def __init__(
        self,
        *,
        documents: DocumentStore,
        collections: CollectionStore,
        jobs: JobQueue,
        deletion: Deletion,
        clearing: Clearing,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._jobs = jobs
        self._deletion = deletion
        self._clearing = clearing
        self._metrics = metrics
        self._now = now
        self._unsettled: dict[tuple[str, str], StoredDocument] = {}
        """Those not looked at for longest come first."""
        self._changes = Changes(documents, self._unsettled.clear)

    async def run(self, interval_s: float) -> None:
        """Sweeps until cancelled. A failure is logged; the next sweep tries again."""
        while True:
            try:
                await self.sweep()
            except GroundworkError as error:
                _log.warning("sweep_failed", reason=error.reason, error=error.message)
            await asyncio.sleep(interval_s)

    async def sweep(self) -> None:
        """Takes note of what was written since the last sweep, and looks after what needs it."""
        async for stored in self._changes.read():
            self._note(stored)
        await self._look()

    def _note(self, stored: StoredDocument) -> None:
        document = stored.document
        key = (document.tenant_id, document.document_id)
        is_on_its_way = document.pending is not None and document.status is not Status.UNKNOWN
        if is_on_its_way or document.status is Status.DELETED:
            self._unsettled[key] = stored
        else:
            self._unsettled.pop(key, None)

    async def _look(self) -> None:
        """One look at the documents on their way, and at the collections that are being deleted."""
        now = self._now()
        # A clock that was set back has records be written in the future, whose calls are over as well.
        due = [
            key for key, stored in self._unsettled.items() if abs(now - stored.document.updated_at) > QUIET_BEFORE_SWEEP
        ]
        for key in due[:LOOKS_MAX]:
            stored = self._unsettled.pop(key, None)
            if stored is None:
                continue
            self._unsettled[key] = stored
            async with self._one(stored.document.tenant_id, document_id=stored.document.document_id):
                await self._look_after(stored)
        async for collection in self._collections.all_of("*"):
            if collection.deleting:
                async with self._one(collection.tenant_id, collection_id=collection.collection_id):
                    await self._clearing.finish(collection.tenant_id, collection.collection_id)

    @asynccontextmanager
    async def _one(self, tenant_id: str, **item: str) -> AsyncIterator[None]:
        """Looks after one item as its tenant. What is wrong with it keeps nothing from the others, unless a neighbour is away."""
        try:
            with use_principal(Principal(tenant_id, _SUBJECT)):
                yield
        except Unavailable:
            raise
        except GroundworkError as error:
            _log.warning("sweep_of_one_failed", reason=error.reason, error=error.message, **item)

    async def _look_after(self, stored: StoredDocument) -> None:
        document = stored.document
        if document.status is Status.DELETED:
            if not document.swept:
                await self._deletion.finish(stored)
            elif life.may_be_forgotten(document, self._now()):
                await self._forget(document)
        elif document.pending and not await self._jobs.has_job(life.job_of(document)):
            await self._requeue(document)

    async def _forget(self, tombstone: Document) -> None:
        """The name first: a name that led to a forgotten document would give its id to a new one."""
        tenant_id, document_id = tombstone.tenant_id, tombstone.document_id
        await self._documents.release_name(tenant_id, tombstone.collection_id, tombstone.name, document_id)
        await self._documents.purge(tenant_id, document_id)
        self._unsettled.pop((tenant_id, document_id), None)

    async def _requeue(self, document: Document) -> None:
        if await self._collections.was_deleted(document.tenant_id, document.collection_id):
            # Its upload was killed before it found out, so nobody knows that the document is there.
            await self._deletion.delete(document.tenant_id, document.document_id)
            return
        _log.info("job_requeued", tenant_id=document.tenant_id, document_id=document.document_id)
        await self._jobs.publish(life.job_of(document))
        self._metrics.requeued_jobs.inc()
