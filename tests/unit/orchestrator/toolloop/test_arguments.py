"""What a model writes as arguments, read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.toolloop.arguments import UnreadableArguments, read_arguments

PROPERTIES = {
    "query": {"type": "string"},
    "top_k": {"type": "integer", "minimum": 1},
    "ratio": {"type": "number"},
    "exact": {"type": "boolean"},
    "ids": {"type": "array", "items": {"type": "integer"}},
    "filter": {"type": "object", "properties": {"year": {"type": "integer"}}},
    "page": {"type": ["integer", "null"]},
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
    ],
)
def test_what_cannot_be_read_is_told_with_the_schema(text: str, told: str) -> None:
    with pytest.raises(UnreadableArguments, match=r"Call the tool again|Write them again|at most") as raised:
        read_arguments(text, SCHEMA, may_repair=True)
    assert told in str(raised.value)
    assert len(str(raised.value)) < 3_000


def test_nothing_is_guessed_where_no_repair_is_allowed() -> None:
    for text in ("{'query': 'a'}", '{"query": "a"', '{"ratio": NaN}', '"{}"'):
        with pytest.raises(UnreadableArguments):
            read_arguments(text, SCHEMA, may_repair=False)


@given(st.text(alphabet="{}[]\":,'` \n()/*#ntrue1aN\\-.ud8", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        arguments = read_arguments(text, SCHEMA, may_repair=True)
    except UnreadableArguments:
        return
    assert arguments.keys() <= PROPERTIES.keys()
