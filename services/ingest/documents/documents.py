"""The use cases of documents: upload, list, reindex, watch. The order of writes in an upload is what makes it safe: file, record,
job. Whatever is interrupted, either nothing is visible or a sweep finds the record without its job."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kit.errors import Aborted, AlreadyExists
from services.ingest.documents import naming
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.deletion import Deletion, file_lease
from services.ingest.documents.file_users import files_of
from services.ingest.documents.paging import age, decode_token, encode_token, page_length
from services.ingest.documents.revising import Reviser
from services.ingest.documents.spool import Spool, SpooledFile, too_large
from services.ingest.errors import CollectionNotFound, DocumentNotFound, UploadCorrupt
from services.ingest.models import Content, Document, Status
from services.ingest.ports import DocumentStore, FileStore, Leases
from services.ingest.reading.detection import detect_media_type


@dataclass(frozen=True)
class Upload:
    """What the sender says is about to come."""

    collection_id: str
    name: str
    size_bytes: int
    """0 when unknown."""
    sha256: str
    """Empty when unknown."""
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class Limits:
    """What an upload may be."""

    file_bytes: int
    idle_timeout_s: float


class Documents:
    """The API's use cases. Everything is the tenant's own; a foreign id is as unknown as an invented one."""

    def __init__(
        self,
        *,
        documents: DocumentStore,
        files: FileStore,
        leases: Leases,
        catalog: Catalog,
        deletion: Deletion,
        reviser: Reviser,
        spool: Spool,
        limits: Limits,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
    ) -> None:
        self._documents = documents
        self._files = files
        self._leases = leases
        self._catalog = catalog
        self._deletion = deletion
        self._reviser = reviser
        self._spool = spool
        self._limits = limits
        self._now = now
        self._new_id = new_id

    # -- upload --

    async def upload(self, tenant_id: str, upload: Upload, data: AsyncIterator[bytes]) -> Document:
        """Takes a file and answers once it is stored and its job queued. Refuses what it can before the first byte."""
        upload = replace(
            upload, name=naming.file_name(upload.name), metadata=naming.checked_metadata(dict(upload.metadata))
        )
        await self._catalog.get(tenant_id, upload.collection_id)
        limits = self._limits
        if upload.size_bytes > limits.file_bytes:
            raise too_large(upload.name, limits.file_bytes)
        async with self._spool.received(
            data, name=upload.name, limit_bytes=limits.file_bytes, idle_timeout_s=limits.idle_timeout_s
        ) as file:
            _check_declared(upload, file)
            media_type = await file.read_by(lambda it: detect_media_type(it, upload.name))
            content = Content(file.sha256, file.size_bytes, media_type)
            document, unused = await self._store(tenant_id, upload, content, file)
        await self._reviser.queue(document)
        if unused:
            await self._deletion.release_file(tenant_id, unused)
        await self._check_collection_survived(document)
        return document

    async def _store(self, tenant_id: str, upload: Upload, content: Content, file: SpooledFile) -> tuple[Document, str]:
        """Stores file and record; returns the record, and the hash of a file that it no longer needs."""
        async with self._leases.hold(file_lease(tenant_id, content.sha256)) as lease:
            if not await self._files.exists(tenant_id, content.sha256):
                await self._files.put(tenant_id, file)
            lease.check()
            return await self._record(tenant_id, upload, content)

    async def _record(self, tenant_id: str, upload: Upload, content: Content) -> tuple[Document, str]:
        place = (tenant_id, upload.collection_id, upload.name)
        new_id = self._new_id()
        document_id = await self._documents.claim_name(*place, new_id)
        is_ours = document_id == new_id  # then nobody has a record of it, unless another upload of the name was faster
        while True:
            try:
                stored = None if is_ours else await self._documents.get(tenant_id, document_id)
                if stored is None:
                    fresh = self._fresh(tenant_id, document_id, upload, content)
                    return (await self._documents.create(fresh)).document, ""
                old = stored.document
                if old.status is Status.DELETED:
                    document_id = await self._documents.pass_name(*place, document_id, self._new_id())
                    continue
                if old.content == content and old.metadata == upload.metadata and old.status is not Status.FAILED:
                    return old, ""
                changed = self._reviser.revised(replace(old, metadata=dict(upload.metadata)), content)
                await self._documents.update(changed, stored.version)
                unused = files_of(old) - files_of(changed)
                return changed, unused.pop() if unused else ""
            except (AlreadyExists, Aborted):
                is_ours = False

    def _fresh(self, tenant_id: str, document_id: str, upload: Upload, content: Content) -> Document:
        now = self._now()
        empty = Document(
            tenant_id,
            document_id,
            upload.collection_id,
            upload.name,
            created_at=now,
            updated_at=now,
            status=Status.QUEUED,
            content=content,
            revision_count=0,
            metadata=dict(upload.metadata),
        )
        return self._reviser.revised(empty, content)

    async def _check_collection_survived(self, document: Document) -> None:
        try:
            await self._catalog.get(document.tenant_id, document.collection_id)
        except CollectionNotFound:
            await self._deletion.delete(document.tenant_id, document.document_id)
            raise

    # -- everything else --

    async def get(self, tenant_id: str, document_id: str) -> Document:
        """Raises DocumentNotFound."""
        stored = await self._documents.get(tenant_id, document_id) if naming.is_document_id(document_id) else None
        if stored is None or stored.document.status is Status.DELETED:
            raise DocumentNotFound(f"there is no document {document_id[:80]}; it may have been deleted")
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

    async def delete(self, tenant_id: str, document_id: str) -> None:
        """Removes a document everywhere. Raises DocumentNotFound."""
        if not naming.is_document_id(document_id):
            raise DocumentNotFound(f"there is no document {document_id[:80]}")
        await self._deletion.delete(tenant_id, document_id)

    async def reindex(self, tenant_id: str, document_id: str) -> Document:
        """Queues a fresh revision of the stored file; one that is still being made is fresh already. Raises DocumentNotFound."""
        await self.get(tenant_id, document_id)
        return await self._reviser.reindex(tenant_id, document_id)

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


def _check_declared(upload: Upload, file: SpooledFile) -> None:
    if upload.sha256 and upload.sha256.lower() != file.sha256:
        raise UploadCorrupt(
            f"{upload.name} arrived with sha256 {file.sha256}, announced was {upload.sha256[:64]}; send it again"
        )
    if upload.size_bytes and upload.size_bytes != file.size_bytes:
        raise UploadCorrupt(
            f"{upload.name} arrived with {file.size_bytes} bytes, announced were {upload.size_bytes}; send it again"
        )


def _age(document: Document) -> tuple[str, str]:
    return age(document.created_at, document.document_id)
