"""Records as messages of the contract."""

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.ingest.v1 import ingest_pb2

from kit.access.principal import OPERATOR, Principal
from kit.limits.rules import Scope
from kit.stores.collections import Member, MemberKind, Role, Visibility, role_of
from kit.stores.document_access import DocumentAccess
from services.ingest.documents.access import access_list
from services.ingest.documents.listing import DocumentCounts
from services.ingest.documents.models import (
    Collection,
    DeadLetter,
    Document,
    Lane,
    PastRevision,
    Report,
    RevisionPhase,
    Status,
)
from services.ingest.documents.uploads.storage_limits import StorageState
from services.ingest.work.models import JobCounts, RequeueOutcome

_STATUS = {
    Status.QUEUED: ingest_pb2.DOCUMENT_STATUS_QUEUED,
    Status.PROCESSING: ingest_pb2.DOCUMENT_STATUS_PROCESSING,
    Status.READY: ingest_pb2.DOCUMENT_STATUS_READY,
    Status.FAILED: ingest_pb2.DOCUMENT_STATUS_FAILED,
    Status.DELETED: ingest_pb2.DOCUMENT_STATUS_DELETED,
    Status.UNKNOWN: ingest_pb2.DOCUMENT_STATUS_UNKNOWN,
    Status.KEPT: ingest_pb2.DOCUMENT_STATUS_KEPT,
}
_REVISION_STATE: dict[str, ingest_pb2.RevisionState.ValueType] = {
    RevisionPhase.PENDING: ingest_pb2.REVISION_STATE_PENDING,
    RevisionPhase.ACTIVE: ingest_pb2.REVISION_STATE_ACTIVE,
    RevisionPhase.REPLACED: ingest_pb2.REVISION_STATE_REPLACED,
    RevisionPhase.FAILED: ingest_pb2.REVISION_STATE_FAILED,
    RevisionPhase.SUPERSEDED: ingest_pb2.REVISION_STATE_SUPERSEDED,
}
OUTCOME = {
    RequeueOutcome.REQUEUED: ingest_pb2.REQUEUE_OUTCOME_REQUEUED,
    RequeueOutcome.ALREADY_REQUEUED: ingest_pb2.REQUEUE_OUTCOME_ALREADY_REQUEUED,
    RequeueOutcome.DOCUMENT_DELETED: ingest_pb2.REQUEUE_OUTCOME_DOCUMENT_DELETED,
    RequeueOutcome.SUPERSEDED: ingest_pb2.REQUEUE_OUTCOME_SUPERSEDED,
}
_VISIBILITY = {
    Visibility.PRIVATE: ingest_pb2.COLLECTION_VISIBILITY_PRIVATE,
    Visibility.TENANT: ingest_pb2.COLLECTION_VISIBILITY_TENANT,
}
_ROLE = {
    Role.VIEWER: ingest_pb2.COLLECTION_ROLE_VIEWER,
    Role.EDITOR: ingest_pb2.COLLECTION_ROLE_EDITOR,
    Role.OWNER: ingest_pb2.COLLECTION_ROLE_OWNER,
}
_MEMBER_KIND = {
    MemberKind.SUBJECT: ingest_pb2.COLLECTION_MEMBER_KIND_SUBJECT,
    MemberKind.GROUP: ingest_pb2.COLLECTION_MEMBER_KIND_GROUP,
}
ROLE_BY_NUMBER: dict[int, Role] = {int(number): word for word, number in _ROLE.items()}
MEMBER_KIND_BY_NUMBER: dict[int, MemberKind] = {int(number): word for word, number in _MEMBER_KIND.items()}
LANE_BY_NUMBER: dict[int, Lane] = {
    int(ingest_pb2.UPLOAD_LANE_INTERACTIVE): Lane.INTERACTIVE,
    int(ingest_pb2.UPLOAD_LANE_BULK): Lane.BULK,
}
VISIBILITY_BY_NUMBER: dict[int, Visibility] = {int(number): word for word, number in _VISIBILITY.items()}
STATUS_BY_NUMBER: dict[int, Status] = {int(number): status for status, number in _STATUS.items()}


def document_message(document: Document) -> ingest_pb2.Document:
    """A record as its tenant sees it."""
    processing = document.status is Status.PROCESSING
    return ingest_pb2.Document(
        document_id=document.document_id,
        collection_id=document.collection_id,
        name=document.name,
        media_type=document.content.media_type,
        size_bytes=document.content.size_bytes,
        sha256=document.content.sha256,
        status=_STATUS[document.status],
        stage=document.stage if processing else "",
        progress=_progress(document),
        error=ingest_pb2.DocumentError(reason=document.error.reason, message=document.error.message)
        if document.error
        else None,
        report=report_message(document.report, _of_upload(document)) if document.report else None,
        created_at=_timestamp(document.created_at),
        updated_at=_timestamp(document.updated_at),
        revision_id=document.active.revision_id if document.active else "",
        metadata=document.metadata,
        source=ingest_pb2.DocumentSource(source_id=document.origin.source_id, path=document.origin.key)
        if document.origin
        else None,
        copy_of=document.copy_of,
        copies=document.copies,
        batch=document.batch,
    )


def storage_limit_message(state: StorageState, caller: Principal) -> ingest_pb2.StorageLimit:
    """What a caller learns of a limit: how much all tenants store together is an operator's to know."""
    whose, limit = state.applied.whose, state.applied.limit
    message = ingest_pb2.StorageLimit(whose=whose.label, what=limit.what.value, amount=limit.amount)
    if whose.scope is not Scope.ALL or caller.may(OPERATOR):
        message.used = state.used
    return message


def revision_message(past: PastRevision) -> ingest_pb2.DocumentRevision:
    """A revision as its tenant sees it; in a state that is unknown here, that is unspecified."""
    revision = past.revision
    return ingest_pb2.DocumentRevision(
        revision_id=revision.revision_id,
        number=revision.number,
        state=_REVISION_STATE.get(past.state, ingest_pb2.REVISION_STATE_UNSPECIFIED),
        media_type=revision.content.media_type,
        size_bytes=revision.content.size_bytes,
        sha256=revision.content.sha256,
        queued_by=revision.by,
        queued_at=_timestamp(revision.queued_at) if revision.queued_at else None,
        ended_at=_timestamp(past.ended_at) if past.ended_at else None,
        page_count=past.page_count,
        chunk_count=past.chunk_count,
        error=ingest_pb2.DocumentError(reason=past.error.reason, message=past.error.message) if past.error else None,
    )


def _progress(document: Document) -> float:
    if document.status is Status.READY:
        return 1.0
    return document.progress if document.status is Status.PROCESSING else 0.0


def _of_upload(document: Document) -> tuple[str, ...]:
    return ("the scanner for viruses did not look into this file when it was uploaded",) if document.not_scanned else ()


def report_message(report: Report, more_warnings: tuple[str, ...] = ()) -> ingest_pb2.IngestReport:
    """A report, with its slowest stage named."""
    seconds = report.stage_seconds
    return ingest_pb2.IngestReport(
        page_count=report.page_count,
        chunk_count=report.chunk_count,
        token_count=report.token_count,
        embed_batch_count=report.embed_batch_count,
        stage_seconds=seconds,
        slowest_stage=max(seconds, key=lambda stage: seconds[stage]) if seconds else "",
        pages=[ingest_pb2.PageStatus(page=n, status=status) for n, status in enumerate(report.page_statuses, 1)],
        warnings=[*more_warnings, *report.warnings],
        attempts=report.attempts,
        chunker=report.chunker,
        reused_chunk_count=report.reused_chunk_count,
        languages=report.languages,
    )


def dead_letter_message(letter: DeadLetter) -> ingest_pb2.DeadLetter:
    """A dead letter as its tenant sees it."""
    return ingest_pb2.DeadLetter(
        dead_letter_id=letter.revision_id,
        document_id=letter.document_id,
        collection_id=letter.collection_id,
        document_name=letter.document_name,
        reason=letter.failure.reason,
        message=letter.failure.message,
        stage=letter.stage,
        failures=letter.failures,
        deaths=letter.deaths,
        first_failed_at=_timestamp(letter.first_failed_at),
        last_failed_at=_timestamp(letter.last_failed_at),
    )


def counts_message(counts: JobCounts) -> ingest_pb2.GetJobCountsResponse:
    """The work at a glance."""
    return ingest_pb2.GetJobCountsResponse(
        queued_count=counts.queued,
        processing_count=counts.processing,
        dead_letter_count=counts.dead_letters,
        oldest_queued_at=_timestamp(counts.oldest_queued_at) if counts.oldest_queued_at else None,
    )


def document_counts(counts: DocumentCounts) -> ingest_pb2.DocumentCounts:
    """How many documents there are."""
    return ingest_pb2.DocumentCounts(
        on_their_way=counts.on_their_way,
        ready=counts.ready,
        failed=counts.failed,
        total=counts.total,
        size_bytes=counts.size_bytes,
    )


def collection_message(
    collection: Collection, caller: Principal, counts: DocumentCounts | None = None
) -> ingest_pb2.Collection:
    """A collection as the caller sees it; the one that was never made has no date."""
    role = role_of(caller, collection.collection_id, collection)
    return ingest_pb2.Collection(
        collection_id=collection.collection_id,
        name=collection.name,
        created_at=_timestamp(collection.created_at) if collection.created_at else None,
        owner=collection.owner,
        visibility=_visibility(collection),
        role=_ROLE[role] if role else ingest_pb2.COLLECTION_ROLE_UNSPECIFIED,
        counts=document_counts(counts) if counts else None,
        memory=collection.memory,
        local_models_only=collection.local_models_only,
    )


def member_message(member: Member) -> ingest_pb2.CollectionMember:
    """A member; of a kind or role that is unknown here, that is unspecified."""
    message = ingest_pb2.CollectionMember(name=member.name)
    if member.kind in list(MemberKind):
        message.kind = _MEMBER_KIND[MemberKind(member.kind)]
    if member.role in list(Role):
        message.role = _ROLE[Role(member.role)]
    return message


def decode_member(message: ingest_pb2.CollectionMember) -> Member:
    """As it was asked for; an unknown kind or role is an empty word."""
    kind, role = MEMBER_KIND_BY_NUMBER.get(message.kind, ""), ROLE_BY_NUMBER.get(message.role, "")
    return Member(kind, message.name, role)


def access_message(access: DocumentAccess | None) -> ingest_pb2.DocumentAccess | None:
    """An access list; None where there is none."""
    if access is None:
        return None
    return ingest_pb2.DocumentAccess(subjects=sorted(access.subjects), groups=sorted(access.groups))


def decode_access(message: ingest_pb2.DocumentAccess, collection_id: str) -> DocumentAccess:
    """The list of a document of a collection. Raises BadAccess."""
    return access_list(collection_id, message.subjects, message.groups)


def _visibility(collection: Collection) -> ingest_pb2.CollectionVisibility.ValueType:
    if not collection.owner:
        return ingest_pb2.COLLECTION_VISIBILITY_TENANT
    if collection.visibility not in _VISIBILITY:
        return ingest_pb2.COLLECTION_VISIBILITY_UNSPECIFIED
    return _VISIBILITY[Visibility(collection.visibility)]


def _timestamp(moment: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(moment)
    return message
