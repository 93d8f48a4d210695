"""The check of a value against a JSON Schema that somebody else wrote."""

from typing import Any

from jsonschema import Draft202012Validator, validators

SchemaCheck: Any = validators.extend(  # type: ignore[no-untyped-call] # the library has no types
    Draft202012Validator, {"pattern": None, "patternProperties": None}
)
"""A validator that leaves patterns out: a regular expression of somebody else's can keep a process busy for hours."""
