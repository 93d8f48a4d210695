"""Removing documents and files. The tombstone comes first, so that whatever interrupts the rest can be taken up again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from kit.errors import Aborted
from services.ingest.errors import DocumentNotFound
from services.ingest.models import Document, Status, StoredDocument
from services.ingest.ports import DocumentStore, FileStore, Leases, SearchIndex


class Deletion:
    """Deletes documents everywhere, and files that no document uses."""

    def __init__(
        self,
        documents: DocumentStore,
        files: FileStore,
        leases: Leases,
        index: SearchIndex,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._files = files
        self._leases = leases
        self._index = index
        self._now = now

    async def delete(self, tenant_id: str, document_id: str) -> None:
        """Tombstone, then both indexes, then the file. Repeating it is harmless. Raises DocumentNotFound."""
        while True:
            stored = await self._documents.get(tenant_id, document_id)
            if stored is None:
                raise DocumentNotFound(f"there is no document {document_id}; it may have been deleted")
            if stored.document.status is not Status.DELETED:
                tombstone = replace(
                    stored.document, status=Status.DELETED, stage="", progress=0.0, updated_at=self._now(), error=None
                )
                try:
                    stored = await self._documents.update(tombstone, stored.version)
                except Aborted:
                    continue
            await self.finish(stored)
            return

    async def finish(self, stored: StoredDocument) -> None:
        """Removes what a tombstone's document left behind."""
        if stored.document.swept:
            return
        await self._index.delete(stored.document.document_id)
        for sha256 in files_of(stored.document):
            await self.release_file(stored.document.tenant_id, sha256)
        try:
            await self._documents.update(replace(stored.document, swept=True), stored.version)
        except Aborted:
            return  # another did the same

    async def release_file(self, tenant_id: str, sha256: str) -> None:
        """Removes a file unless a living document uses it. Holds off uploads of the same content meanwhile."""
        async with self._leases.hold(file_lease(tenant_id, sha256)) as lease:
            alive = [
                s.document async for s in self._documents.all_of(tenant_id) if s.document.status is not Status.DELETED
            ]
            if any(sha256 in files_of(document) for document in alive):
                return
            lease.check()
            await self._files.delete(tenant_id, sha256)


def files_of(document: Document) -> set[str]:
    """Hashes of the files a document needs: for search results, for the revision being made, for download."""
    revisions = [revision for revision in (document.pending, document.active) if revision]
    return {document.content.sha256, *(revision.content.sha256 for revision in revisions)}


def file_lease(tenant_id: str, sha256: str) -> str:
    """Key of the lease under which a file is stored or removed."""
    return f"file.{tenant_id}.{sha256}"


def document_lease(tenant_id: str, document_id: str) -> str:
    """Key of the lease under which a document is ingested."""
    return f"document.{tenant_id}.{document_id}"
