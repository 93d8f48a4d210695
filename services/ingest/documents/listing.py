"""What people see of their documents: one, a page of them, changes as they happen, the file as it was uploaded."""

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from services.ingest.documents import naming
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.models import Document, Status
from services.ingest.documents.paging import age, decode_token, encode_token, page_length
from services.ingest.documents.spool import Spool
from services.ingest.errors import DocumentNotFound
from services.ingest.ports import DocumentStore, FileStore


class Listing:
    """Everything is the tenant's own; a foreign id is as unknown as an invented one."""

    def __init__(self, documents: DocumentStore, files: FileStore, catalog: Catalog, spool: Spool) -> None:
        self._documents = documents
        self._files = files
        self._catalog = catalog
        self._spool = spool

    async def get(self, tenant_id: str, document_id: str) -> Document:
        """Raises DocumentNotFound."""
        naming.check_document_id(document_id)
        stored = await self._documents.get(tenant_id, document_id)
        if stored is None or stored.document.status is Status.DELETED:
            raise DocumentNotFound(f"there is no document {document_id}; it may have been deleted")
        return stored.document

    async def page(
        self, tenant_id: str, collection_id: str, statuses: Collection[Status], page_size: int, page_token: str
    ) -> tuple[list[Document], str]:
        """Documents of a collection, newest first, and the token of the next page. Raises CollectionNotFound, BadPageToken."""
        await self._catalog.get(tenant_id, collection_id)
        after = decode_token(page_token) if page_token else None
        found = [
            stored.document
            async for stored in self._documents.all_of(tenant_id)
            if stored.document.collection_id == collection_id
            and stored.document.status is not Status.DELETED
            and (not statuses or stored.document.status in statuses)
        ]
        found.sort(key=_age, reverse=True)
        if after is not None:
            found = [document for document in found if _age(document) < after]
        size = page_length(page_size)
        return found[:size], encode_token(_age(found[size - 1])) if len(found) > size else ""

    async def watch(
        self, tenant_id: str, collection_id: str, document_ids: Collection[str]
    ) -> AsyncGenerator[Document | None, None]:
        """Current documents, then None, then changes until closed. A deleted one is seen once, as such."""
        snapshot = True
        async with aclosing(self._documents.watch(tenant_id)) as changes:
            async for stored in changes:
                if stored is None:
                    snapshot = False
                    yield None
                    continue
                document = stored.document
                if (snapshot or document.swept) and document.status is Status.DELETED:
                    continue
                if (not collection_id or document.collection_id == collection_id) and (
                    not document_ids or document.document_id in document_ids
                ):
                    yield document

    @asynccontextmanager
    async def download(self, tenant_id: str, document_id: str) -> AsyncIterator[tuple[Document, Path]]:
        """The file as uploaded, on local disk while the block runs. Raises DocumentNotFound, DataLoss."""
        document = await self.get(tenant_id, document_id)
        with self._spool.file() as path:
            await self._files.get_to_file(tenant_id, document.content.sha256, path)
            yield document, path


def _age(document: Document) -> tuple[str, str]:
    return age(document.created_at, document.document_id)
