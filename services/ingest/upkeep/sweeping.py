"""Finds what a crash left half done and takes it up again: documents whose job was never queued or vanished, deletions of documents
and collections that stopped midway, tombstones past their time. Everything here is harmless when done twice."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from kit.errors import GroundworkError
from kit.principal import Principal, use_principal
from services.ingest.documents.changes import Changes
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.revising import job_of
from services.ingest.models import Status, StoredDocument
from services.ingest.ports import CollectionStore, DocumentStore, JobQueue
from services.ingest.upkeep.clearing import Clearing

_log = structlog.get_logger()
_SUBJECT = "ingest-sweep"

QUIET_BEFORE_SWEEP = timedelta(seconds=20)
"""A record younger than this is still in the hands of the call that wrote it."""

TOMBSTONE_LIFE = timedelta(hours=1)
"""How long a deleted document is remembered: longer than any upload or job that may still refer to it."""

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
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._jobs = jobs
        self._deletion = deletion
        self._clearing = clearing
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
        if document.pending or document.status is Status.DELETED:
            self._unsettled[key] = stored
        else:
            self._unsettled.pop(key, None)

    async def _look(self) -> None:
        """One look at the documents on their way, and at the collections that are being deleted."""
        settled = self._now() - QUIET_BEFORE_SWEEP
        due = [key for key, stored in self._unsettled.items() if stored.document.updated_at < settled]
        for key in due[:LOOKS_MAX]:
            stored = self._unsettled.pop(key, None)
            if stored is None:
                continue
            self._unsettled[key] = stored
            with use_principal(Principal(stored.document.tenant_id, _SUBJECT)):
                await self._look_after(stored)
        doomed = [collection async for collection in self._collections.all_of("*") if collection.deleting]
        for collection in doomed:
            with use_principal(Principal(collection.tenant_id, _SUBJECT)):
                await self._clearing.finish(collection.tenant_id, collection.collection_id)

    async def _look_after(self, stored: StoredDocument) -> None:
        document = stored.document
        if document.status is Status.DELETED:
            if not document.swept:
                await self._deletion.finish(stored)
            elif document.updated_at < self._now() - TOMBSTONE_LIFE:
                await self._documents.purge(document.tenant_id, document.document_id)
                self._unsettled.pop((document.tenant_id, document.document_id), None)
        elif document.pending and not await self._jobs.has_job(job_of(document)):
            _log.info("job_requeued", document_id=document.document_id)
            await self._jobs.publish(job_of(document))
