"""New revisions of documents. Their id and number are fixed in the record when they are queued; the job only names them."""

from collections.abc import Callable
from datetime import datetime

from kit.errors import Aborted
from services.ingest.documents import life
from services.ingest.documents.access import Check, no_document
from services.ingest.documents.models import Document, IngestJob, Lane, Status
from services.ingest.documents.uploads import naming
from services.ingest.ports import DocumentStore, JobQueue


class Reviser:
    """Makes revisions and queues their jobs."""

    def __init__(
        self, documents: DocumentStore, jobs: JobQueue, now: Callable[[], datetime], new_id: Callable[[], str]
    ) -> None:
        self._documents = documents
        self._jobs = jobs
        self._now = now
        self._new_id = new_id

    async def queue(self, document: Document) -> None:
        """Queues the job of the pending revision, if there is one; once, however often it is called."""
        if document.pending:
            await self._jobs.publish(life.job_of(document))

    async def reindex(
        self,
        tenant_id: str,
        document_id: str,
        check: Check | None = None,
        lane: Lane = Lane.INTERACTIVE,
        by: str = "",
    ) -> Document:
        """Queues a fresh revision of the stored file; one that is still being made is fresh already. Raises DocumentNotFound, and
        what `check` raises for the document: where a caller asks, that they may."""
        return await self._renew(
            tenant_id, document_id, unless=lambda document: document.pending is not None, check=check, lane=lane, by=by
        )

    async def supersede(self, job: IngestJob, above: int) -> Document:
        """Gives the job's document a revision numbered above `above`, in the place of the job's own. Raises DocumentNotFound."""
        return await self._renew(
            job.tenant_id,
            job.document_id,
            unless=lambda document: document.pending is None or document.pending.revision_id != job.revision_id,
            above=above,
            lane=job.lane,
        )

    async def repair(self, tenant_id: str, document_id: str, revision_id: str, above: int) -> Document:
        """As `reindex`, for a document whose active revision is still `revision_id`. Raises DocumentNotFound."""
        return await self._renew(
            tenant_id,
            document_id,
            unless=lambda document: (
                document.pending is not None or document.active is None or document.active.revision_id != revision_id
            ),
            above=above,
            lane=Lane.BULK,
        )

    async def _renew(
        self,
        tenant_id: str,
        document_id: str,
        *,
        unless: Callable[[Document], bool],
        above: int = 0,
        check: Check | None = None,
        lane: Lane,
        by: str = "",
    ) -> Document:
        """Raises DocumentNotFound, WrittenByNewerVersion."""
        naming.check_document_id(document_id)
        while True:
            stored = await self._documents.get(tenant_id, document_id)
            if stored is None or stored.document.status is Status.DELETED:
                raise no_document(document_id)
            document = stored.document
            if check is not None:
                await check(document)
            if document.status is Status.UNKNOWN or not unless(document):
                by = by or (document.pending.by if document.pending else "")
                document = life.revise(
                    document, document.content, self._new_id(), self._now(), above=above, lane=lane, by=by
                )
                try:
                    await self._documents.update(document, stored.version)
                except Aborted:
                    continue
            await self.queue(document)
            return document
