"""Removes what interrupted uploads and deletions left in the store: names that lead nowhere, files that no document uses, pieces of
files. All of it is rare, and nobody sees it; so wherever something looks lost rather than left over, nothing is removed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from kit.access.principal import Principal, use_principal
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.file_users import files_of
from services.ingest.documents.life import TOMBSTONE_LIFE
from services.ingest.documents.models import Document, NameClaim, Status, StoredFile
from services.ingest.ports import DocumentStore, FileStore, SearchIndex
from services.ingest.upkeep.agreement import Agreement, Disagreement, Kind, label

_log = structlog.get_logger()
_SUBJECT = "ingest-collector"
_BATCH = 100

FEW_FILES = 20
"""So many files without a document are left over from uploads. More of them, and a tenth of all files, look like lost records."""

_Key = tuple[str, str]


@dataclass
class _Inventory:
    """What the stores and the index hold, by tenant and id or hash."""

    claims: list[NameClaim] = field(default_factory=list)
    documents: dict[_Key, Document] = field(default_factory=dict)
    """Tombstones too."""
    files: list[StoredFile] = field(default_factory=list)
    visible: set[_Key] = field(default_factory=set)
    """Documents that searches show."""

    def living(self) -> Iterable[Document]:
        return (document for document in self.documents.values() if document.status is not Status.DELETED)


class Collector:
    """Goes through names, records, files and visible documents of all tenants."""

    def __init__(
        self,
        documents: DocumentStore,
        files: FileStore,
        index: SearchIndex,
        deletion: Deletion,
        agreement: Agreement,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._files = files
        self._index = index
        self._deletion = deletion
        self._agreement = agreement
        self._now = now
        self._orphaned: set[NameClaim] = set()
        """As the last round found them. What is under way is young, but a clock may jump (a laptop that wakes up): what is removed
        was left over in two rounds."""

    async def collect(self) -> None:
        """One round. Raises Unavailable rather than guess."""
        before = self._now() - TOMBSTONE_LIFE  # whatever is under way is younger
        inventory = await self._inventory()
        if unreadable := self._documents.unreadable:
            _log.warning("nothing_collected", unreadable_records=unreadable)
            await self._agreement.tell([Disagreement(Kind.RECORDS_UNREADABLE, unreadable)])
            return
        named_again = await self._restore_claims(inventory, before)
        lost = await self._lost(inventory)
        await self._drop_claims(inventory, before)
        fileless = await self._fileless(inventory)
        unused = _unused(inventory, before)
        too_many = len(unused) > max(FEW_FILES, len(inventory.files) // 10)
        await self._agreement.tell(
            [
                Disagreement(Kind.NAMES_MISSING, len(named_again), [label(each) for each in named_again]),
                Disagreement(Kind.RECORDS_MISSING, len(lost), lost),
                Disagreement(Kind.FILES_MISSING, len(fileless), [label(each) for each in fileless]),
                Disagreement(Kind.FILES_UNUSED, len(unused) if too_many else 0, [file.sha256 for file in unused]),
            ]
        )
        if lost:
            _log.error("records_lost", count=len(lost), document_ids=lost[:_BATCH])
        elif fileless or too_many:
            _log.error("files_not_collected", files=len(inventory.files), missing=len(fileless), unused=len(unused))
        else:
            await self._remove(unused, before)

    async def _inventory(self) -> _Inventory:
        """Claims first: a document that is made meanwhile is then seen with its record, if at all."""
        inventory = _Inventory()
        inventory.claims = [claim async for claim in self._documents.claims()]
        async for stored in self._documents.all_of("*"):
            document = stored.document
            inventory.documents[document.tenant_id, document.document_id] = document
        inventory.files = [file async for file in self._files.all()]
        known = (inventory.claims, inventory.documents.values(), inventory.files)
        for tenant_id in {each.tenant_id for part in known for each in part}:
            with use_principal(Principal(tenant_id, _SUBJECT)):
                inventory.visible |= {(tenant_id, document_id) async for document_id in self._index.visible()}
        return inventory

    async def _restore_claims(self, inventory: _Inventory, before: datetime) -> list[Document]:
        """A document whose name was lost would not be found by the next upload of that name. Returns those that got theirs back."""
        claimed = {(claim.tenant_id, claim.document_id) for claim in inventory.claims}
        restored = []
        for document in inventory.living():
            if (document.tenant_id, document.document_id) in claimed:
                continue
            place = (document.tenant_id, document.collection_id, document.name)
            if await self._documents.claim_name(*place, document.document_id) != document.document_id:
                _log.error("document_without_its_name", tenant_id=document.tenant_id, document_id=document.document_id)
            elif document.created_at < before:  # a younger one was made after the names had been read
                restored.append(document)
        return restored

    async def _lost(self, inventory: _Inventory) -> list[str]:
        """Ids of documents that are searchable although their record is gone. Each is asked for again: it may be new."""
        suspects = sorted(inventory.visible - inventory.documents.keys())
        return [
            document_id for tenant_id, document_id in suspects if not await self._documents.get(tenant_id, document_id)
        ]

    async def _drop_claims(self, inventory: _Inventory, before: datetime) -> None:
        """Frees names that lead nowhere, in this round and in the one before."""
        known = inventory.documents.keys() | inventory.visible
        orphaned = {
            claim
            for claim in inventory.claims
            if (claim.tenant_id, claim.document_id) not in known and claim.claimed_at < before
        }
        for claim in sorted(orphaned & self._orphaned, key=lambda claim: claim.place):
            await self._documents.drop_claim(claim)
        self._orphaned = orphaned

    async def _fileless(self, inventory: _Inventory) -> list[Document]:
        """Documents whose file is gone. Each is looked at again: it may have been replaced or deleted since its record was read."""
        stored_files = {(file.tenant_id, file.sha256) for file in inventory.files}
        found = []
        for document in inventory.living():
            if _files_of(document) <= stored_files:
                continue
            stored = await self._documents.get(document.tenant_id, document.document_id)
            if stored and stored.document.status is not Status.DELETED and await self._lacks_file(stored.document):
                found.append(stored.document)
        return found

    async def _lacks_file(self, document: Document) -> bool:
        return not all([await self._files.exists(*file) for file in _files_of(document)])

    async def _remove(self, unused: Sequence[StoredFile], before: datetime) -> None:
        """Removes files that no document uses, and what is left of others."""
        for file in unused:
            await self._release(file)
        if remains := await self._files.collect_remains(before):
            _log.info("remains_collected", files=remains)

    async def _release(self, file: StoredFile) -> None:
        with use_principal(Principal(file.tenant_id, _SUBJECT)):
            await self._deletion.release_file(file.tenant_id, file.sha256)
        _log.info("unused_file_released", sha256=file.sha256)


def _unused(inventory: _Inventory, before: datetime) -> list[StoredFile]:
    used = {file for document in inventory.living() for file in _files_of(document)}
    return [file for file in inventory.files if (file.tenant_id, file.sha256) not in used and file.stored_at < before]


def _files_of(document: Document) -> set[_Key]:
    return {(document.tenant_id, sha256) for sha256 in files_of(document)}
