"""Files that are put into further collections. A file is uploaded once, and kept without being read; each copy is a document of its
own, which has a name, metadata and a revision of its collection, and shares the stored bytes. It begins with the access list that
the original has; from then on each has its own.

The copy is made first, and noted at the original second. A caller that is cut off in between finds the copy under its name when it
asks again.
"""

from collections.abc import Mapping
from dataclasses import replace

from kit.access.principal import Principal
from kit.errors import Aborted
from services.ingest.documents import life
from services.ingest.documents.access import Access, check_owned, no_document
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.listing import Listing
from services.ingest.documents.models import Document, Lane, Status
from services.ingest.documents.uploads import naming
from services.ingest.documents.uploads.upload import Upload, Uploads
from services.ingest.errors import BadUpload, NameTaken
from services.ingest.ports import AccessLists, DocumentStore

_MARK = 8
"""Characters of the original's id in front of a name that the collection has already."""
_LONGEST_BATCH = 64
_MOST_COPIES = 100
"""Of one document: its record names them, and a caller who may read the document may copy it."""


class Copying:
    """Copies documents into collections."""

    def __init__(
        self,
        documents: DocumentStore,
        access: Access,
        lists: AccessLists,
        listing: Listing,
        catalog: Catalog,
        uploads: Uploads,
    ) -> None:
        self._documents = documents
        self._access = access
        self._lists = lists
        self._listing = listing
        self._catalog = catalog
        self._uploads = uploads

    async def copy(
        self, caller: Principal, document_id: str, collection_id: str, metadata: Mapping[str, str], batch: str = ""
    ) -> Document:
        """The document's copy in the collection, made or brought to this metadata. Raises DocumentNotFound, CollectionNotFound,
        NotYours, BadUpload, BadAccess."""
        if len(batch) > _LONGEST_BATCH:
            raise BadUpload(f"the word for the batch has {len(batch)} characters; use at most {_LONGEST_BATCH}")
        original = await self._listing.get(caller, document_id)
        collection = await self._catalog.get_to_edit(caller, collection_id)
        is_in_place = original.collection_id == collection_id and original.status is not Status.KEPT
        there = original if is_in_place else await self._copy_of(caller, original, collection_id)
        if there is None:
            await self._check_room(original, collection_id)
        listed = None if is_in_place else await self._lists.get(caller.tenant_id, document_id)
        if listed is not None and there is None:
            check_owned(collection)
        name = there.name if there else original.name.rpartition("/")[2]
        upload = Upload(
            collection_id,
            name,
            original.content.size_bytes,
            original.content.sha256,
            naming.checked_metadata(dict(metadata)),
            lane=Lane.INTERACTIVE,
            not_scanned=original.not_scanned,
            access=replace(listed, collection_id=collection_id) if listed else None,
            by=caller,
            copy_of="" if is_in_place else document_id,
            batch=batch,
        )
        copy = await self._taken(caller.tenant_id, upload, original)
        if not is_in_place and original.copies.get(collection_id) != copy.document_id:
            await self._note(caller.tenant_id, document_id, copy)
        return copy

    async def _copy_of(self, caller: Principal, original: Document, collection_id: str) -> Document | None:
        """The copy that is there already, unless it is hidden from the caller."""
        copy_id = original.copies.get(collection_id)
        if not copy_id or not await self._access.may_read(caller, collection_id, copy_id):
            return None
        return await self._living(original.tenant_id, copy_id)

    async def _living(self, tenant_id: str, document_id: str) -> Document | None:
        stored = await self._documents.get(tenant_id, document_id)
        return stored.document if stored and stored.document.status is not Status.DELETED else None

    async def _check_room(self, original: Document, collection_id: str) -> None:
        """Raises BadUpload."""
        if collection_id not in original.copies and len(await self._copies(original)) >= _MOST_COPIES:
            raise BadUpload(
                f"file {original.document_id} is in {_MOST_COPIES} collections already, as many as it may; "
                "take it out of one first, or upload it again"
            )

    async def _copies(self, original: Document) -> dict[str, str]:
        """Its copies by collection; once there are many, without those that were deleted."""
        copies = original.copies
        if len(copies) < _MOST_COPIES:
            return copies
        return {place: copy_id for place, copy_id in copies.items() if await self._living(original.tenant_id, copy_id)}

    async def _taken(self, tenant_id: str, upload: Upload, original: Document) -> Document:
        """The document that the upload makes, under a name with a mark where another document has its name."""
        try:
            return await self._uploads.take_stored(tenant_id, upload, original.content)
        except NameTaken:
            marked = f"{original.document_id[:_MARK]}/{upload.name}"[: naming.MAX_NAME_CHARS]
            return await self._uploads.take_stored(tenant_id, replace(upload, name=marked), original.content)

    async def _note(self, tenant_id: str, document_id: str, copy: Document) -> None:
        """Notes the copy at its original. Raises DocumentNotFound where that was deleted meanwhile."""
        while True:
            stored = await self._documents.get(tenant_id, document_id)
            if stored is None or stored.document.status is Status.DELETED:
                raise no_document(document_id)
            copies = {**await self._copies(stored.document), copy.collection_id: copy.document_id}
            noted = life.note_copies(stored.document, copies)
            try:
                await self._documents.update(noted, stored.version)
            except Aborted:
                continue
            return
