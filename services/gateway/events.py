"""A run's events, from the contract's messages to what a client reads. Every payload of the contract is covered by
construction: the event's kind is the name of the payload that is set."""

from typing import Any

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.encoding import encode, enum_number
from services.gateway.errors import UnknownMode
from services.gateway.models import BroughtModel, Budgets, Json, RunEvent, RunRequest


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


def start_request(request: RunRequest) -> pb.StartRunRequest:
    """The contract's message for a question. Raises UnknownMode."""
    brought = request.brought_model
    return pb.StartRunRequest(
        mode=_mode(request.mode),
        question=request.question,
        collection_ids=request.collection_ids,
        thread_id=request.thread_id,
        agent=request.agent,
        document_ids=request.document_ids,
        top_k=request.top_k,
        idempotency_key=request.idempotency_key,
        budgets=_budgets(request.budgets),
        model_credentials=_credentials(brought) if brought else None,
        tools=None if request.tools is None else pb.ToolSelection(names=request.tools),
        memory=request.memory,
    )


def _mode(name: str) -> Any:
    try:
        return enum_number(pb.RunMode.DESCRIPTOR, name)
    except KeyError:
        raise UnknownMode(
            f"mode {name!r} does not exist; the modes are listed at GET /v1/agents", field="mode"
        ) from None


def _credentials(model: BroughtModel) -> pb.ModelCredentials:
    return pb.ModelCredentials(
        base_url=model.base_url,
        api_key=model.api_key.get_secret_value(),
        model=model.model,
        preset=model.preset,
    )


def _budgets(asked: Budgets) -> pb.Budgets | None:
    if asked == Budgets():
        return None
    budgets = pb.Budgets(
        answer_tokens=asked.answer_tokens,
        tokens=asked.tokens,
        cost_usd=asked.cost_usd,
        reasoning_steps=asked.reasoning_steps,
        tool_calls=asked.tool_calls,
        parallel_calls=asked.parallel_calls,
    )
    budgets.wall_clock.FromMilliseconds(round(asked.wall_clock_s * 1000))
    return budgets


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
