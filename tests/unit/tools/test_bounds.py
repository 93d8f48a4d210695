"""What a call answers with fits into one message of every kind that carries it."""

import json
from typing import Any

import pytest
from groundwork.retriever.v1.retriever_pb2 import Chunk, Hit
from groundwork.tools.v1 import tools_pb2 as pb
from pydantic import TypeAdapter

from services.orchestrator.adapters.services.tools import _outcome
from services.orchestrator.steps.effects import ToolOutcome as Observation
from services.tools.adapters.wire import encode_outcome
from services.tools.calling.bounds import (
    CONTENT_BYTES_MAX,
    NESTING_MAX,
    PASSAGES_BYTES_MAX,
    PASSAGES_MAX,
    bounded,
    shortened,
)
from services.tools.errors import OutputTooLarge, ToolError
from services.tools.models import Passage, ToolOutcome, ToolOutput

LOG_MESSAGE_BYTES = 1024 * 1024
"""Of a message of NATS, as it is configured unless somebody says otherwise."""


def passage(text: str) -> Passage:
    chunk = Chunk(chunk_id="c" * 32, document_id="d" * 32, collection_id="k", document_name="a.pdf", text=text)
    return Passage(chunk.chunk_id, chunk.document_id, "a.pdf", "k", text, hit=Hit(chunk=chunk))


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("letter", ["a", "ж", "\n", '"'])
def test_the_most_that_passes_fits_into_a_message_of_the_log(letter: str) -> None:
    content = letter * ((CONTENT_BYTES_MAX - 2) // len(json.dumps(letter, ensure_ascii=False)[1:-1].encode()))
    text = letter * (PASSAGES_BYTES_MAX // PASSAGES_MAX // len(letter.encode()) - 200)
    output = bounded("probe", ToolOutput(content, "s" * 999, tuple(passage(text) for _ in range(PASSAGES_MAX))))
    outcome = ToolOutcome(True, 1.0, output.content, summary=output.summary, passages=output.passages)
    message = encode_outcome(outcome)
    assert message.ByteSize() < LOG_MESSAGE_BYTES
    observation = _outcome("probe", pb.ToolResult.FromString(message.SerializeToString()), 1.0)
    assert len(TypeAdapter(Observation).dump_json(observation)) < 0.98 * LOG_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (ToolOutput("x" * CONTENT_BYTES_MAX), "bytes; at most"),
        (ToolOutput("ж" * (CONTENT_BYTES_MAX // 2)), "bytes; at most"),
        (ToolOutput(nested(NESTING_MAX + 1)), "more than 30 deep"),
        (ToolOutput(1, passages=(passage("t"),) * (PASSAGES_MAX + 1)), "101 passages"),
        (ToolOutput(1, passages=(passage("t" * PASSAGES_BYTES_MAX),)), "at most 100 of 400000"),
    ],
)
def test_more_is_refused_and_says_what_to_do(output: ToolOutput, says: str) -> None:
    with pytest.raises(OutputTooLarge, match=says) as caught:
        bounded("probe", output)
    assert "ask for" in str(caught.value)


@pytest.mark.parametrize("content", [object(), float("nan"), {"a": float("inf")}, "\ud800", {(1, 2): 3}])
def test_what_json_cannot_hold_is_refused(content: Any) -> None:
    with pytest.raises(ToolError, match="JSON cannot hold"):
        bounded("probe", ToolOutput(content))


def test_content_becomes_what_a_reader_gets() -> None:
    output = bounded("probe", ToolOutput({1: ("a", None)}))
    assert output.content == {"1": ["a", None]}


def test_no_digit_of_an_integer_is_lost() -> None:
    output = bounded("probe", ToolOutput({"id": 2**53 + 1, "ids": [-(2**60)], "count": 2**53}))
    result = encode_outcome(ToolOutcome(True, 1.0, output.content))
    assert _outcome("probe", result, 1.0).content == {"id": f"{2**53 + 1}", "ids": [f"-{2**60}"], "count": 2**53}


def test_the_deepest_content_can_be_read_by_the_other_side() -> None:
    output = bounded("probe", ToolOutput(nested(NESTING_MAX)))
    response = pb.CallToolResponse(result=encode_outcome(ToolOutcome(True, 1.0, output.content)))
    read = pb.CallToolResponse.FromString(response.SerializeToString())
    assert _outcome("probe", read.result, 1.0).content == output.content


def test_texts_are_cut_visibly() -> None:
    output = bounded("probe", ToolOutput(1, "ж" * 400))
    assert output.summary == "ж" * 299 + "…"
    assert shortened("a\ud800", 5) == "a?"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (ToolOutput({"result": 391, "unit": "см"}), '{"result": 391, "unit": "см"}'),
        (ToolOutput("It rains."), "It rains."),
        (ToolOutput({"a": 1}, "One a."), "One a."),
        (ToolOutput(None), ""),
        (ToolOutput({"text": "t"}, passages=(passage("t"),)), ""),
        (ToolOutput("x" * 999), "x" * 299 + "…"),
    ],
)
def test_a_person_is_shown_what_a_tool_without_a_summary_said(output: ToolOutput, shown: str) -> None:
    assert bounded("probe", output).summary == shown
