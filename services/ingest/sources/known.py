"""Which files of sources there are documents of. The records of documents are the truth; all are read once, then only changes."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from services.ingest.documents.changes import Changes
from services.ingest.documents.models import Document, Origin, Status, StoredDocument
from services.ingest.ports import DocumentStore


@dataclass(frozen=True)
class KnownFile:
    """A file of a source that has a document."""

    document_id: str
    name: str
    version: str
    sha256: str
    is_pending: bool
    """Whether it is being indexed."""
    is_rejected: bool
    """Whether it could not be read."""


class KnownFiles:
    """Those of all tenants' sources, in memory: some 300 bytes a file."""

    def __init__(self, documents: DocumentStore, now: Callable[[], datetime]) -> None:
        """`now`: the time of day."""
        self._changes = Changes(documents, self._forget, now)
        self._origins: dict[tuple[str, str], Origin] = {}
        """By tenant and document."""
        self._files: dict[tuple[str, str], dict[str, KnownFile]] = defaultdict(dict)
        """By tenant and source, then key."""
        self._reading = asyncio.Lock()

    async def of(self, place: tuple[str, str]) -> dict[str, KnownFile]:
        """By key, by every record written before this call."""
        async with self._reading:
            async for stored in self._changes.read():
                self._note(stored)
            return dict(self._files.get(place, {}))

    def _forget(self) -> None:
        self._origins.clear()
        self._files.clear()

    def _note(self, stored: StoredDocument) -> None:
        document = stored.document
        known_as = (document.tenant_id, document.document_id)
        if (before := self._origins.pop(known_as, None)) is not None:
            files = self._files[document.tenant_id, before.source_id]
            if before.key in files and files[before.key].document_id == document.document_id:
                del files[before.key]
        if (origin := document.origin) is not None and document.status is not Status.DELETED:
            self._origins[known_as] = origin
            self._files[document.tenant_id, origin.source_id][origin.key] = _known(document, origin)


def _known(document: Document, origin: Origin) -> KnownFile:
    is_pending = document.pending is not None
    is_rejected = document.error is not None and not is_pending
    return KnownFile(
        document.document_id, document.name, origin.version, document.content.sha256, is_pending, is_rejected
    )
