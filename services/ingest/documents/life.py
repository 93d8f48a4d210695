"""A document's life in one table: its states, the moves between them, who makes each move and what the move requires.

Code that changes the status of a record does it through a function of this module, and writes the result with compare-and-set on
the version that it was made from: two who move the same record take turns, and the second one decides anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from services.ingest.documents import history
from services.ingest.documents.models import (
    Content,
    Document,
    Failure,
    IngestJob,
    Lane,
    Origin,
    Report,
    Revision,
    Status,
    StoredDocument,
    Tries,
)
from services.ingest.errors import IllegalMove, WrittenByNewerVersion

TOMBSTONE_LIFE = timedelta(hours=1)
"""How long a deleted document is remembered: longer than any upload, job or write that may still refer to it."""


class Move(StrEnum):
    """What can happen to a document."""

    CREATE = "create"
    KEEP = "keep"
    VOID = "void"
    REVISE = "revise"
    BEGIN = "begin"
    ADVANCE = "advance"
    HAND_BACK = "hand back"
    FINISH = "finish"
    FAIL = "fail"
    DELETE = "delete"
    SWEEP = "sweep"
    FORGET = "forget"


@dataclass(frozen=True)
class Arrow:
    """One line of the table. None stands for a document without a record."""

    origins: frozenset[Status | None]
    targets: frozenset[Status | None]
    made_by: str
    requires: str


def _arrow(origins: set[Status | None], targets: set[Status | None], made_by: str, requires: str) -> Arrow:
    return Arrow(frozenset(origins), frozenset(targets), made_by, requires)


_ON_ITS_WAY: set[Status | None] = {Status.QUEUED, Status.PROCESSING}
_ALIVE: set[Status | None] = {*_ON_ITS_WAY, Status.READY, Status.FAILED}
_STORED: set[Status | None] = {*_ALIVE, Status.KEPT}

LIFE: Mapping[Move, Arrow] = {
    Move.CREATE: _arrow(
        {None},
        {Status.QUEUED},
        "upload, sync of a source",
        "the file is stored under its lease, and the name was claimed for this fresh id",
    ),
    Move.KEEP: _arrow(
        {None},
        {Status.KEPT},
        "upload of a file that is not to be read yet",
        "as create; there is no revision and no job",
    ),
    Move.VOID: _arrow(
        {None},
        {Status.DELETED},
        "upload of a name whose claim has no record",
        "nothing: the id may have been another document's, or its upload died. A slow upload finds this tombstone where it "
        "wants to create its record, and takes a fresh id",
    ),
    Move.REVISE: _arrow(
        _STORED,
        {Status.QUEUED},
        "upload, sync of a source, reindex, dead letter queued again, reconciler, worker whose revision the index refuses",
        "the new revision's number is above every earlier one. A file that was kept is read from then on",
    ),
    Move.BEGIN: _arrow(
        _ON_ITS_WAY, {Status.PROCESSING}, "worker", "the document's lease; the job's revision is the pending one"
    ),
    Move.ADVANCE: _arrow(_ON_ITS_WAY, {Status.PROCESSING}, "worker", "as begin"),
    Move.HAND_BACK: _arrow(
        _ON_ITS_WAY, {Status.QUEUED}, "worker that stops, fails or waits", "as begin; the mark on the record is its own"
    ),
    Move.FINISH: _arrow(_ON_ITS_WAY, {Status.READY}, "worker", "as begin; the index has made the revision visible"),
    Move.FAIL: _arrow(
        _ON_ITS_WAY,
        {Status.FAILED, Status.READY},
        "worker",
        "as begin. READY, with the error told, where an earlier revision is still searchable",
    ),
    Move.DELETE: _arrow(
        {*_STORED, Status.UNKNOWN},
        {Status.DELETED},
        "deletion, emptying of a collection, sync of a source, upload whose collection was deleted meanwhile",
        "nothing: whatever is under way finds the tombstone and ends",
    ),
    Move.SWEEP: _arrow(
        {Status.DELETED}, {Status.DELETED}, "deletion, sweep", "the index has a tombstone, unused files are removed"
    ),
    Move.FORGET: _arrow(
        {Status.DELETED}, {None}, "sweep", "swept, older than TOMBSTONE_LIFE, and no name leads here any more"
    ),
}


def create(
    tenant_id: str,
    document_id: str,
    collection_id: str,
    name: str,
    content: Content,
    metadata: Mapping[str, str],
    revision_id: str,
    now: datetime,
    lane: Lane = Lane.INTERACTIVE,
    *,
    not_scanned: bool = False,
    origin: Origin | None = None,
    copy_of: str = "",
    batch: str = "",
    by: str = "",
    counted_for: tuple[str, ...] = (),
) -> Document:
    """A new document with its first revision to be made."""
    return Document(
        tenant_id,
        document_id,
        collection_id,
        name,
        created_at=now,
        updated_at=now,
        status=Status.QUEUED,
        content=content,
        revision_count=1,
        metadata=dict(metadata),
        pending=Revision(revision_id, 1, content, lane, by, now),
        not_scanned=not_scanned,
        origin=origin,
        copy_of=copy_of,
        batch=batch,
        counted_for=counted_for,
    )


def keep(created: Document) -> Document:
    """A document whose file is stored and not read, in the place of `created`."""
    return replace(created, status=Status.KEPT, revision_count=0, pending=None)


def void(created: Document) -> Document:
    """The tombstone of a document that was never made, in the place of `created`."""
    return replace(created, status=Status.DELETED, revision_count=0, pending=None, swept=True)


def holders_of(document: Document) -> tuple[str, ...]:
    """Document.counted_for; of a record of an earlier version the subject of its revision. Files of sources counted for nobody
    then."""
    revision = document.active or document.pending
    is_earlier = not document.counted_for and document.origin is None
    return (f"subject:{revision.by}",) if is_earlier and revision and revision.by else document.counted_for


def revise(
    document: Document,
    content: Content,
    revision_id: str,
    now: datetime,
    *,
    above: int = 0,
    metadata: Mapping[str, str] | None = None,
    lane: Lane = Lane.INTERACTIVE,
    not_scanned: bool | None = None,
    name: str = "",
    origin: Origin | None = None,
    by: str = "",
    counted_for: tuple[str, ...] = (),
) -> Document:
    """A new revision is to be made, numbered higher than all of the document's own and than `above`. What is not given stays."""
    number = max(document.revision_count, above) + 1
    return _moved(
        Move.REVISE,
        document,
        now,
        content=content,
        metadata=document.metadata if metadata is None else dict(metadata),
        revision_count=number,
        pending=Revision(revision_id, number, content, lane, by, now),
        history=history.with_superseded(document, now),
        not_scanned=document.not_scanned if not_scanned is None else not_scanned,
        name=name or document.name,
        origin=origin or document.origin,
        counted_for=counted_for or holders_of(document),
        status=Status.QUEUED,
        stage="",
        progress=0.0,
        error=None,
        tries=Tries(),
    )


def note_origin(document: Document, origin: Origin) -> Document:
    """The document's file was found as it is, in another version. This is no move."""
    return replace(document, origin=origin)


def note_access(document: Document, now: datetime) -> Document:
    """The same document after its access list has changed: who follows documents looks at it again."""
    return replace(document, updated_at=now)


def note_copies(document: Document, copies: Mapping[str, str]) -> Document:
    """The document's file was copied into a collection; all its copies, by collection. This is no move."""
    return replace(document, copies=dict(copies))


def note_batch(document: Document, batch: str) -> Document:
    """The document was copied once more, under another word. This is no move."""
    return replace(document, batch=batch)


def begin(document: Document, now: datetime, report: Report, tries: Tries) -> Document:
    """A worker has the document in hand."""
    changes = {"stage": "parse", "progress": 0.0, "error": None, "report": report, "tries": tries}
    return _moved(Move.BEGIN, document, now, status=Status.PROCESSING, **changes)


def advance(document: Document, now: datetime, stage: str, progress: float, report: Report | None = None) -> Document:
    """How far the worker has come. Its report is kept unless there is a new one."""
    changes = {"stage": stage, "progress": progress, "report": document.report if report is None else report}
    return _moved(Move.ADVANCE, document, now, status=Status.PROCESSING, **changes)


def hand_back(document: Document, now: datetime, stage: str, tries: Tries) -> Document:
    """The document waits for another try; `stage` is where the last one ended."""
    return _moved(Move.HAND_BACK, document, now, status=Status.QUEUED, stage=stage, progress=0.0, tries=tries)


def finish(document: Document, now: datetime, report: Report) -> Document:
    """The pending revision is searchable."""
    changes = {"active": document.pending, "pending": None, "error": None, "report": report, "tries": Tries()}
    past = history.with_active(document, now, report)
    return _moved(Move.FINISH, document, now, status=Status.READY, stage="", progress=1.0, history=past, **changes)


def fail(document: Document, now: datetime, failure: Failure) -> Document:
    """The pending revision cannot be made. A document that has an active one stays READY on it."""
    active = document.active
    return _moved(
        Move.FAIL,
        document,
        now,
        status=Status.READY if active else Status.FAILED,
        content=active.content if active else document.content,
        pending=None,
        stage="",
        progress=0.0,
        error=failure,
        tries=Tries(),
        history=history.with_failed(document, now, failure),
    )


def delete(document: Document, now: datetime) -> Document:
    """A tombstone. It names the files that the document had, until they are released."""
    return _moved(Move.DELETE, document, now, status=Status.DELETED, stage="", progress=0.0, error=None, history=())


def sweep(tombstone: Document) -> Document:
    """Nothing of the document is left. The date stays that of the deletion."""
    return _moved(Move.SWEEP, tombstone, tombstone.updated_at, swept=True)


def may_be_forgotten(tombstone: Document, now: datetime) -> bool:
    """Whether the record can go: nothing can refer to it any more."""
    is_tombstone = tombstone.status in LIFE[Move.FORGET].origins
    return is_tombstone and tombstone.swept and tombstone.updated_at < now - TOMBSTONE_LIFE


def is_current(stored: StoredDocument | None, job: IngestJob) -> bool:
    """Whether the job's revision is still to be made. Raises WrittenByNewerVersion where only a newer version can tell."""
    if stored is None or stored.document.status is Status.DELETED:
        return False
    pending = stored.document.pending
    is_pending = pending is not None and pending.revision_id == job.revision_id
    if stored.document.status is Status.UNKNOWN:
        raise _written_by_newer_version(stored.document)
    return is_pending


def job_of(document: Document) -> IngestJob:
    """The job that makes a document's pending revision."""
    assert document.pending is not None
    return IngestJob(document.tenant_id, document.document_id, document.pending.revision_id, document.pending.lane)


def _moved(move: Move, document: Document, now: datetime, **changes: Any) -> Document:
    arrow = LIFE[move]
    if document.status not in arrow.origins:
        if document.status is Status.UNKNOWN:
            raise _written_by_newer_version(document)
        raise IllegalMove(f"document {document.document_id} is {document.status}, from which it cannot {move}")
    newer_fields = {name: value for name, value in document.newer_fields.items() if name != "status"}
    moved = replace(document, updated_at=now, newer_fields=newer_fields, **changes)
    assert moved.status in arrow.targets
    return moved


def _written_by_newer_version(document: Document) -> WrittenByNewerVersion:
    return WrittenByNewerVersion(
        f"{document.name} is in the state {document.newer_fields.get('status')!r}, which a newer version of this service wrote; "
        "try again when all of its processes run that version"
    )
