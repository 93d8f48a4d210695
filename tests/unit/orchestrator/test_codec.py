from datetime import UTC, datetime

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.orchestrator.adapters.codec import event_from_proto, event_to_proto
from services.orchestrator.events import (
    AgentChosen,
    Answer,
    BoundingBox,
    Budgets,
    Citation,
    Degradation,
    Done,
    Evidence,
    Payload,
    Plan,
    Retrieval,
    RunError,
    RunEvent,
    RunMode,
    RunStarted,
    RunStatus,
    SentenceVerdict,
    SupportStatus,
    Thinking,
    Token,
    Usage,
    Verification,
)

BOX = BoundingBox(1, 0.0, 1.0, 2.0, 3.0)
PAYLOADS: list[Payload] = [
    RunStarted(RunMode.GROUNDED, "q", "t", ("a", "b"), Budgets(1.5, 10), "m"),
    AgentChosen("reasoning", "default"),
    Thinking("route", "x"),
    Thinking("route", "x", Degradation("llm", "LLM_TIMEOUT", "slow")),
    Plan("hybrid", ("one", "two")),
    Retrieval(
        (Evidence(1, "c", "d", "n", "t", 2, ("h",), 0.5, None, 1, 2, (BOX,), "default"),), (), {"total": 1.5}, "hybrid"
    ),
    Retrieval((Evidence(1, "c", "d", "n", "t", dense_score=0.0),)),
    Token("text", 4),
    Verification((SentenceVerdict("s", "supported", (1,), 0.5),), 1.0, 0.5, SupportStatus.PARTIAL),
    Answer("t", (Citation(1, "d", "n", "c", 0, "t", 1, 2, (BOX,), ("h",)),), SupportStatus.SUPPORTED, "model"),
    Answer("t", (), SupportStatus.UNAVAILABLE, "extractive", {"kind": "quiz"}),
    Usage(1, 2, 0.5, 0.25, {"answer": 0.5}, "m"),
    RunError("UNAVAILABLE", "R", "m", retryable=True),
    Done(RunStatus.REFUSED),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: type(payload).__name__)
def test_event_survives_the_wire(payload: Payload) -> None:
    event = RunEvent("r", 7, datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC), payload)
    message = pb.RunEvent.FromString(event_to_proto(event).SerializeToString())
    assert event_from_proto(message) == event


def test_event_of_a_newer_version_is_named() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        event_from_proto(pb.RunEvent(run_id="r", seq=1))
