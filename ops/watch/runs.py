"""What the watch over the store has to know of runs: whether their text is kept, and which of them no orchestrator would
go on with."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from groundwork.orchestrator.v1 import orchestrator_pb2 as api
from groundwork.orchestrator.v1 import record_pb2 as pb

_GOES_ON = {api.RUN_STATUS_RUNNING: False, api.RUN_STATUS_WAITING: True}
"""States of a run that has not ended, and whether it is parked in it."""


def says_text_is_kept(record: bytes) -> bool:
    """Whether a record of RUN_RECORDS can be read and says that the run's text was not erased."""
    message = _parsed(record)
    return message is not None and not message.HasField("forgotten_at")


def marker_for(record: bytes) -> bytes | None:
    """The marker (RUN_ACTIVE) by which an orchestrator finds the run of this record and goes on with it, a parked one once it is
    resumed. None of a run that has ended."""
    message = _parsed(record)
    if message is None or message.HasField("finished_at") or message.status not in _GOES_ON:
        return None
    # Begun: where its log is empty, it has been lost, and the run must not be done again.
    return pb.RunMarker(begun=True, parked=_GOES_ON[message.status]).SerializeToString()


def _parsed(record: bytes) -> pb.RunRecord | None:
    try:
        message = pb.RunRecord.FromString(record)
    except DecodeError:
        return None
    return message if message.HasField("created_at") else None
