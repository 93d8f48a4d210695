"""Finds what a crash left half done and takes it up again: documents whose job was never queued, deletions and collection deletions
that stopped midway, tombstones past their time. Everything here is harmless when done twice, so every worker may sweep."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from kit.errors import GroundworkError
from kit.principal import Principal, use_principal
from services.ingest.catalog import Catalog
from services.ingest.deletion import Deletion
from services.ingest.documents import job_of
from services.ingest.models import Status, StoredDocument
from services.ingest.ports import CollectionStore, DocumentStore, JobQueue

_log = structlog.get_logger()
_SUBJECT = "ingest-sweep"

QUIET_BEFORE_SWEEP = timedelta(seconds=20)
"""A record younger than this is still in the hands of the call that wrote it."""

TOMBSTONE_LIFE = timedelta(hours=1)
"""How long a deleted document is remembered: longer than any upload or job that may still refer to it."""


class Sweeper:
    """Looks through all tenants' records."""

    def __init__(
        self,
        *,
        documents: DocumentStore,
        collections: CollectionStore,
        jobs: JobQueue,
        deletion: Deletion,
        catalog: Catalog,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._jobs = jobs
        self._deletion = deletion
        self._catalog = catalog
        self._now = now

    async def run(self, interval_s: float) -> None:
        """Sweeps until cancelled. A failure is logged; the next sweep tries again."""
        while True:
            try:
                await self.sweep()
            except GroundworkError as error:
                _log.warning("sweep_failed", reason=error.reason, error=error.message)
            await asyncio.sleep(interval_s)

    async def sweep(self) -> None:
        """One look at everything."""
        settled = self._now() - QUIET_BEFORE_SWEEP
        stale = [s async for s in self._documents.all_of("*") if s.document.updated_at < settled]
        for stored in stale:
            with use_principal(Principal(stored.document.tenant_id, _SUBJECT)):
                await self._sweep_document(stored)
        doomed = [collection async for collection in self._collections.all_of("*") if collection.deleting]
        for collection in doomed:
            with use_principal(Principal(collection.tenant_id, _SUBJECT)):
                await self._catalog.finish_deleting(collection.tenant_id, collection.collection_id)

    async def _sweep_document(self, stored: StoredDocument) -> None:
        document = stored.document
        if document.status is Status.DELETED:
            if not document.swept:
                await self._deletion.finish(stored)
            elif document.updated_at < self._now() - TOMBSTONE_LIFE:
                await self._documents.purge(document.tenant_id, document.document_id)
        elif document.pending and not await self._jobs.has_job(job_of(document)):
            _log.info("job_requeued", document_id=document.document_id)
            await self._jobs.publish(job_of(document))
