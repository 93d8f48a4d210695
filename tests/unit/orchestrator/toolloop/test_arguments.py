"""What a model writes as arguments, read."""

import json
from typing import Any

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.tools.v1 import tools_pb2
from hypothesis import given
from hypothesis import strategies as st

from kit.structs import as_json
from services.orchestrator.steps.calls import arguments_hash
from services.orchestrator.toolloop.written.arguments import _DEEPEST, UnreadableArguments, read_arguments

PROPERTIES = {
    "query": {"type": "string"},
    "top_k": {"type": "integer", "minimum": 1},
    "ratio": {"type": "number"},
    "exact": {"type": "boolean"},
    "ids": {"type": "array", "items": {"type": "integer"}},
    "filter": {"type": "object", "properties": {"year": {"type": "integer"}}},
    "page": {"type": ["integer", "null"]},
    "names": {"type": "array", "items": {"type": "string"}},
    "stories": {"type": "array", "items": {"type": "string"}},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "additionalProperties": False}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"query": "a"}', {"query": "a"}),
        ("", {}),
        ("  ", {}),
        ('```json\n{"query": "a"}\n```', {"query": "a"}),
        ('{"query": "a",}', {"query": "a"}),
        ("{'query': 'a'}", {"query": "a"}),
        ("{query: 'a'}", {"query": "a"}),
        ('{"query": "a", "exact": True, "page": None}', {"query": "a", "exact": True, "page": None}),
        ('{"query": "a", "ids": [1, 2', {"query": "a", "ids": [1, 2]}),
        ('"{\\"query\\": \\"a\\"}"', {"query": "a"}),
        ('{"query": "a"} // the query', {"query": "a"}),
        ('{"query": "line\nbreak"}', {"query": "line\nbreak"}),
    ],
)
def test_text_that_is_nearly_json_is_repaired(text: str, arguments: dict[str, Any]) -> None:
    assert read_arguments(text, SCHEMA, may_repair=True) == arguments


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"top_k": "5"}', {"top_k": 5}),
        ('{"top_k": 5.0}', {"top_k": 5}),
        ('{"ratio": "0.5"}', {"ratio": 0.5}),
        ('{"exact": "False"}', {"exact": False}),
        ('{"ids": "[1, 2]"}', {"ids": [1, 2]}),
        ('{"ids": ["1", 2]}', {"ids": [1, 2]}),
        ('{"ids": 7}', {"ids": [7]}),
        ('{"id": 7}', {"ids": [7]}),
        ('{"name": "a"}', {"names": ["a"]}),
        ('{"story": ["a", "b"]}', {"stories": ["a", "b"]}),
        ('{"filter": "{\\"year\\": \\"1889\\"}"}', {"filter": {"year": 1889}}),
        ('{"query": 1889}', {"query": "1889"}),
        ('{"query": null, "page": null}', {"page": None}),
    ],
)
def test_values_are_brought_to_the_types_of_the_schema(text: str, arguments: dict[str, Any]) -> None:
    assert read_arguments(text, SCHEMA, may_repair=False) == arguments


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1]", "must be one JSON object"),
        ("search for towers", "must be one JSON object"),
        ('{"top_k": 0}', "`top_k`: 0 is less than the minimum"),
        ('{"top_k": 1.5}', "`top_k`"),
        ('{"top_k": true}', "`top_k`"),
        ('{"query": ["a"]}', "`query`"),
        ('{"colour": "red"}', "'colour' was unexpected"),
        ('{"ratio": NaN}', "`ratio`"),
        ("{" * 5000, "too long to guess"),
        ("\\{\n1" * 30, "too long to guess"),  # nesting and quotes cost the library cubic time
        ('{"a": ' + '*"' * 300, "too long to guess"),
        ('{"query": "' + "x" * 20_000, "too long to guess"),
        ('{"query": "' + "x" * 300_000 + '"}', "too long"),
        ('{"query": "\\ud800"}', "no Unicode text"),
        ("[" * 100_000 + "]" * 100_000, "too long"),
        ('{"top_k": 9007199254740993}', "9007199254740993 is too large"),
        ('{"ids": [1, "-9007199254740993"]}', "-9007199254740993 is too large"),
        ('{"filter": {"year": 9007199254740993}}', "9007199254740993 is too large"),
        ('{"ratio": 1e400}', "too large"),
        ('{"filter": {"a": ' + "[" * 29 + "]" * 29 + "}}", "more than 30 deep"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_schema(text: str, told: str) -> None:
    with pytest.raises(UnreadableArguments, match=r"Call the tool again|Write them again|at most") as raised:
        read_arguments(text, SCHEMA, may_repair=True)
    assert told in str(raised.value)
    assert len(str(raised.value)) < 3_000


def test_what_is_not_named_as_the_schema_wants_stays_where_both_are_given() -> None:
    with pytest.raises(UnreadableArguments, match="'id' was unexpected"):
        read_arguments('{"id": 7, "ids": [1]}', SCHEMA, may_repair=True)


def test_schema_that_is_cut_tells_first_what_is_required() -> None:
    many = {f"option{number}": {"type": "string", "description": "x" * 100} for number in range(100)}
    schema = {"type": "object", "properties": {**many, "queries": {"type": "array"}}, "required": ["queries"]}
    with pytest.raises(UnreadableArguments, match=r'\{"required":\["queries"\].*"properties":\{"queries":'):
        read_arguments("{}", schema, may_repair=True)


def test_nothing_is_guessed_where_no_repair_is_allowed() -> None:
    for text in ("{'query': 'a'}", '{"query": "a"', '{"ratio": NaN}', '"{}"'):
        with pytest.raises(UnreadableArguments):
            read_arguments(text, SCHEMA, may_repair=False)


@pytest.mark.parametrize("year", [2**53, -(2**53), 0.1, 1e300, True, 3.0, -0.0, 2.5e15])
def test_what_is_read_reaches_a_person_and_the_tool_as_it_was_written(year: Any) -> None:
    deepest: Any = year
    for level in range(_DEEPEST - 1):
        deepest = [deepest] if level % 2 else {"a": deepest}
    arguments = read_arguments(json.dumps({"any": deepest}), {"type": "object"}, may_repair=False)
    event = pb.RunEvent(tool=pb.ToolCall())
    event.tool.arguments.update(arguments)
    request = tools_pb2.CallToolRequest()
    request.arguments.update(arguments)
    shown = as_json(pb.RunEvent.FromString(event.SerializeToString()).tool.arguments)
    given_ = as_json(tools_pb2.CallToolRequest.FromString(request.SerializeToString()).arguments)
    assert arguments_hash(shown) == arguments_hash(given_) == arguments_hash(arguments)
    assert shown == {"any": deepest}


@given(st.text(alphabet="{}[]\":,'` \n()/*#ntrue1aN\\-.ud8", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        arguments = read_arguments(text, SCHEMA, may_repair=True)
    except UnreadableArguments:
        return
    assert arguments.keys() <= PROPERTIES.keys()
