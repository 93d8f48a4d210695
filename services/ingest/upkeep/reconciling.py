"""Finds documents that are said to be searchable and are not: the index was removed or restored, or a power cut took back its last
seconds. They are made again from the stored file; what the index still has of them is not embedded again."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.models import Status
from services.ingest.documents.revising import Reviser
from services.ingest.errors import DocumentNotFound
from services.ingest.ports import DocumentStore, SearchIndex
from services.ingest.upkeep.agreement import Agreement, Kind
from services.ingest.upkeep.collecting import Collector
from services.ingest.work.models import RevisionState

_log = structlog.get_logger()
_SUBJECT = "ingest-reconciler"

FIRST_AFTER_S = 60.0
"""Seconds before the first round, so that a start is not slowed by it."""

_BATCH = 100
_PAUSE_S = 0.2
"""Between two batches, so that searches do not notice: a batch costs the engines some 50 ms."""

_QUIET_S = 60.0
"""A document that changed this recently may be ahead of what a retriever knows."""


@dataclass(frozen=True)
class _Expected:
    """What a record says: this revision of this document is searchable."""

    document_id: str
    revision_id: str


class Reconciler:
    """Compares all records with the indexes."""

    def __init__(
        self,
        documents: DocumentStore,
        index: SearchIndex,
        reviser: Reviser,
        deletion: Deletion,
        now: Callable[[], datetime],
        collector: Collector,
        agreement: Agreement,
        *,
        interval_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._documents = documents
        self._index = index
        self._reviser = reviser
        self._deletion = deletion
        self._now = now
        self._collector = collector
        self._agreement = agreement
        self._interval_s = interval_s
        self._quiet = timedelta(seconds=min(_QUIET_S, interval_s))
        self._sleep = sleep

    async def run(self) -> None:
        """A round every interval until cancelled. One that fails is logged; the next begins anew."""
        await self._sleep(min(FIRST_AFTER_S, self._interval_s))
        try:
            while True:
                for duty in (self.reconcile, self._collector.collect):
                    try:
                        await duty()
                    except GroundworkError as error:
                        _log.warning("reconcile_failed", reason=error.reason, error=error.message)
                await self._sleep(self._interval_s)
        finally:
            self._agreement.leave()

    async def reconcile(self) -> int:
        """One round over all tenants; returns how many documents had to be repaired. Raises Unavailable rather than guess."""
        expected: dict[str, list[_Expected]] = defaultdict(list)
        now = self._now()
        async for stored in self._documents.all_of("*"):
            document = stored.document
            searchable = document.status is Status.READY and document.active and not document.pending
            if searchable and document.active and abs(now - document.updated_at) > self._quiet:
                expected[document.tenant_id].append(_Expected(document.document_id, document.active.revision_id))
        repaired = 0
        for tenant_id, theirs in expected.items():
            with use_principal(Principal(tenant_id, _SUBJECT)):
                for start in range(0, len(theirs), _BATCH):
                    repaired += await self._check(tenant_id, theirs[start : start + _BATCH])
                    await self._sleep(_PAUSE_S)
        self._agreement.count(Kind.NOT_SEARCHABLE, repaired)
        return repaired

    async def _check(self, tenant_id: str, expected: Sequence[_Expected]) -> int:
        found = await self._index.check([(each.document_id, each.revision_id) for each in expected])
        repaired = 0
        for each, check in zip(expected, found, strict=True):
            if check.state is RevisionState.ACTIVE:
                continue
            repaired += 1
            _log.warning(
                "document_not_searchable", tenant_id=tenant_id, document_id=each.document_id, state=check.state.value
            )
            try:
                if (
                    check.state is RevisionState.DELETED
                ):  # the index hears of a deletion after the record: that got lost
                    await self._deletion.delete(tenant_id, each.document_id)
                else:
                    await self._reviser.repair(tenant_id, each.document_id, each.revision_id, check.active_number)
            except DocumentNotFound:
                continue
        return repaired
