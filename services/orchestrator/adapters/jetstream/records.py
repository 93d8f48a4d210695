"""Records of runs as the bytes of a RunRecord message, and as the JSON that releases before it wrote."""

from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.orchestrator.v1 import orchestrator_pb2 as api
from groundwork.orchestrator.v1 import record_pb2 as pb

from services.orchestrator.adapters.codec import enum_from_number, enum_number, fill, read
from services.orchestrator.log.events import Answer, Approval, RunError, RunStatus, Usage
from services.orchestrator.models import Outcome, Reserved, RunKey, RunRecord, RunRequest

E = TypeVar("E", bound=Enum)
"""What runs of releases without scopes go on with: what any user could do then. A run that is started now has at least one, since
starting it needs one."""
_MAX_BYTES = 900_000
"""Of a record: the store takes messages of 1 MB, and the name and headers are part of that."""


def encode(record: RunRecord) -> bytes:
    message = pb.RunRecord(
        subject=record.subject,
        scopes=sorted(record.scopes),
        groups=sorted(record.groups),
        traceparent=record.traceparent,
        local_models_only=record.local_models_only,
    )
    message.request.SetInParent()
    fill(message.request, record.request)
    message.created_at.FromDatetime(record.created_at)
    set_status(message, record.status)
    for each in record.reserved:
        fill(message.reserved.add(), each)
    if record.finished_at is not None:
        set_end(message, record)
    return message.SerializeToString()


def decode(key: RunKey, data: bytes) -> RunRecord:
    """Raises one of UNREADABLE. What only a newer version knows becomes UNKNOWN."""
    message = parse(data)
    return RunRecord(
        key,
        message.subject,
        read(message.request, RunRequest),
        enum_from_number(api.RunStatus.DESCRIPTOR, message.status, RunStatus),
        message.created_at.ToDatetime(tzinfo=UTC),
        _moment(message, "finished_at"),
        _moment(message, "forgotten_at"),
        message.traceparent,
        frozenset(message.scopes),
        frozenset(message.groups),
        Outcome(_part(message, "answer", Answer), _part(message, "usage", Usage), _part(message, "error", RunError)),
        tuple(read(each, Approval) for each in message.pending),
        tuple(read(each, Reserved) for each in message.reserved),
        message.local_models_only,
    )


def parse(data: bytes) -> pb.RunRecord:
    """The message, with what a newer version put into it. Raises one of UNREADABLE."""
    try:
        message = pb.RunRecord.FromString(data)
    except DecodeError as error:
        raise ValueError("the bytes are no record") from error
    if not (message.HasField("request") and message.HasField("created_at") and message.subject):
        raise ValueError("the record lacks what every record has")
    return message


def set_end(message: pb.RunRecord, record: RunRecord) -> None:
    """Writes how the run ended; of one whose text was erased only that. An answer that does not fit is left out: the log has it."""
    set_status(message, record.status)
    message.ClearField("pending")
    assert record.finished_at is not None
    message.finished_at.FromDatetime(record.finished_at)
    for name in ("answer", "usage", "error"):
        part = getattr(record.outcome, name)
        if part is not None and not (message.HasField("forgotten_at") and name != "usage"):
            message.ClearField(name)
            getattr(message, name).SetInParent()
            fill(getattr(message, name), part)
    if message.ByteSize() > _MAX_BYTES:
        message.ClearField("answer")


def set_forgotten(message: pb.RunRecord, at: datetime) -> None:
    """Takes out what the run wrote; one that had not ended ends as cancelled. The question stays."""
    message.forgotten_at.FromDatetime(at)
    drop_outcome(message)
    if not message.HasField("finished_at"):
        message.finished_at.FromDatetime(at)
        set_status(message, RunStatus.CANCELLED)


def drop_outcome(message: pb.RunRecord) -> None:
    """Takes out what the run wrote and asks, and what was said before, which may repeat it. What it cost has no text."""
    drop_said_before(message)
    message.ClearField("answer")
    message.ClearField("error")
    message.ClearField("pending")


def drop_said_before(message: pb.RunRecord) -> None:
    """Takes out earlier answers, calls, and what these returned. The question stays."""
    message.request.ClearField("called")
    message.request.ClearField("history")


def set_going_on(message: pb.RunRecord, record: RunRecord) -> None:
    """Writes a status that is no end and what the run asks, unless the run has ended. Questions that do not fit are left out: the
    log has them."""
    if message.HasField("finished_at"):
        return
    set_status(message, record.status)
    message.ClearField("pending")
    for approval in record.pending:
        fill(message.pending.add(), approval)
    if message.ByteSize() > _MAX_BYTES:
        message.ClearField("pending")


def set_status(message: pb.RunRecord, status: RunStatus) -> None:
    message.status = enum_number(api.RunStatus.DESCRIPTOR, status)  # type: ignore[assignment]


def _part(message: pb.RunRecord, name: Any, kind: type) -> Any:
    return read(getattr(message, name), kind) if message.HasField(name) else None


def _moment(message: Message, name: str) -> datetime | None:
    if not message.HasField(name):
        return None
    at: Timestamp = getattr(message, name)
    return at.ToDatetime(tzinfo=UTC)
