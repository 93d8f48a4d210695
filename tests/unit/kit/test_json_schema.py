"""Schemas that strangers write: what is checked, what is left out, and that no schema asks an address or takes long."""

import time
from typing import Any

import pytest

from kit.json_schema import SchemaRefused, check_schema, first_violation

OBJECT = {"type": "object"}


def doubling(levels: int) -> dict[str, Any]:
    """Twice the work at each level."""
    named = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
    return {**OBJECT, "$ref": "#/$defs/a0", "$defs": {**named, f"a{levels}": {"type": "object"}}}


def told(schema: dict[str, Any], value: Any) -> str:
    error = first_violation(schema, value)
    return error.message if error else ""


def test_what_does_not_fit_is_said_with_its_place() -> None:
    schema = {
        **OBJECT,
        "properties": {"of": {"$ref": "#/$defs/a~1b%20c"}, "pattern": {"type": "integer"}},
        "required": ["of"],
        "additionalProperties": False,
        "$defs": {"a/b c": {"enum": ["x", "y"]}},
    }
    check_schema(schema)
    assert told(schema, {"of": "x", "pattern": 3}) == ""
    assert told(schema, {"pattern": 3}) == "'of' is a required property"
    error = first_violation(schema, {"of": "z"})
    assert error is not None
    assert error.json_path == "$.of"
    assert "was unexpected" in told(schema, {"of": "x", "more": 1})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "http://127.0.0.1:9/schema"}, "write it into the schema"),
        (
            {"$ref": "#/zzz", "zzz": {"allOf": [{"$id": "http://127.0.0.1:9/", "$ref": "#/q"}]}},
            "where it has no schema",
        ),
        ({"$ref": "#/enum/0", "enum": [{"$id": "http://127.0.0.1:9/", "$ref": "#/q"}]}, "where it has no schema"),
        ({"$ref": "#nowhere"}, "where it has no schema"),
        ({"type": "objekt"}, "is no JSON Schema"),
        ({"properties": 3}, "is no JSON Schema"),
        ({"allOf": [{}] * 2000}, "is too large"),
    ],
)
def test_schemas_that_cannot_be_used_are_refused_with_the_reason(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaRefused, match=reason):
        check_schema(schema)


def test_ids_and_dialects_inside_a_schema_count_for_nothing() -> None:
    inside = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "http://127.0.0.1:9/",
        "pattern": "^(a+)+$",
    }
    schema = {**OBJECT, "properties": {"a": inside}}
    check_schema(schema)
    began = time.process_time()
    assert told(schema, {"a": "a" * 200 + "!"}) == ""
    assert time.process_time() - began < 5


def test_names_that_a_pattern_allows_are_no_additional_ones() -> None:
    schema = {**OBJECT, "patternProperties": {"^(x+)+$": {"type": "integer"}}, "additionalProperties": False}
    check_schema(schema)
    assert told(schema, {"x" * 200 + "!": 1}) == ""


@pytest.mark.parametrize("keyword", ["not", "oneOf", "if"])
def test_nothing_is_refused_for_a_pattern_that_is_left_out(keyword: str) -> None:
    pattern = {"properties": {"a": {"pattern": "^x"}}}
    schema = {
        "not": {**OBJECT, "not": pattern},
        "oneOf": {**OBJECT, "oneOf": [pattern, {"required": ["a"]}]},
        "if": {**OBJECT, "if": pattern, "then": {"required": ["b"]}},
    }[keyword]
    assert told(schema, {"a": "y"}) == ""


def test_a_check_that_would_take_hours_ends() -> None:
    schema = doubling(40)
    check_schema(schema)
    with pytest.raises(SchemaRefused, match="make it simpler"):
        first_violation(schema, {})
    assert told(doubling(5), {}) == ""


def test_recursion_without_end_is_said() -> None:
    with pytest.raises(SchemaRefused, match=r"without end|make it simpler"):
        first_violation({"allOf": [{"$ref": "#"}]}, {})


def test_patterns_of_our_own_schemas_hold() -> None:
    schema = {**OBJECT, "properties": {"id": {"pattern": "^[a-z]+$"}}}
    assert first_violation(schema, {"id": "9"}, trusted=True) is not None
    assert first_violation(schema, {"id": "9"}) is None
