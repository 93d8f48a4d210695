"""Removes what interrupted uploads and deletions left in the store: names that lead nowhere, files that no document uses, pieces of
files. All of it is rare, and nobody sees it; so wherever something looks lost rather than left over, nothing is removed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from kit.principal import Principal, use_principal
from services.ingest.documents import naming
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.file_users import files_of
from services.ingest.documents.life import TOMBSTONE_LIFE
from services.ingest.documents.models import Document, NameClaim, Status, StoredFile
from services.ingest.ports import DocumentStore, FileStore, SearchIndex
from services.ingest.work.models import RevisionState

_log = structlog.get_logger()
_SUBJECT = "ingest-collector"
_BATCH = 100

FEW_FILES = 20
"""So many files without a document are left over from uploads. More of them, and a tenth of all files, look like lost records."""


@dataclass
class _Inventory:
    """What the store holds, by tenant and id or hash."""

    documents: dict[tuple[str, str], Document] = field(default_factory=dict)
    """Tombstones too."""
    used_files: set[tuple[str, str]] = field(default_factory=set)
    claims: list[NameClaim] = field(default_factory=list)


class Collector:
    """Goes through names and files of all tenants."""

    def __init__(
        self,
        documents: DocumentStore,
        files: FileStore,
        index: SearchIndex,
        deletion: Deletion,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._files = files
        self._index = index
        self._deletion = deletion
        self._now = now

    async def collect(self) -> None:
        """One round. Raises Unavailable rather than guess."""
        before = self._now() - TOMBSTONE_LIFE  # whatever is under way is younger
        inventory = await self._inventory()
        if self._documents.unreadable:
            _log.warning("nothing_collected", unreadable_records=self._documents.unreadable)
            return
        await self._restore_claims(inventory)
        orphaned = [claim for claim in inventory.claims if _is_orphaned(claim, inventory) and claim.claimed_at < before]
        lost = await self._drop_claims(orphaned)
        if lost:
            _log.error("records_lost", count=len(lost), document_ids=lost[:_BATCH])
        elif await self._release_files(inventory, before):
            remains = await self._files.collect_remains(before)
            if remains:
                _log.info("remains_collected", files=remains)

    async def _inventory(self) -> _Inventory:
        """Claims first: a document that is made meanwhile is then seen with its record, if at all."""
        inventory = _Inventory()
        inventory.claims = [claim async for claim in self._documents.claims()]
        async for stored in self._documents.all_of("*"):
            document = stored.document
            inventory.documents[document.tenant_id, document.document_id] = document
            if document.status is not Status.DELETED:
                inventory.used_files |= {(document.tenant_id, sha256) for sha256 in files_of(document)}
        return inventory

    async def _restore_claims(self, inventory: _Inventory) -> None:
        """A document whose name was lost would not be found by the next upload of that name."""
        claimed = {(claim.tenant_id, claim.document_id) for claim in inventory.claims}
        for key, document in inventory.documents.items():
            if key in claimed or document.status is Status.DELETED:
                continue
            place = (document.tenant_id, document.collection_id, document.name)
            if await self._documents.claim_name(*place, document.document_id) != document.document_id:
                _log.error("document_without_its_name", document_id=document.document_id)

    async def _drop_claims(self, orphaned: Sequence[NameClaim]) -> list[str]:
        """Frees names that lead nowhere. Returns the ids of documents that are searchable although their record is gone."""
        lost = []
        for tenant_id, theirs in _by_tenant(orphaned).items():
            with use_principal(Principal(tenant_id, _SUBJECT)):
                for start in range(0, len(theirs), _BATCH):
                    batch = theirs[start : start + _BATCH]
                    visible = await self._visible({claim.document_id for claim in batch})
                    lost += sorted(visible)
                    for claim in batch:
                        if claim.document_id not in visible:
                            await self._documents.drop_claim(claim)
        return lost

    async def _visible(self, document_ids: Iterable[str]) -> set[str]:
        """Those of the documents that the index shows."""
        asked = sorted(filter(naming.is_document_id, document_ids))
        checks = await self._index.check([(document_id, document_id) for document_id in asked]) if asked else []
        return {
            document_id
            for document_id, check in zip(asked, checks, strict=True)
            if check.state is not RevisionState.DELETED and check.active_number
        }

    async def _release_files(self, inventory: _Inventory, before: datetime) -> bool:
        """Removes files that no document uses. False when the store looks damaged instead."""
        files = [file async for file in self._files.all()]
        missing = inventory.used_files - {(file.tenant_id, file.sha256) for file in files}
        unused = [
            file
            for file in files
            if (file.tenant_id, file.sha256) not in inventory.used_files and file.stored_at < before
        ]
        if missing or len(unused) > max(FEW_FILES, len(files) // 10):
            _log.error("files_not_collected", files=len(files), missing=len(missing), unused=len(unused))
            return False
        for file in unused:
            await self._release(file)
        return True

    async def _release(self, file: StoredFile) -> None:
        with use_principal(Principal(file.tenant_id, _SUBJECT)):
            await self._deletion.release_file(file.tenant_id, file.sha256)
        _log.info("unused_file_released", sha256=file.sha256)


def _is_orphaned(claim: NameClaim, inventory: _Inventory) -> bool:
    return (claim.tenant_id, claim.document_id) not in inventory.documents


def _by_tenant(claims: Sequence[NameClaim]) -> Mapping[str, list[NameClaim]]:
    grouped = defaultdict(list)
    for claim in claims:
        grouped[claim.tenant_id].append(claim)
    return grouped
