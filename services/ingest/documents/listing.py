"""What people see of their documents: one, a page of them, changes as they happen, the file as it was uploaded."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kit.access.principal import Principal
from services.ingest.documents.access import Access, no_document
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.models import Content, Document, Status
from services.ingest.documents.paging import age, decode_token, encode_token, page_length
from services.ingest.documents.uploads import naming
from services.ingest.errors import BadPageToken
from services.ingest.ports import CollectionStore, DocumentStore, FileStore
from services.ingest.spool import Spool

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class DocumentCounts:
    """Documents by state, and the size of their files."""

    on_their_way: int = 0
    ready: int = 0
    failed: int = 0
    total: int = 0
    size_bytes: int = 0

    def with_one(self, document: Document) -> "DocumentCounts":
        """These and one more."""
        return DocumentCounts(
            self.on_their_way + (document.status in (Status.QUEUED, Status.PROCESSING)),
            self.ready + (document.status is Status.READY),
            self.failed + (document.status is Status.FAILED),
            self.total + 1,
            self.size_bytes + document.content.size_bytes,
        )


@dataclass(frozen=True)
class Page:
    """Which documents of a collection are wanted."""

    collection_id: str
    statuses: Collection[Status] = ()
    page_size: int = 0
    page_token: str = ""
    batch: str = ""
    after_document_id: str = ""
    """Instead of a token."""
    oldest_first: bool = False


class Listing:
    """Everything is what the caller may read; a foreign id is as unknown as an invented one."""

    def __init__(
        self,
        documents: DocumentStore,
        collections: CollectionStore,
        files: FileStore,
        catalog: Catalog,
        access: Access,
        spool: Spool,
    ) -> None:
        self._documents = documents
        self._collections = collections
        self._access = access
        self._files = files
        self._catalog = catalog
        self._spool = spool

    async def get(self, caller: Principal, document_id: str) -> Document:
        """Raises DocumentNotFound."""
        naming.check_document_id(document_id)
        stored = await self._documents.get(caller.tenant_id, document_id)
        if stored is None or stored.document.status is Status.DELETED:
            raise no_document(document_id)
        await self._access.check_read(caller, stored.document)
        return stored.document

    async def page(self, caller: Principal, wanted: Page) -> tuple[list[Document], str, DocumentCounts]:
        """Documents of a collection in the order of their age, the token of the next page, and how many there are. Raises
        CollectionNotFound, BadPageToken."""
        await self._catalog.get(caller, wanted.collection_id)
        after = decode_token(wanted.page_token) if wanted.page_token else None
        found, counts = [], DocumentCounts()
        async for stored in self._documents.all_of(caller.tenant_id):
            document = stored.document
            if document.collection_id != wanted.collection_id or document.status is Status.DELETED:
                continue
            if wanted.batch and document.batch != wanted.batch:
                continue
            if not await self._access.sees(caller, wanted.collection_id, document.document_id):
                continue
            counts = counts.with_one(document)
            if document.document_id == wanted.after_document_id:
                after = _age(document)
            if not wanted.statuses or document.status in wanted.statuses:
                found.append(document)
        if wanted.after_document_id and after is None:
            raise BadPageToken(
                f"the collection has no document {wanted.after_document_id} to go on after; start again without it"
            )
        found.sort(key=_age, reverse=not wanted.oldest_first)
        if after is not None:
            found = [each for each in found if (_age(each) > after if wanted.oldest_first else _age(each) < after)]
        size = page_length(wanted.page_size)
        return found[:size], encode_token(_age(found[size - 1])) if len(found) > size else "", counts

    async def counts(self, caller: Principal) -> dict[str, DocumentCounts]:
        """How many documents the caller may read, by collection; one that has none is missing."""
        counts: dict[str, DocumentCounts] = {}
        async for stored in self._documents.all_of(caller.tenant_id):
            document, place = stored.document, stored.document.collection_id
            if document.status is Status.DELETED:
                continue
            if await self._access.sees(caller, place, document.document_id):
                counts[place] = counts.get(place, DocumentCounts()).with_one(document)
        return counts

    async def watch(
        self, caller: Principal, collection_id: str, document_ids: Collection[str]
    ) -> AsyncGenerator[Document | None, None]:
        """Current documents, then None, then changes until closed, or until the caller may read other collections than before: then
        who watches begins anew. A deleted one that was seen is seen once more, as such; of one that the caller may not read any
        more only that it is gone."""
        shown: set[str] = set()
        async with aclosing(self._watched(caller, collection_id, document_ids)) as documents:
            async for document in documents:
                if document is None:
                    yield None
                    continue
                is_seen = await self._access.sees(caller, document.collection_id, document.document_id)
                if is_seen and document.status is not Status.DELETED:
                    shown.add(document.document_id)
                    yield document
                elif (
                    document.document_id in shown
                ):  # deleted, maybe with its collection, or its list names the caller no longer
                    shown.discard(document.document_id)
                    yield document if is_seen else _gone(document)

    async def _watched(
        self, caller: Principal, collection_id: str, document_ids: Collection[str]
    ) -> AsyncGenerator[Document | None, None]:
        """As `watch`, whether the caller may read them or not."""
        rights_changed = asyncio.create_task(self._collections.wait_rights_changed(caller, collection_id))
        snapshot = True
        async with aclosing(_until(rights_changed, self._documents.watch(caller.tenant_id))) as changes:
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
    async def download(self, caller: Principal, document_id: str) -> AsyncIterator[tuple[Document, Path]]:
        """The file as uploaded, at a path of this process while the block runs. Raises DocumentNotFound, DataLoss."""
        document = await self.get(caller, document_id)
        async with self._spool.file(document.content.size_bytes) as path:
            await self._files.get_to_file(caller.tenant_id, document.content.sha256, path)
            yield document, path


async def _until(end: "asyncio.Task[None]", items: AsyncGenerator[ItemT, None]) -> AsyncGenerator[ItemT, None]:
    """The items until there are no more, or until `end` is done, which ends with this."""
    coming: asyncio.Future[ItemT] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(anext(items))
            await asyncio.wait({coming, end}, return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                return
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        begun: list[asyncio.Future[Any]] = [end] if coming is None else [end, coming]
        for each in begun:
            each.cancel()
        await asyncio.gather(*begun, return_exceptions=True)
        await items.aclose()


def _gone(document: Document) -> Document:
    """A document for a reader who may not read it any more: its id, its collection, and that it is gone."""
    return Document(
        document.tenant_id,
        document.document_id,
        document.collection_id,
        name="",
        created_at=document.created_at,
        updated_at=document.updated_at,
        status=Status.DELETED,
        content=Content("", 0, ""),
        revision_count=0,
    )


def _age(document: Document) -> tuple[str, str]:
    return age(document.created_at, document.document_id)
