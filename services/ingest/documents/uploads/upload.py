"""Uploads. The order of writes is what makes them safe: file, name, record, job. Whatever is interrupted, either nothing is visible
or the sweep finds the record without its job.

A name is claimed before its record is written, so that two uploads of one name end in one document. Between the two writes the
claim names a document that has no record, as it does after an upload that was killed there. Who finds such a claim waits a moment
for the record and then writes a tombstone in its place. Either that tombstone or the record of the slow upload is first, never
both: a slow upload that finds the tombstone has not been acknowledged yet, and goes on with a fresh id. A name passes on only from
a document that is deleted, so no id is ever used for two documents, and no two living documents have one name. (An upload that
takes longer than life.TOMBSTONE_LIFE between the two writes would not find the tombstone any more; they are a millisecond apart.)
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Any

from kit.access.principal import Principal
from kit.errors import Aborted, AlreadyExists, DataLoss
from kit.stores.document_access import DocumentAccess
from kit.stores.idempotency import Attempt
from services.ingest.documents import life
from services.ingest.documents.access import Access, check_owned
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.deletion import Deletion, file_lease
from services.ingest.documents.file_users import files_of
from services.ingest.documents.models import Content, Document, Lane, Origin, Status, StoredDocument
from services.ingest.documents.revising import Reviser
from services.ingest.documents.uploads import naming
from services.ingest.documents.uploads.appending import append_text, check_appendable, has_appended, one_piece
from services.ingest.documents.uploads.document_limits import DocumentLimits
from services.ingest.documents.uploads.lanes import LaneChoice
from services.ingest.documents.uploads.storage_limits import StorageLimits
from services.ingest.errors import (
    BadAccess,
    BadUpload,
    CollectionNotFound,
    DocumentChanged,
    DocumentNotFound,
    NameTaken,
    StorageQuotaExceeded,
    UploadCorrupt,
)
from services.ingest.ports import AccessLists, DocumentStore, FileStore, Keys, Leases
from services.ingest.reading.detection import detect_media_type, with_charset
from services.ingest.scanning import Gatekeeper
from services.ingest.spool import Spool, SpooledFile, too_large

_RECORD_WAITS_S = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Between looks for the record of a name that was just claimed: writing it takes a millisecond."""


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
    idempotency_key: str = ""
    encoding: str = ""
    """Of a text, as the sender names it; empty when unknown."""
    lane: Lane | None = None
    """None: what the sender's other uploads suggest."""
    not_scanned: bool = False
    """Whether the scanner for viruses could not look into it."""
    origin: Origin | None = None
    """The file of a source that it is."""
    access: DocumentAccess | None = None
    """Who may read it. None: of a new document those who may read its collection; else as it is. A copy that is there already
    keeps its own."""
    by: Principal | None = None
    """Who uploads it; None for a source."""
    counted_for: Principal | None = None
    """Of a source: under whose limits of storage it counts."""
    keep: bool = False
    """Whether the file is stored and not read."""
    copy_of: str = ""
    """Document whose file it is."""
    batch: str = ""
    late_metadata: Mapping[str, str] = field(default_factory=dict)
    """Further fields, which are there once the last byte has come."""
    replaces_sha256: str | None = None
    """The only content that it may replace; empty: none. None: any."""
    append: bool = False
    """Whether it goes behind the text that is there."""

    def content_with(self, sha256: str) -> bytes:
        """What has to be the same in another upload with the same idempotency key."""
        same: list[Any] = [self.collection_id, self.name, sorted(self.metadata.items()), sha256]
        if self.encoding:
            same.append(self.encoding)
        if self.access is not None:
            same.append({"subjects": sorted(self.access.subjects), "groups": sorted(self.access.groups)})
        if self.keep:
            same.append("keep")
        if self.replaces_sha256 is not None:
            same.append(f"replaces {self.replaces_sha256}")
        if self.append:
            same.append("append")
        return json.dumps(same).encode()


@dataclass(frozen=True)
class Limits:
    """What an upload may be."""

    file_bytes: int
    idle_timeout_s: float


class Uploads:
    """Takes files."""

    def __init__(
        self,
        *,
        documents: DocumentStore,
        keys: Keys,
        files: FileStore,
        leases: Leases,
        catalog: Catalog,
        deletion: Deletion,
        access: Access,
        lists: AccessLists,
        reviser: Reviser,
        spool: Spool,
        limits: Limits,
        now: Callable[[], datetime],
        new_id: Callable[[], str],
        lanes: LaneChoice,
        storage: StorageLimits,
        document_limits: DocumentLimits,
        gatekeeper: Gatekeeper,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._documents = documents
        self._keys = keys
        self._files = files
        self._leases = leases
        self._catalog = catalog
        self._deletion = deletion
        self._access = access
        self._lists = lists
        self._reviser = reviser
        self._spool = spool
        self._limits = limits
        self._now = now
        self._new_id = new_id
        self._lanes = lanes
        self._storage = storage
        self._document_limits = document_limits
        self._gatekeeper = gatekeeper
        self._sleep = sleep

    async def upload(self, caller: Principal, upload: Upload, data: AsyncIterator[bytes]) -> Document:
        """Takes a file and answers once it is stored and its job queued. Refuses what it can before the first byte."""
        tenant_id = caller.tenant_id
        upload = _checked(upload)
        collection = await self._catalog.get_to_edit(caller, upload.collection_id)
        if upload.access is not None:
            check_owned(collection)
        upload = replace(upload, by=caller, lane=self._lanes.choose(caller, upload.collection_id, upload.lane))
        async with (
            self._document_limits.hold(caller) as counted,
            self._received(upload, data) as (upload, content, file),
        ):
            taken: list[Document] = []

            async def make(attempt: Attempt | None) -> str:
                if upload.append:
                    is_first = attempt is None or attempt.is_first
                    taken.append(await self._append(tenant_id, upload, file, is_first=is_first))
                else:
                    taken.append(await self._take(tenant_id, upload, content, file))
                counted.is_stored = True
                return taken[-1].document_id

            if not upload.idempotency_key:
                await make(None)
                return taken[-1]

            same = upload.content_with(content.sha256)
            key = upload.idempotency_key
            document_id = await self._keys.once(caller, "upload", key, same, self._new_id, make)
            return taken[-1] if taken else await self._there(caller, document_id)

    async def take(
        self, tenant_id: str, upload: Upload, data: AsyncIterator[bytes], moved_from: Callable[[str], str]
    ) -> Document:
        """As `upload`, for a file of a source, whose right to the collection its maker has shown. `moved_from` says for a content
        which document it is that had another name before; empty for none. Raises NameTaken."""
        async with self._received(_checked(upload), data) as (received, content, file):
            if document_id := moved_from(content.sha256):
                moved = await self._move(tenant_id, received, content, document_id)
                if moved is not None:
                    await self._reviser.queue(moved)
                    return moved
            return await self._take(tenant_id, received, content, file)

    @asynccontextmanager
    async def _received(
        self, upload: Upload, data: AsyncIterator[bytes]
    ) -> AsyncIterator[tuple[Upload, Content, SpooledFile]]:
        """The file on local disk, as far as it may be stored."""
        charset, limits = naming.checked_encoding(upload.encoding), self._limits
        uploader = _uploader(upload)
        if upload.size_bytes > limits.file_bytes:
            raise too_large(upload.name, limits.file_bytes)
        async with (
            self._storage.hold(uploader, upload.name, upload.size_bytes, upload.sha256.lower()) as room,
            self._spool.received(
                data, name=upload.name, limit_bytes=limits.file_bytes, idle_timeout_s=limits.idle_timeout_s
            ) as file,
        ):
            _check_declared(upload, file)
            was_scanned = await self._gatekeeper.admit(file, upload.name)
            metadata = naming.checked_metadata({**upload.metadata, **upload.late_metadata})
            received = replace(upload, not_scanned=not was_scanned, metadata=metadata)
            media_type = await file.read_by(lambda it: detect_media_type(it, upload.name))
            content = Content(file.sha256, file.size_bytes, with_charset(media_type, charset))
            await room.resize(file.size_bytes, file.sha256)
            yield received, content, file

    async def _there(self, caller: Principal, document_id: str) -> Document:
        """What an earlier request made. Its maker may have lost the right to it meanwhile. Raises DocumentNotFound."""
        stored = await self._documents.get(caller.tenant_id, document_id)
        if stored is None or stored.document.status is Status.DELETED:
            raise DocumentNotFound(
                f"document {document_id}, which was uploaded with this idempotency key, has been deleted; upload with a new key"
            )
        await self._access.check_read(caller, stored.document)
        return stored.document

    async def take_stored(self, tenant_id: str, upload: Upload, content: Content) -> Document:
        """As `upload`, for a file that another document has, by a caller whose rights were checked. Raises DocumentNotFound,
        NameTaken where another document has the name."""
        upload = _checked(upload)
        async with self._storage.hold(_uploader(upload), upload.name, content.size_bytes, content.sha256):
            return await self._take(tenant_id, upload, content, None)

    async def _append(self, tenant_id: str, upload: Upload, file: SpooledFile, *, is_first: bool) -> Document:
        """The document with the file's text behind its own. It looks again whenever another writer was faster."""
        added = await file.read_by(_read_all)
        present, text = None, b""
        while True:
            if present and not is_first and has_appended(text, added):
                return present  # by the attempt that was cut off
            whole = replace(
                upload,
                replaces_sha256=present.content.sha256 if present else "",
                metadata={**(present.metadata if present else {}), **upload.metadata},
                late_metadata={},
                size_bytes=0,
                sha256="",
            )
            joined = one_piece(append_text(upload.name, text, added))
            try:
                async with self._received(whole, joined) as (received, content, spooled):
                    return await self._take(tenant_id, received, content, spooled)
            except DocumentChanged as changed:
                present, text = await self._present(tenant_id, changed.metadata.get("document_id", ""))

    async def _present(self, tenant_id: str, document_id: str) -> tuple[Document | None, bytes]:
        """The document as it is now, and its text; None and no text where it was deleted. Raises BadUpload, DataLoss."""
        while True:
            stored = await self._documents.get(tenant_id, document_id)
            if stored is None or stored.document.status is Status.DELETED:
                return None, b""
            check_appendable(stored.document)
            content = stored.document.content
            async with self._spool.file(content.size_bytes) as path:
                try:
                    await self._files.get_to_file(tenant_id, content.sha256, path)
                except DataLoss:
                    again = await self._documents.get(tenant_id, document_id)
                    if again and again.version == stored.version:
                        raise
                    continue  # its file went because another version has just replaced it
                return stored.document, await asyncio.to_thread(path.read_bytes)

    async def _take(self, tenant_id: str, upload: Upload, content: Content, file: SpooledFile | None) -> Document:
        try:
            document, unused = await self._store(tenant_id, upload, content, file)
        except (DocumentChanged, StorageQuotaExceeded):
            await self._deletion.release_file(tenant_id, content.sha256)
            raise
        await self._check_collection_survived(document)
        await self._reviser.queue(document)
        if unused:
            await self._deletion.release_file(tenant_id, unused)
        return document

    async def _store(
        self, tenant_id: str, upload: Upload, content: Content, file: SpooledFile | None
    ) -> tuple[Document, str]:
        """Stores file and record; returns the record, and the hash of a file that it no longer needs."""
        async with self._leases.hold(file_lease(tenant_id, content.sha256)) as lease:
            if not await self._files.exists(tenant_id, content.sha256):
                if file is None:
                    raise DocumentNotFound(
                        f"the file of document {upload.copy_of} is not there any more; upload it again"
                    )
                await self._files.put(tenant_id, file)
            lease.check()
            return await self._record(tenant_id, upload, content)

    async def _record(self, tenant_id: str, upload: Upload, content: Content) -> tuple[Document, str]:
        place = (tenant_id, upload.collection_id, upload.name)
        own_id = self._new_id()
        named_id = await self._documents.claim_name(*place, own_id)
        while True:
            try:
                if named_id == own_id:
                    if upload.replaces_sha256:
                        await self._documents.release_name(*place, own_id)
                        raise _changed(upload, None)
                    # Before the record: there is no moment at which the document is everybody's.
                    await self._set_access(tenant_id, named_id, upload)
                    own_id = ""  # one attempt: if there is a record of it already, that is looked at
                    made = self._created(tenant_id, named_id, upload, content)
                    async with self._place(tenant_id, upload, named_id):
                        created = await self._documents.create(life.keep(made) if upload.keep else made)
                    return created.document, ""
                stored = await self._named(tenant_id, named_id, upload, content)
                # One that has another name by now was cut off between its move and giving the old name back.
                if stored.document.status is not Status.DELETED and stored.document.name == upload.name:
                    return await self._revised(stored, upload, content)
                own_id = self._new_id()
                named_id = await self._documents.pass_name(*place, named_id, own_id)
            except (AlreadyExists, Aborted):
                continue

    @asynccontextmanager
    async def _place(self, tenant_id: str, upload: Upload, document_id: str) -> AsyncIterator[None]:
        """A place for a new document, which has its name already. Raises StorageQuotaExceeded, without the name then."""
        try:
            async with self._storage.hold_document(_uploader(upload), upload.name):
                yield
        except StorageQuotaExceeded:
            await self._lists.remove(tenant_id, document_id)
            await self._documents.release_name(tenant_id, upload.collection_id, upload.name, document_id)
            raise

    async def _named(self, tenant_id: str, document_id: str, upload: Upload, content: Content) -> StoredDocument:
        """The record of a document that has the upload's name; a tombstone where none comes. Raises AlreadyExists when it came in
        the last moment."""
        for wait_s in _RECORD_WAITS_S:
            await self._sleep(wait_s)
            stored = await self._documents.get(tenant_id, document_id)
            if stored is not None:
                return stored
        return await self._documents.create(life.void(self._created(tenant_id, document_id, upload, content)))

    async def _revised(self, stored: StoredDocument, upload: Upload, content: Content) -> tuple[Document, str]:
        """As `_store`, for a document that is there. Raises Aborted when it changed meanwhile, and StorageQuotaExceeded where it
        counted for somebody else."""
        old, origin = stored.document, upload.origin
        await self._check_replaceable(old, upload)
        if old.origin and origin is None:
            origin = replace(old.origin, version="")  # the next sync brings back what is at the source
        is_same = old.content == content and old.metadata == upload.metadata
        if not is_same and not upload.copy_of:
            await self._check_not_widened(old, upload)
        is_listed_anew = not upload.copy_of and await self._set_access(old.tenant_id, old.document_id, upload)
        if is_same and old.status not in (Status.FAILED, Status.UNKNOWN):
            noted = life.note_access(old, self._now()) if is_listed_anew else old
            if origin and origin != old.origin:
                noted = life.note_origin(noted, origin)
            if upload.batch and upload.batch != old.batch:
                noted = life.note_batch(noted, upload.batch)
            if noted != old:
                noted = (await self._documents.update(noted, stored.version)).document
            return noted, ""
        lane = upload.lane or Lane.INTERACTIVE
        revised = life.revise(
            old,
            content,
            self._new_id(),
            self._now(),
            metadata=upload.metadata,
            lane=lane,
            not_scanned=upload.not_scanned,
            origin=origin,
            by=_subject(upload),
            counted_for=self._storage.labels(_uploader(upload)),
        )
        async with self._storage.hold_document(_uploader(upload), upload.name, old):
            await self._documents.update(revised, stored.version)
        unused = files_of(old) - files_of(revised)
        return revised, unused.pop() if unused else ""

    async def _check_replaceable(self, old: Document, upload: Upload) -> None:
        """Raises NameTaken, DocumentChanged."""
        origin = upload.origin
        if upload.keep or old.status is Status.KEPT or (upload.copy_of and old.copy_of != upload.copy_of):
            raise NameTaken(
                f"the collection has another document {upload.name}; delete it, or give this file another name"
            )
        if origin and (old.origin is None or (old.origin.source_id, old.origin.key) != (origin.source_id, origin.key)):
            raise NameTaken(
                f"the collection has another document {upload.name}, which is not this file of the source; delete that document, "
                "or rename the file"
            )
        if upload.by is not None and not await self._access.may_read(upload.by, old.collection_id, old.document_id):
            raise NameTaken(f"the name {upload.name} is taken in this collection; give the file another name")
        if upload.replaces_sha256 not in (None, old.content.sha256):
            raise _changed(upload, old)

    async def _move(self, tenant_id: str, upload: Upload, content: Content, document_id: str) -> Document | None:
        """Gives a document the upload's name, and a revision under it. None when the document cannot have that name. The order is:
        claim the new name, write the record, give the old name back; cut off anywhere, the next sync does the rest."""
        place = (tenant_id, upload.collection_id, upload.name)
        while True:
            stored = await self._documents.get(tenant_id, document_id)
            if stored is None or stored.document.status is Status.DELETED:
                return None
            await self._set_access(tenant_id, document_id, upload)
            holder_id = await self._documents.claim_name(*place, document_id)
            if holder_id != document_id:
                holder = await self._documents.get(tenant_id, holder_id)
                if holder is None or holder.document.status is not Status.DELETED:
                    return None
                if await self._documents.pass_name(*place, holder_id, document_id) != document_id:
                    continue
            old = stored.document
            revised = life.revise(
                old,
                content,
                self._new_id(),
                self._now(),
                metadata=upload.metadata,
                lane=upload.lane or Lane.INTERACTIVE,
                not_scanned=upload.not_scanned,
                name=upload.name,
                origin=upload.origin,
            )
            try:
                await self._documents.update(revised, stored.version)
            except Aborted:
                continue
            if old.name != upload.name:
                await self._documents.release_name(tenant_id, old.collection_id, old.name, document_id)
            return revised

    async def _check_not_widened(self, old: Document, upload: Upload) -> None:
        """A list is in force at once, and the present text is found until the new one is ready: whom the list adds would find what
        may have been taken out for them. Raises BadAccess."""
        listed = await self._lists.get(old.tenant_id, old.document_id) if upload.access is not None else None
        if listed is not None and upload.access is not None and upload.access.lets_in_more(listed):
            raise BadAccess(
                f"this list lets in more than that of {old.name} now, and they would find its present text until the new one is "
                f"ready; upload it without a list, and set the list once it is ready: PUT /v1/documents/{old.document_id}/access"
            )

    async def _set_access(self, tenant_id: str, document_id: str, upload: Upload) -> bool:
        """Whether it has another list now."""
        if upload.access is None or upload.access == await self._lists.get(tenant_id, document_id):
            return False
        await self._lists.put(tenant_id, document_id, upload.access)
        return True

    def _created(self, tenant_id: str, document_id: str, upload: Upload, content: Content) -> Document:
        return life.create(
            tenant_id,
            document_id,
            upload.collection_id,
            upload.name,
            content,
            upload.metadata,
            self._new_id(),
            self._now(),
            upload.lane or Lane.INTERACTIVE,
            not_scanned=upload.not_scanned,
            origin=upload.origin,
            copy_of=upload.copy_of,
            batch=upload.batch,
            by=_subject(upload),
            counted_for=self._storage.labels(_uploader(upload)),
        )

    async def _check_collection_survived(self, document: Document) -> None:
        """Before the job is queued: a document that has a job was there when its collection was marked, so that emptying the
        collection finds it. Raises CollectionNotFound."""
        if await self._catalog.is_there(document.tenant_id, document.collection_id):
            return
        await self._deletion.delete(document.tenant_id, document.document_id)
        raise CollectionNotFound(
            f"collection {document.collection_id} was deleted while {document.name} was uploaded, and the file with it; "
            "upload it to another collection, or make this one again"
        )


def _read_all(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _changed(upload: Upload, present: Document | None) -> DocumentChanged:
    what_to_do = "read it, make the change again, and name the sha256 of what was read"
    if present is None:
        return DocumentChanged(
            f"the collection has no document {upload.name} that could be replaced; upload it as a new one"
        )
    return DocumentChanged(
        f"{upload.name} has another content than this upload replaces; {what_to_do}",
        document_id=present.document_id,
        sha256=present.content.sha256,
    )


def _subject(upload: Upload) -> str:
    return upload.by.subject if upload.by is not None else ""


def _uploader(upload: Upload) -> Principal:
    """Under whose limits of storage the upload counts."""
    found = upload.by or upload.counted_for
    assert found is not None
    return found


def _checked(upload: Upload) -> Upload:
    """Raises BadName, BadUpload."""
    if upload.append and upload.replaces_sha256 is not None:
        raise BadUpload("an upload that appends names no version to replace; leave out one of the two")
    if upload.append and upload.keep:
        raise BadUpload("an upload that appends is read; leave out keep")
    if upload.replaces_sha256:
        upload = replace(upload, replaces_sha256=upload.replaces_sha256.lower())
    metadata = naming.checked_metadata(dict(upload.metadata))
    return replace(upload, name=naming.file_name(upload.name), metadata=metadata)


def _check_declared(upload: Upload, file: SpooledFile) -> None:
    if upload.sha256 and upload.sha256.lower() != file.sha256:
        raise UploadCorrupt(
            f"{upload.name} arrived with sha256 {file.sha256}, announced was {upload.sha256[:64]}; send it again"
        )
    if upload.size_bytes and upload.size_bytes != file.size_bytes:
        raise UploadCorrupt(
            f"{upload.name} arrived with {file.size_bytes} bytes, announced were {upload.size_bytes}; send it again"
        )
