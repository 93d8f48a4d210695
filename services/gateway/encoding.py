"""Protobuf to JSON, the one way the whole HTTP API does it: snake_case names, enums as short lower-case words, times as RFC
3339 with Z, durations as seconds under `<name>_s`. What a message leaves empty is null where null says more than zero:
unset messages, unspecified enums, unset optionals, empty ids and page 0."""

import math
import re
from datetime import UTC
from functools import lru_cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from services.gateway.models import Json

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def encode(message: Message) -> Json:
    """A message as a JSON object. Members of a oneof other than the one that is set are left out."""
    result: Json = {}
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        if oneof is not None and len(oneof.fields) > 1 and not message.HasField(field.name):
            continue
        name, value = _field(message, field)
        result[name] = value
    return result


def _field(message: Message, field: Any) -> tuple[str, Any]:
    value = getattr(message, field.name)
    name = f"{field.name}_s" if _is(field, Duration) else field.name
    if field.is_repeated:
        return name, _repeated(field, value)
    if field.has_presence and not message.HasField(field.name):
        return name, None
    return name, _single(field, value)


def _repeated(field: Any, value: Any) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        item = entry.fields_by_name["value"]
        return {str(key): _single(item, member) for key, member in sorted(value.items())}
    return [_single(field, member) for member in value]


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _message(value)
    if field.enum_type is not None:
        return enum_word(field.enum_type, value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if (field.name.endswith("_id") and value == "") or (field.name == "page" and value == 0):
        return None
    return value


def _message(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.ToDatetime(tzinfo=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Duration):
        return value.ToTimedelta().total_seconds()
    if isinstance(value, Struct | Value | ListValue):
        return json_format.MessageToDict(value)
    return encode(value)


def _is(field: Any, kind: type[Message]) -> bool:
    return field.message_type is not None and field.message_type.full_name == kind.DESCRIPTOR.full_name


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
