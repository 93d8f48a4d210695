"""Removing documents and files. The tombstone comes first, so that whatever interrupts the rest can be taken up again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import TypeVar

from kit.errors import Aborted
from services.ingest.documents import life
from services.ingest.documents.access import Check, no_document
from services.ingest.documents.file_users import FileUsers, files_of
from services.ingest.documents.models import Status, StoredDocument
from services.ingest.documents.uploads import naming
from services.ingest.ports import AccessLists, DocumentStore, FileStore, Forgetting, Leases, SearchIndex

_TOGETHER = 100
"""Documents that are deleted together: who else uses their files is asked once for all of them."""

_AT_ONCE = 16

T = TypeVar("T")


class Deletion:
    """Deletes documents everywhere, and files that no document uses."""

    def __init__(
        self,
        documents: DocumentStore,
        files: FileStore,
        leases: Leases,
        index: SearchIndex,
        forgetting: Forgetting,
        lists: AccessLists,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._files = files
        self._leases = leases
        self._index = index
        self._forgetting = forgetting
        self._lists = lists
        self._now = now
        self._file_users = FileUsers(documents, now)

    async def delete(self, tenant_id: str, document_id: str, check: Check | None = None) -> None:
        """Tombstone, then both indexes, then what quotes it, then the file. Repeating it is harmless. Raises DocumentNotFound, and
        what `check` raises for the document: where a caller asks, that they may."""
        naming.check_document_id(document_id)
        await self.finish(await self._bury(tenant_id, document_id, check))

    async def delete_all(self, tenant_id: str, documents: Sequence[StoredDocument]) -> None:
        """As `delete`, for many, several at a time."""
        for start in range(0, len(documents), _TOGETHER):
            tombstones = await _each(documents[start : start + _TOGETHER], self._buried)
            await self._finish_all(tenant_id, tombstones)

    async def _bury(self, tenant_id: str, document_id: str, check: Check | None = None) -> StoredDocument:
        stored = await self._documents.get(tenant_id, document_id)
        if stored is None:
            raise no_document(document_id)
        if check is not None:
            await check(stored.document)
        return await self._buried(stored)

    async def _buried(self, stored: StoredDocument) -> StoredDocument:
        """Its tombstone, with what it had still to be removed."""
        document = stored.document
        if document.status is Status.DELETED:
            return stored
        try:
            return await self._documents.update(life.delete(document, self._now()), stored.version)
        except Aborted:
            return await self._bury(document.tenant_id, document.document_id)

    async def finish(self, stored: StoredDocument) -> None:
        """Removes what a tombstone's document left behind."""
        await self._finish_all(stored.document.tenant_id, [stored])

    async def _finish_all(self, tenant_id: str, tombstones: Sequence[StoredDocument]) -> None:
        left = [stored for stored in tombstones if not stored.document.swept]
        await _each(left, lambda stored: self._index.delete(stored.document.document_id))
        # After the indexes, so that no search finds the text any more once its copies are being erased.
        await _each(left, lambda stored: self._forgetting.forget(stored.document.document_id))
        await self._release({sha256 for stored in left for sha256 in files_of(stored.document)}, tenant_id)
        await _each(left, self._swept)

    async def _swept(self, stored: StoredDocument) -> None:
        with suppress(Aborted):  # another did the same
            await self._documents.update(life.sweep(stored.document), stored.version)
            await self._lists.remove(stored.document.tenant_id, stored.document.document_id)

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
            for sha256 in files - await self._file_users.used(tenant_id, files):
                leases[sha256].check()
                await self._files.delete(tenant_id, sha256)


async def _each(stored: Sequence[StoredDocument], do: Callable[[StoredDocument], Awaitable[T]]) -> list[T]:
    """What `do` makes of each, a few at a time, in their order."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(each: StoredDocument) -> T:
        async with slots:
            return await do(each)

    return await asyncio.gather(*map(one, stored))


def file_lease(tenant_id: str, sha256: str) -> str:
    """Key of the lease under which a file is stored or removed."""
    return f"file.{tenant_id}.{sha256}"


def document_lease(tenant_id: str, document_id: str) -> str:
    """Key of the lease under which a document is ingested."""
    return f"document.{tenant_id}.{document_id}"
