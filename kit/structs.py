"""JSON out of protobuf's Struct and Value, which know no integers."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.struct_pb2 import ListValue, Struct, Value

_EXACT_INTEGER_MAX = 2.0**53


def as_json(message: Struct | Value | ListValue) -> Any:
    """What was put in. They have only doubles: what was written as 3 arrives as 3.0, and a schema's minLength or a tool that counts
    needs 3."""
    return with_integers(json_format.MessageToDict(message))


def with_integers(value: Any) -> Any:
    """JSON as it comes back out of a message: whole floats as integers, as far as those are exact."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_INTEGER_MAX:
        return int(value)
    if isinstance(value, Mapping):
        return {key: with_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_integers(item) for item in value]
    return value
