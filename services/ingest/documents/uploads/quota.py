"""How much a tenant may store. What is stored is counted by the documents' records: all are read once, after that only changes."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from services.ingest.documents.changes import Changes
from services.ingest.documents.models import Document, Status, StoredDocument
from services.ingest.errors import StorageQuotaExceeded
from services.ingest.ports import DocumentStore

_GIB = 1024**3
_MIB = 1024**2


class StorageQuotas:
    """Bytes by tenant, `default` for those that are not named; 0 is without bound. A file counts once, however many documents
    have it.

    Uploads on their way in this process count as well. Two processes do not know of each other's: together they may exceed a quota
    by what they receive at one moment.
    """

    def __init__(self, documents: DocumentStore, default: int, by_tenant: Mapping[str, int]) -> None:
        self._default = default
        self._by_tenant = by_tenant
        self._changes = Changes(documents, self._forget)
        self._files: dict[tuple[str, str], Mapping[str, int]] = {}
        """Sizes by hash, by tenant and document."""
        self._users: Counter[tuple[str, str]] = Counter()
        self._stored: Counter[str] = Counter()
        self._coming: Counter[str] = Counter()
        self._reading = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, tenant_id: str, name: str, size_bytes: int) -> AsyncIterator[None]:
        """Keeps room for a file that is about to come, for the block. Raises StorageQuotaExceeded."""
        await self.check(tenant_id, name, size_bytes)
        self._coming[tenant_id] += size_bytes
        try:
            yield
        finally:
            self._coming[tenant_id] -= size_bytes

    async def check(self, tenant_id: str, name: str, size_bytes: int) -> None:
        """Raises StorageQuotaExceeded when there is no room for a file of so many bytes."""
        quota = self._by_tenant.get(tenant_id, self._default)
        if not quota:
            return
        async with self._reading:
            async for stored in self._changes.read():
                self._note(stored)
        used = self._stored[tenant_id] + self._coming[tenant_id]
        if used + size_bytes > quota:
            raise StorageQuotaExceeded(
                f"{name} ({shown(size_bytes)}) does not fit: {shown(used)} of {shown(quota)} are used. Delete documents, or have "
                "the operator raise GROUNDWORK_STORAGE_QUOTA_BYTES",
                used_bytes=str(used),
                quota_bytes=str(quota),
            )

    def _forget(self) -> None:
        self._files.clear()
        self._users.clear()
        self._stored.clear()

    def _note(self, stored: StoredDocument) -> None:
        document = stored.document
        key = (document.tenant_id, document.document_id)
        before = self._files.pop(key, {})
        after = {} if document.status is Status.DELETED else _sizes(document)
        for sha256, size_bytes in after.items():
            self._count(document.tenant_id, sha256, size_bytes, 1)
        for sha256, size_bytes in before.items():
            self._count(document.tenant_id, sha256, size_bytes, -1)
        if after:
            self._files[key] = after

    def _count(self, tenant_id: str, sha256: str, size_bytes: int, change: int) -> None:
        was_there = self._users[tenant_id, sha256] > 0
        self._users[tenant_id, sha256] += change
        is_there = self._users[tenant_id, sha256] > 0
        self._stored[tenant_id] += size_bytes * (is_there - was_there)
        if not is_there:
            del self._users[tenant_id, sha256]


def _sizes(document: Document) -> Mapping[str, int]:
    revisions = [revision for revision in (document.pending, document.active) if revision]
    contents = [document.content, *(revision.content for revision in revisions)]
    return {content.sha256: content.size_bytes for content in contents}


def shown(size_bytes: int) -> str:
    """A size for people: `9.8 GiB`, `120 MiB`."""
    if size_bytes >= _GIB:
        return f"{size_bytes / _GIB:.1f} GiB"
    return f"{size_bytes / _MIB:.1f} MiB"
