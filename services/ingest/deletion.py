"""Removing documents and files. The tombstone comes first, so that whatever interrupts the rest can be taken up again."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import datetime

from kit.errors import Aborted
from services.ingest.errors import DocumentNotFound
from services.ingest.models import Document, Status, StoredDocument
from services.ingest.ports import DocumentStore, FileStore, Leases, SearchIndex

_AT_ONCE = 100
"""Documents that are deleted together: to see who else uses their files costs a look at all of the tenant's records."""


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
        await self.finish(await self._bury(tenant_id, document_id))

    async def delete_all(self, tenant_id: str, document_ids: Sequence[str]) -> None:
        """As `delete`, for many, without asking for each file anew who else uses it. Raises DocumentNotFound."""
        for start in range(0, len(document_ids), _AT_ONCE):
            ids = document_ids[start : start + _AT_ONCE]
            await self._finish_all(tenant_id, [await self._bury(tenant_id, document_id) for document_id in ids])

    async def _bury(self, tenant_id: str, document_id: str) -> StoredDocument:
        while True:
            stored = await self._documents.get(tenant_id, document_id)
            if stored is None:
                raise DocumentNotFound(f"there is no document {document_id}; it may have been deleted")
            if stored.document.status is Status.DELETED:
                return stored
            tombstone = replace(
                stored.document, status=Status.DELETED, stage="", progress=0.0, updated_at=self._now(), error=None
            )
            try:
                return await self._documents.update(tombstone, stored.version)
            except Aborted:
                continue

    async def finish(self, stored: StoredDocument) -> None:
        """Removes what a tombstone's document left behind."""
        await self._finish_all(stored.document.tenant_id, [stored])

    async def _finish_all(self, tenant_id: str, tombstones: Sequence[StoredDocument]) -> None:
        left = [stored for stored in tombstones if not stored.document.swept]
        for stored in left:
            await self._index.delete(stored.document.document_id)
        await self._release({sha256 for stored in left for sha256 in files_of(stored.document)}, tenant_id)
        for stored in left:
            with suppress(Aborted):  # another did the same
                await self._documents.update(replace(stored.document, swept=True), stored.version)

    async def release_file(self, tenant_id: str, sha256: str) -> None:
        """Removes a file unless a living document uses it. Holds off uploads of the same content meanwhile."""
        await self._release({sha256}, tenant_id)

    async def _release(self, files: set[str], tenant_id: str) -> None:
        if not files:
            return
        async with AsyncExitStack() as stack:
            leases = {  # in one order for all, so that two who release the same files do not wait for each other
                sha256: await stack.enter_async_context(self._leases.hold(file_lease(tenant_id, sha256)))
                for sha256 in sorted(files)
            }
            used: set[str] = set()
            async for stored in self._documents.all_of(tenant_id):
                if stored.document.status is not Status.DELETED:
                    used |= files_of(stored.document)
            for sha256 in files - used:
                leases[sha256].check()
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
