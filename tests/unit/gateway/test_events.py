"""Every payload of the contract reaches clients, in the documented shape."""

import json
import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2

from scripts.gen_examples import page as with_examples
from services.gateway.encoding import encode, enum_number
from services.gateway.schemas.conversations.events import EVENT_MODELS
from services.gateway.schemas.conversations.runs import AskedBudgets, QaResponse, ToolBudgets
from services.gateway.streams.events import run_event
from tests.data.run_folds import CASES

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
PAYLOADS = [field.name for field in pb.RunEvent.DESCRIPTOR.oneofs_by_name["payload"].fields]
COMMON = {"run_id", "seq", "at", "step"}


def filled(message: Message, depth: int = 0) -> Message:
    """Sets every field of a message to something that is not its default."""
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value["key"] = 1.5
        elif field.message_type is not None and field.message_type.full_name.startswith("google.protobuf.Struct"):
            value.update({"key": ["value"]})
        elif field.message_type is not None:
            filled(value.add() if field.is_repeated else value, depth + 1)
        else:
            samples = {FieldDescriptor.CPPTYPE_STRING: "text", FieldDescriptor.CPPTYPE_ENUM: 1}
            sample = samples.get(field.cpp_type, True if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else 2)
            if field.is_repeated:
                value.append(sample)
            else:
                setattr(message, field.name, sample)
    return message


@pytest.mark.parametrize("kind", PAYLOADS)
@pytest.mark.parametrize("full", [True, False], ids=["full", "empty"])
def test_every_payload_is_told_in_its_documented_shape(kind: str, full: bool) -> None:
    message = pb.RunEvent(run_id="r1", seq=7)
    payload = getattr(message, kind)
    payload.SetInParent()
    if full:
        filled(payload)
    message.at.FromSeconds(1)
    event = run_event(message)
    assert (event.kind, event.seq, event.run_id) == (kind, 7, "r1")
    EVENT_MODELS[kind].model_validate(event.data)
    assert event.data.keys() == EVENT_MODELS[kind].model_fields.keys()
    assert event.is_last == (kind == "done")


def test_documented_kinds_are_the_contracts_payloads() -> None:
    assert set(EVENT_MODELS) == set(PAYLOADS)


def test_recorded_runs_have_events_of_every_kind_in_their_documented_shape() -> None:
    events = [event for case in CASES for event in case["events"]]
    assert set(PAYLOADS) <= {event["event"] for event in events}, "add a case to tests/data/run_folds.json"
    for event in events:
        if event["event"] in EVENT_MODELS:
            EVENT_MODELS[event["event"]].model_validate(event["data"])
            assert event["data"].keys() == EVENT_MODELS[event["event"]].model_fields.keys()


_CASES = r'case ("\w+"(?: \| "\w+")*)'


@pytest.mark.parametrize(
    "file",
    ["kit/vocabulary/run_fold.py", "cli/display/steps.py", "console/src/run/fold.ts", "console/src/run/trace.ts"],
)
def test_clients_know_events_by_the_names_of_the_contract(file: str) -> None:
    text = (Path(__file__).parents[3] / file).read_text("utf-8")
    known = {name for found in re.findall(_CASES, text) for name in re.findall(r"\w+", found)}
    assert len(known) > 4
    assert known <= set(PAYLOADS)


def test_no_payload_hides_what_every_event_carries() -> None:
    for field in pb.RunEvent.DESCRIPTOR.oneofs_by_name["payload"].fields:
        assert not COMMON & set(field.message_type.fields_by_name)


def test_empty_values_are_null_where_null_says_more() -> None:
    citation = encode(pb.Citation(number=1, page=0, chunk_id=""))
    assert (citation["page"], citation["chunk_id"], citation["quote_start"]) == (None, None, 0)
    hit = encode(retriever_pb2.Hit(score=float("nan")))
    assert (hit["chunk"], hit["dense_score"], hit["score"]) == (None, None, None)


def test_enums_times_and_durations_are_short_words_rfc_3339_and_seconds() -> None:
    message = pb.RunEvent(run=pb.RunStarted(mode=pb.RUN_MODE_QA))
    message.run.budgets.wall_clock.FromMilliseconds(1500)
    message.at.FromMilliseconds(1_750_000_000_250)
    data = run_event(message).data
    assert data["mode"] == "qa"
    assert (data["budgets"]["wall_clock_s"], data["budgets"]["answer_tokens"]) == (1.5, 0)
    assert data["at"] == "2025-06-15T15:06:40.250Z"


def test_words_are_the_contracts_enums_and_back() -> None:
    for enum in (pb.RunStatus, pb.SupportStatus, ingest_pb2.DocumentStatus):
        for name, number in enum.items():
            word = name.removeprefix(f"{enum.items()[0][0].removesuffix('UNSPECIFIED')}").lower()
            if number:
                assert enum_number(enum.DESCRIPTOR, word) == number
    with pytest.raises(KeyError):
        enum_number(pb.RunStatus.DESCRIPTOR, "sleeping")


def test_budgets_of_a_question_are_passed_on_and_absent_ones_are_the_services() -> None:
    budgets = ToolBudgets(wall_clock_s=2.5, tokens=100, steps=3).asked()
    assert budgets is not None
    assert (budgets.wall_clock.ToMilliseconds(), budgets.tokens, budgets.answer_tokens) == (2500, 100, 0)
    assert (budgets.reasoning_steps, budgets.tool_calls) == (3, 0)
    assert AskedBudgets().asked() is None
    assert ToolBudgets().asked() is None


def test_nothing_internal_reaches_a_client() -> None:
    event = run_event(pb.RunEvent(run_id="r1", seq=1, step="plan", state=b"secret", plan=pb.Plan(route="hybrid")))
    assert (event.data["step"], "state" in event.data) == ("plan", False)


def test_degradation_is_told_whole() -> None:
    degraded = common_pb2.Degradation(part="llm", reason="LLM_TIMEOUT", message="quoted instead")
    event = run_event(pb.RunEvent(run_id="r1", seq=1, thinking=pb.Thinking(degraded=degraded)))
    assert event.data["degraded"] == {"part": "llm", "reason": "LLM_TIMEOUT", "message": "quoted instead"}


def test_page_about_the_api_names_every_kind() -> None:
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    named = {kind for row in rows for kind in re.findall("[a-z_]+", row)}
    assert set(PAYLOADS) - named == set()


def test_examples_of_the_page_are_what_is_sent_and_follow_the_schemas() -> None:
    page = PAGE.read_text("utf-8")
    assert with_examples(page) == page, "run make gen"
    events = re.findall(r"^event: (\w+)\ndata: (.*)$", page, re.MULTILINE)
    assert {kind for kind, _ in events} == set(PAYLOADS), "add the kind to scripts/run_example.json"
    for kind, data in events:
        assert set(json.loads(data)) == set(EVENT_MODELS[kind].model_validate_json(data).model_dump()), kind
    (answer,) = re.findall(r"<!-- example answer -->\n```json\n(.*?)\n```", page, re.DOTALL)
    response = QaResponse.model_validate_json(answer)
    (cited,) = response.citations
    assert cited.text[cited.quote_start : cited.quote_end] == "Fuel tank capacity: 900 litres."
    assert [box.char_end for box in cited.bounding_boxes] == [cited.quote_end]
