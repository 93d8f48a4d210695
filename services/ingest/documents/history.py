"""The revisions of a document that stay known after their making has ended: which file, when, by whom, and what became of them."""

from datetime import datetime

from services.ingest.documents.models import Document, Failure, PastRevision, Report, Revision, RevisionPhase

MAX_PAST = 20
"""Revisions that a record remembers. All records of a tenant are read for a list, so they stay small."""

History = tuple[PastRevision, ...]


def with_active(document: Document, now: datetime, report: Report) -> History:
    """The history once the pending revision is searchable."""
    if document.pending is None:
        return document.history
    past = PastRevision(document.pending, RevisionPhase.ACTIVE, now, report.page_count, report.chunk_count)
    return _with(document, past)


def with_failed(document: Document, now: datetime, failure: Failure) -> History:
    """The history once the pending revision was given up."""
    if document.pending is None:
        return document.history
    return _with(document, PastRevision(document.pending, RevisionPhase.FAILED, now, error=failure))


def with_superseded(document: Document, now: datetime) -> History:
    """The history once another revision takes the place of the pending one, if there is a pending one."""
    if document.pending is None:
        return document.history
    return _with(document, PastRevision(document.pending, RevisionPhase.SUPERSEDED, now))


def list_revisions(document: Document) -> list[PastRevision]:
    """All known revisions of a document, newest first. One is pending, or one is active, or both."""
    listed = {past.revision.revision_id: _shown(document, past) for past in document.history}
    for revision, state in ((document.active, RevisionPhase.ACTIVE), (document.pending, RevisionPhase.PENDING)):
        if revision is not None and revision.revision_id not in listed:
            listed[revision.revision_id] = _unrecorded(document, revision, state)
    return sorted(listed.values(), key=lambda each: each.revision.number, reverse=True)


def _with(document: Document, past: PastRevision) -> History:
    return (*document.history, past)[-MAX_PAST:]


def _shown(document: Document, past: PastRevision) -> PastRevision:
    is_active = document.active is not None and past.revision.revision_id == document.active.revision_id
    if past.state != RevisionPhase.ACTIVE or is_active:
        return past
    return PastRevision(
        past.revision, RevisionPhase.REPLACED, past.ended_at, past.page_count, past.chunk_count, past.error
    )


def _unrecorded(document: Document, revision: Revision, state: RevisionPhase) -> PastRevision:
    """A revision that is being made, or that an earlier version of the service made searchable. While no other is being made, the
    document's report is its report."""
    report = document.report if state is RevisionPhase.ACTIVE and document.pending is None else None
    if report is None:
        return PastRevision(revision, state)
    return PastRevision(revision, state, None, report.page_count, report.chunk_count)
