"""What the records say and what names, files and indexes say, reported to operators wherever the two differ.

A cluster has no ledger that knows what was stored: a loss shows only in what remains. What can be made again is, by the reconciler,
the collector and the sweep. What cannot stays, for as long as it is so, in the store's condition, which /readyz and
`groundwork doctor` show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kit.jetstream.condition import Finding
from services.ingest.documents.models import Document
from services.ingest.metrics import Metrics
from services.ingest.ports import Condition
from services.ingest.state import DOCUMENTS, FILES, NAMES

SOURCE, REPAIRS = "upkeep", "upkeep-repairs"
"""In the store's condition: how it is, which may mend, and what happened, which stays until a person has seen it."""
EXAMPLES_MAX = 20
_AGAIN = "Upload these documents again, or restore a backup"


class Kind(StrEnum):
    """What can differ."""

    RECORDS_MISSING = "records_missing"
    RECORDS_UNREADABLE = "records_unreadable"
    FILES_MISSING = "files_missing"
    FILES_UNUSED = "files_unused"
    NAMES_MISSING = "names_missing"
    NOT_SEARCHABLE = "not_searchable"
    """Said by the retriever already, with the engine that lacks it; made again."""


_SAID = {
    Kind.RECORDS_MISSING: (
        DOCUMENTS.name,
        "{} documents are found by searches and have no record any more: they cannot be listed, read or deleted",
        _AGAIN,
    ),
    Kind.RECORDS_UNREADABLE: (
        DOCUMENTS.name,
        "{} records cannot be read; until they can, nothing that looks left over is removed",
        "See record_unreadable in the log of the ingest worker. If a newer version wrote them, use that; else restore a backup",
    ),
    Kind.FILES_MISSING: (
        FILES.name,
        "The files of {} documents are gone or incomplete: these cannot be downloaded or indexed again",
        _AGAIN,
    ),
    Kind.FILES_UNUSED: (
        FILES.name,
        "{} stored files belong to no document: so many look like lost records, and are kept",
        "Restore a backup, or upload what you miss again",
    ),
    Kind.NAMES_MISSING: (NAMES.name, "{0} documents had lost their names; {0} were put right", ""),
}


@dataclass(frozen=True)
class Disagreement:
    """One kind of difference, as it was found."""

    kind: Kind
    count: int
    examples: Sequence[str] = ()
    """Documents by collection, name and id as far as these are known."""


class Agreement:
    """Tells what was compared: in a metric, in the log, in the store's condition."""

    def __init__(self, condition: Condition, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._condition = condition
        self._metrics = metrics
        self._now = now

    async def tell(self, found: Sequence[Disagreement]) -> None:
        """Reports all that a comparison found, but not what another part has reported already, such as the ledger of a single
        machine."""
        counts = {each.kind: each.count for each in found}
        for kind in _SAID:
            self.count(kind, counts.get(kind, 0))
        reported = {finding.kind for finding in await self._condition.findings(besides=SOURCE)}
        lasting = [each for each in found if each.count and each.kind is not Kind.NAMES_MISSING]
        await self._condition.set(SOURCE, [self._finding(each) for each in lasting if each.kind.value not in reported])
        repaired = [each for each in found if each.count and each.kind is Kind.NAMES_MISSING]
        await self._condition.add(REPAIRS, [self._finding(each, repaired=each.count) for each in repaired])

    def count(self, kind: Kind, count: int) -> None:
        """How many differ now."""
        self._metrics.disagreements.labels(kind.value).set(count)

    def leave(self) -> None:
        """From now on another worker compares, and tells."""
        for kind in Kind:
            self.count(kind, 0)

    def _finding(self, found: Disagreement, *, repaired: int = 0) -> Finding:
        where, detail, advice = _SAID[found.kind]
        return Finding(
            kind=found.kind.value,
            where=where,
            count=found.count,
            repaired=repaired,
            detail=detail.format(found.count),
            advice=advice,
            examples=tuple(found.examples[:EXAMPLES_MAX]),
            found_at=self._now().isoformat(),
        )


def label(document: Document) -> str:
    """How an operator knows a document."""
    return f"{document.collection_id}/{document.name} ({document.document_id})"
