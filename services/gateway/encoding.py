"""Protobuf to JSON, the one way the whole HTTP API does it: snake_case names, enums as short lower-case words, times as RFC
3339 with Z, durations as seconds under `<name>_s`. What a message leaves empty is null where null says more than zero:
unset messages, unspecified enums, unset optionals, empty ids and page 0."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache, partial
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from services.gateway.models import Json
from services.gateway.schemas.times import rfc3339

_MOST_EXACT = 2.0**53
"""Beyond it a float does not hold every whole number."""
_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True)
class _Member:
    """How one field of a message type becomes one of an object. Descriptors are slow to ask, so each type is asked once."""

    name: str
    key: str
    encode: Callable[[Any], Any]
    has_presence: bool
    in_oneof: bool


def encode(message: Message) -> Json:
    """A message as a JSON object. Members of a oneof other than the one that is set are left out."""
    result: Json = {}
    for member in _members(message.DESCRIPTOR):
        if not member.has_presence or message.HasField(member.name):
            result[member.key] = member.encode(getattr(message, member.name))
        elif not member.in_oneof:
            result[member.key] = None
    return result


@lru_cache(maxsize=256)
def _members(message: Descriptor) -> tuple[_Member, ...]:
    return tuple(_member(field) for field in message.fields)


def _member(field: Any) -> _Member:
    oneof = field.containing_oneof
    return _Member(
        name=field.name,
        key=f"{field.name}_s" if _message_name(field) == _DURATION else field.name,
        encode=_repeated(field) if field.is_repeated else _single(field),
        has_presence=field.has_presence,
        in_oneof=oneof is not None and len(oneof.fields) > 1,
    )


def _message_name(field: Any) -> str:
    return str(field.message_type.full_name) if field.message_type is not None else ""


def _repeated(field: Any) -> Callable[[Any], Any]:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        single = _single(entry.fields_by_name["value"])
        return lambda value: {str(key): single(member) for key, member in sorted(value.items())}
    single = _single(field)
    return lambda value: [single(member) for member in value]


def _single(field: Any) -> Callable[[Any], Any]:
    if field.message_type is not None:
        return _WELL_KNOWN.get(_message_name(field), encode)
    if field.enum_type is not None:
        return partial(enum_word, field.enum_type)
    if field.name.endswith("_id") or field.name == "page":
        return lambda value: value or None
    return _finite


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _timestamp(value: Timestamp) -> str:
    return rfc3339(value.ToDatetime(tzinfo=UTC))


def _struct(value: Struct) -> Json:
    return {key: _json_value(member) for key, member in sorted(value.fields.items())}


def _list(value: ListValue) -> list[Any]:
    return [_json_value(member) for member in value.values]


def _json_value(value: Value) -> Any:
    """A Struct knows floats only: a whole number becomes one again, so that 5 is not shown as 5.0."""
    match value.WhichOneof("kind"):
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() and abs(number) <= _MOST_EXACT else _finite(number)
        case "struct_value":
            return _struct(value.struct_value)
        case "list_value":
            return _list(value.list_value)
        case "string_value" | "bool_value" as kind:
            return getattr(value, kind)
        case _:
            return None


_DURATION = Duration.DESCRIPTOR.full_name
_WELL_KNOWN: dict[str, Callable[[Any], Any]] = {
    Timestamp.DESCRIPTOR.full_name: _timestamp,
    _DURATION: lambda value: value.ToTimedelta().total_seconds(),
    Struct.DESCRIPTOR.full_name: _struct,
    ListValue.DESCRIPTOR.full_name: _list,
    Value.DESCRIPTOR.full_name: _json_value,
}


@lru_cache(maxsize=64)
def _enum_words(enum: EnumDescriptor) -> dict[int, str | None]:
    prefix = _WORD_START.sub("_", enum.name).upper() + "_"
    return {value.number: value.name.removeprefix(prefix).lower() if value.number else None for value in enum.values}


def enum_word(enum: EnumDescriptor, number: int) -> str | None:
    """RUN_STATUS_COMPLETED → "completed"; unspecified → None."""
    return _enum_words(enum).get(number, "unknown")


def enum_number(enum: EnumDescriptor, word: str | None) -> Any:
    """ "completed" → RUN_STATUS_COMPLETED; None → unspecified. Raises KeyError for a word the contract does not have.

    Typed Any: mypy-protobuf gives each enum a type of its own.
    """
    if word is None:
        return 0
    return {name: number for number, name in _enum_words(enum).items() if name}[word]
