"""Reads stored files, some every hour, and compares them with their hash: a bit that flipped on the disk is found while a backup or
the sender still has the file, not when it is needed. Records and indexes are compared elsewhere; jobs by the sweep."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

import structlog

from kit.errors import DataLoss, GroundworkError
from kit.jetstream.condition import Finding
from services.ingest.documents.deletion import file_lease
from services.ingest.documents.file_users import files_of
from services.ingest.documents.models import Document, Status
from services.ingest.ports import Condition, DocumentStore, FileStore, Leases
from services.ingest.spool import Spool
from services.ingest.state import FILES
from services.ingest.upkeep.agreement import EXAMPLES_MAX, label

_log = structlog.get_logger()

SOURCE = "scrub"
"""Of these findings, in the store's condition."""
_PAUSE_S = 0.05
"""Between two files, so that searches do not notice."""

_File = tuple[str, str]
"""Tenant and SHA-256."""


class Scrub:
    """Goes through all files of all tenants, in rounds."""

    def __init__(
        self,
        documents: DocumentStore,
        files: FileStore,
        leases: Leases,
        spool: Spool,
        condition: Condition,
        now: Callable[[], datetime],
        *,
        interval_s: float,
        bytes_a_round: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._documents = documents
        self._files = files
        self._leases = leases
        self._spool = spool
        self._condition = condition
        self._now = now
        self._interval_s = interval_s
        self._bytes_a_round = bytes_a_round
        self._sleep = sleep
        self._reached: _File = ("", "")
        self._damaged: set[_File] = set()

    async def run(self) -> None:
        """A round every interval until cancelled. One that fails is logged; the next goes on."""
        while True:
            await self._sleep(self._interval_s)
            try:
                await self.scrub()
            except GroundworkError as error:
                _log.warning("scrub_failed", reason=error.reason, error=error.message)

    async def scrub(self) -> None:
        """One round: files that were damaged are looked at again, then the next ones in order. Raises Unavailable."""
        users: dict[_File, Document] = {}
        async for stored in self._documents.all_of("*"):
            document = stored.document
            if document.status is not Status.DELETED:
                users |= {(document.tenant_id, sha256): document for sha256 in files_of(document)}
        for file in [*sorted(self._damaged & users.keys()), *self._next(users)]:
            await self._look(file)
            await self._sleep(_PAUSE_S)
        self._damaged &= users.keys()
        await self._tell([users[file] for file in sorted(self._damaged)])

    def _next(self, users: dict[_File, Document]) -> Iterable[_File]:
        """As many as a round reads, from where the last one stopped; from the beginning again after the last file."""
        in_order = sorted(users)
        ahead = [file for file in in_order if file > self._reached] or in_order
        left_bytes = self._bytes_a_round
        for file in ahead:
            if left_bytes <= 0:
                return
            left_bytes -= users[file].content.size_bytes
            self._reached = file
            yield file

    async def _look(self, file: _File) -> None:
        tenant_id, sha256 = file
        try:
            async with self._spool.file() as path:
                await self._files.get_to_file(tenant_id, sha256, path)
        except DataLoss:
            await self._confirm(file)
        else:
            self._damaged.discard(file)

    async def _confirm(self, file: _File) -> None:
        """Looks again where nobody stores or deletes it at the same time. What is left of a damaged file is removed: it is given to
        nobody, and as long as it is there the same upload would not be stored."""
        tenant_id, sha256 = file
        async with self._leases.hold(file_lease(tenant_id, sha256)) as lease:
            try:
                async with self._spool.file() as path:
                    await self._files.get_to_file(tenant_id, sha256, path)
            except DataLoss as error:
                if not await self._is_used(tenant_id, sha256):
                    return
                lease.check()
                await self._files.delete(tenant_id, sha256)
                if file not in self._damaged:
                    _log.error("stored_file_damaged", sha256=sha256, reason=error.reason)
                    self._damaged.add(file)

    async def _is_used(self, tenant_id: str, sha256: str) -> bool:
        """It may have been deleted with its document while it was read."""
        async for stored in self._documents.all_of(tenant_id):
            if stored.document.status is not Status.DELETED and sha256 in files_of(stored.document):
                return True
        return False

    async def _tell(self, documents: Sequence[Document]) -> None:
        if not documents:
            await self._condition.set(SOURCE, ())
            return
        finding = Finding(
            kind="files_damaged",
            where=FILES.name,
            count=len(documents),
            repaired=0,
            detail=f"The stored files of {len(documents)} documents are not what they were when they came, or are gone",
            advice="Upload these documents again, or restore a backup",
            examples=tuple(map(label, documents[:EXAMPLES_MAX])),
            found_at=self._now().isoformat(),
        )
        await self._condition.set(SOURCE, (finding,))
