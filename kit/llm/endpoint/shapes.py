"""JSON Schemas for servers that hold a model to them by grammar."""

from collections.abc import Mapping
from typing import Any

_BOUNDS = frozenset(
    {
        *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)


def shape_of(schema: Any) -> Any:
    """The schema without what only bounds values: it makes grammars large and their servers slow, and some know only part of it.
    The code that makes the call checks the arguments anyway."""
    if isinstance(schema, list | tuple):
        return [shape_of(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: shape_of(each) for name, each in value.items()} if key == "properties" else shape_of(value)
        for key, value in schema.items()
        if key not in _BOUNDS
    }
