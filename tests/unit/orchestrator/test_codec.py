from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import state_pb2

from services.orchestrator.adapters.codec import enum_from_number, event_for_client, event_from_bytes, event_to_proto
from services.orchestrator.log import events
from services.orchestrator.log.events import (
    AgentChosen,
    Answer,
    Approval,
    ApprovalDecision,
    BoundingBox,
    Budgets,
    Citation,
    Degradation,
    Done,
    EffectClass,
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
    StepPhase,
    StepState,
    StepUsage,
    SupportStatus,
    Thinking,
    Token,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    Verification,
)

BOX = BoundingBox(1, 0.0, 1.0, 2.0, 3.0)
PAYLOADS: list[Payload] = [
    RunStarted(RunMode.GROUNDED, "q", "t", ("a", "b"), Budgets(1.5, 10, 3, 4, 5, 6, 0.25), "m"),
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
    Usage(1, 2, 0.5, 0.25, {"a": 0.5}, "m", (StepUsage("a", 0.5, 1, 2, 0.25, "m"),), 0.25, 3),
    Done(RunStatus.REFUSED),
    ToolCall("r/a", "search", {"q": "x", "deep": {"list": [1.0, None]}}),
    ToolResult("r/a", ok=False, summary="s", duration_s=0.001, error_reason="IN_DOUBT"),
    Approval(
        "a", "mail", {"to": "x"}, "ab", ("ann",), datetime(2026, 1, 2, tzinfo=UTC), ApprovalDecision.DENIED, "ann"
    ),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: type(payload).__name__)
def test_event_survives_the_wire(payload: Payload) -> None:
    event = RunEvent("r", 7, datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC), payload)
    assert event_from_bytes(event_to_proto(event).SerializeToString()) == event


STATES = [
    None,
    StepState(),
    StepState(StepPhase.RESULT, b"{}", 1.5, StepUsage("plan", 0.5, 1, 2, 0.25, "m")),
    StepState(StepPhase.INTENT, effect=EffectClass.ONCE, arguments_hash="ab"),
]


@pytest.mark.parametrize("state", STATES)
def test_step_and_state_survive_the_log_and_only_the_step_is_for_clients(state: StepState | None) -> None:
    event = RunEvent("r", 1, datetime(2026, 1, 2, tzinfo=UTC), Plan("hybrid", ("x",)), "plan", state)
    read_again = event_from_bytes(event_to_proto(event).SerializeToString())
    assert (read_again, read_again.step, read_again.state) == (event, "plan", state)
    for each in (event, read_again):
        assert (event_for_client(each).step, event_for_client(each).state) == ("plan", b"")


def test_vocabulary_is_the_contracts() -> None:
    """One source: each payload has a dataclass of its message's name, with its fields and no others."""
    payloads = pb.RunEvent.DESCRIPTOR.oneofs_by_name["payload"].fields
    messages = {payload.message_type.name: payload.message_type for payload in payloads if payload.message_type}
    assert set(messages) == {kind.__name__ for kind in Payload.__subclasses__()} - {"Unknown"}
    for name in ("Budgets", "StepUsage", "Evidence", "Citation", "SentenceVerdict"):
        messages[name] = pb.DESCRIPTOR.message_types_by_name[name]
    messages["StepState"] = state_pb2.StepState.DESCRIPTOR
    for name, message in messages.items():
        durations = {field.name for field in message.fields if _is_duration(field)}
        expected = {f"{field.name}_s" if field.name in durations else field.name for field in message.fields}
        assert {field.name for field in fields(getattr(events, name))} == expected, name


def _is_duration(field: Any) -> bool:
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration"


UNKNOWN_KIND = b"\xfa\x3f\x02hi"
"""Field 1023, as a newer version might have it."""


@pytest.mark.parametrize(
    ("newer", "payload"),
    [
        (pb.RunEvent(run_id="r", seq=3).SerializeToString() + UNKNOWN_KIND, Unknown()),
        (
            pb.RunEvent(run_id="r", seq=3, token=pb.Token(text="hi")).SerializeToString() + UNKNOWN_KIND,
            Token("hi", 0),
        ),
        (pb.RunEvent(run_id="r", seq=3, done=pb.Done(status=99)).SerializeToString(), Done(RunStatus.UNKNOWN)),  # type: ignore[arg-type]
    ],
    ids=["kind", "field", "status"],
)
def test_event_of_a_newer_version_is_passed_on_as_it_was_stored(newer: bytes, payload: Payload) -> None:
    event = event_from_bytes(newer)
    assert (event.seq, event.payload) == (3, payload)
    assert event_to_proto(event).SerializeToString() == newer


@pytest.mark.parametrize("torn", [b"\xff\xff", b"\x0a\x7fcut off", b"\x12"])
def test_torn_event_is_told_by_an_error_of_the_decoder(torn: bytes) -> None:
    with pytest.raises(DecodeError):
        event_from_bytes(torn)


def test_number_without_a_member_is_unknown() -> None:
    for number in (0, 99):
        assert enum_from_number(pb.RunMode.DESCRIPTOR, number, RunMode) is RunMode.UNKNOWN


@pytest.mark.parametrize(
    ("kind", "descriptor"),
    [
        (RunMode, pb.RunMode),
        (RunStatus, pb.RunStatus),
        (SupportStatus, pb.SupportStatus),
        (ApprovalDecision, pb.ApprovalDecision),
        (StepPhase, state_pb2.StepPhase),
        (EffectClass, state_pb2.EffectClass),
    ],
)
def test_enums_have_the_members_of_the_contract(kind: type[Enum], descriptor: Any) -> None:
    prefix = descriptor.DESCRIPTOR.values[0].name.removesuffix("UNSPECIFIED")
    assert {f"{prefix}{member.name}" for member in kind} == set(descriptor.keys()) - {f"{prefix}UNSPECIFIED"}
