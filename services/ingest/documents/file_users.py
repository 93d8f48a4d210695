"""Which files living documents need. All records are read once, when this is first asked; after that only what has changed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Set
from datetime import datetime

from services.ingest.documents.changes import Changes
from services.ingest.documents.models import Document, Status, StoredDocument
from services.ingest.ports import DocumentStore


class FileUsers:
    """The users of all tenants' files, in memory: 200 bytes a document."""

    def __init__(self, documents: DocumentStore, now: Callable[[], datetime]) -> None:
        """`now`: the time of day."""
        self._changes = Changes(documents, self._forget, now)
        self._files: dict[tuple[str, str], frozenset[str]] = {}
        self._users: Counter[tuple[str, str]] = Counter()
        self._reading = asyncio.Lock()

    async def used(self, tenant_id: str, files: Set[str]) -> set[str]:
        """Those of the files that a document of the tenant needs, by every record written before this call."""
        async with self._reading:
            async for stored in self._changes.read():
                self._note(stored)
        return {sha256 for sha256 in files if self._users[tenant_id, sha256]}

    def _forget(self) -> None:
        self._files.clear()
        self._users.clear()

    def _note(self, stored: StoredDocument) -> None:
        document = stored.document
        key = (document.tenant_id, document.document_id)
        self._count(document.tenant_id, self._files.pop(key, frozenset()), -1)
        if document.status is not Status.DELETED:
            self._files[key] = frozenset(files_of(document))
            self._count(document.tenant_id, self._files[key], 1)

    def _count(self, tenant_id: str, files: Set[str], change: int) -> None:
        for sha256 in files:
            self._users[tenant_id, sha256] += change
            if not self._users[tenant_id, sha256]:
                del self._users[tenant_id, sha256]


def files_of(document: Document) -> set[str]:
    """Hashes of the files a document needs: for search results, for the revision being made, for download."""
    revisions = [revision for revision in (document.pending, document.active) if revision]
    return {document.content.sha256, *(revision.content.sha256 for revision in revisions)}
