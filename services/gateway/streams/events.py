"""A run's events, from the contract's messages to what a client reads. Every payload of the contract is covered by
construction: the event's kind is the name of the payload that is set."""

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.encoding import encode, enum_number
from services.gateway.errors import UnknownMode
from services.gateway.models import Json, RunEvent


def run_event(message: pb.RunEvent) -> RunEvent:
    """The event with its payload's fields beside run_id, seq and at."""
    kind = message.WhichOneof("payload") or "unknown"
    data = encode(message)
    del data["state"]  # the orchestrator's own; it keeps it to itself anyway
    payload = _public(kind, data.pop(kind, None) or {})
    return RunEvent(run_id=message.run_id, seq=message.seq, kind=kind, data={**data, **payload})


def _public(kind: str, payload: Json) -> Json:
    """The payload in its public shape, where that is not the contract's."""
    match kind:
        case "tool" | "approval":
            return {**payload, "arguments": payload["arguments"] or {}}
        case "tool_result":
            reason, message = payload.pop("error_reason"), payload.pop("error_message")
            seconds = payload.pop("duration_s")
            return {
                **payload,
                "duration_ms": None if seconds is None else round(seconds * 1000, 1),
                "error": {"reason": reason, "message": message} if reason or not payload["ok"] else None,
            }
        case _:
            return payload


def run_mode(name: str) -> pb.RunMode.ValueType:
    """The mode of that name. Raises UnknownMode."""
    try:
        return pb.RunMode.ValueType(enum_number(pb.RunMode.DESCRIPTOR, name))
    except KeyError:
        raise UnknownMode(
            f"mode {name!r} does not exist; the modes are listed at GET /v1/agents", field="mode"
        ) from None


def interrupted(run_id: str, after_seq: int, message: str) -> Json:
    """Data of the `error` event that the gateway adds when it has lost a run's stream. It is no entry of the log: no seq."""
    return {
        "run_id": run_id,
        "code": "UNAVAILABLE",
        "reason": "STREAM_INTERRUPTED",
        "message": message,
        "retryable": True,
        "resume": f"/v1/runs/{run_id}/events?after={after_seq}",
    }
