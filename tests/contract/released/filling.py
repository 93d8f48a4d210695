"""Messages with every field filled, made from descriptors: a message or field that is new is filled without further work."""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

_DEPTH = 6
"""Messages may contain themselves (a JSON value, a filter): so deep and no deeper."""
_MADE_BY_HAND = {
    "google.protobuf.Timestamp": {"seconds": 1_764_000_000, "nanos": 250_000_000},
    "google.protobuf.Duration": {"seconds": 2, "nanos": 500_000_000},
}


def filled(kind: type[Message], *, choose: str = "", enum_number: int | None = None) -> Any:
    """A message of the kind. Of each oneof the first field is set, or the one called `choose`. Enums have their last value, or
    `enum_number`."""
    message = kind()
    _fill(message, choose, enum_number, 0)
    return message


def alternatives(kind: type[Message]) -> Iterator[str]:
    """What `choose` may be, so that each field of each oneof is set once; "" where there is none."""
    names = [field.name for oneof in kind.DESCRIPTOR.oneofs if len(oneof.fields) > 1 for field in oneof.fields]
    yield from names or [""]


def _fill(message: Any, choose: str, enum_number: int | None, depth: int) -> None:
    for name, value in _MADE_BY_HAND.get(message.DESCRIPTOR.full_name, {}).items():
        setattr(message, name, value)
    if message.DESCRIPTOR.full_name in _MADE_BY_HAND or depth > _DEPTH:
        return
    for field in _chosen(message, choose, depth):
        _set(message, field, choose, enum_number, depth)


def _chosen(message: Any, choose: str, depth: int) -> Iterator[FieldDescriptor]:
    for field in message.DESCRIPTOR.fields:
        oneof = field.containing_oneof
        if oneof is not None and len(oneof.fields) > 1:
            names = [each.name for each in oneof.fields]
            wanted = choose if depth == 0 and choose in names else _plain_one(oneof)
            if field.name != wanted:
                continue
        yield field


def _plain_one(oneof: Any) -> str:
    """The first field that is no message, else the first."""
    plain = [field.name for field in oneof.fields if field.message_type is None and field.enum_type is None]
    return str((plain or [oneof.fields[0].name])[0])


def _set(message: Any, field: FieldDescriptor, choose: str, enum_number: int | None, depth: int) -> None:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        _fill_map(getattr(message, field.name), field, enum_number, depth)
    elif kind is not None and field.is_repeated:
        if depth < _DEPTH:
            _fill(getattr(message, field.name).add(), choose, enum_number, depth + 1)
    elif kind is not None:
        getattr(message, field.name).SetInParent()
        _fill(getattr(message, field.name), choose, enum_number, depth + 1)
    elif field.is_repeated:
        getattr(message, field.name).append(_value(field, enum_number))
    else:
        setattr(message, field.name, _value(field, enum_number))


def _fill_map(items: Any, field: FieldDescriptor, enum_number: int | None, depth: int) -> None:
    assert field.message_type is not None
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    if value.message_type is None:
        items[_value(key, enum_number)] = _value(value, enum_number)
    elif depth < _DEPTH:
        _fill(items[_value(key, enum_number)], "", enum_number, depth + 1)


def _value(field: FieldDescriptor, enum_number: int | None) -> Any:
    """A value that is not the default."""
    if field.enum_type is not None:
        return _known(field.enum_type) if enum_number is None else enum_number
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return field.name.encode() if field.type == FieldDescriptor.TYPE_BYTES else f"{field.name} ä"
        case FieldDescriptor.CPPTYPE_BOOL:
            return True
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return 0.5
        case _:
            return field.number + 1


def _known(kind: EnumDescriptor) -> int:
    """The last value that is not one which stands for those of newer versions."""
    return next(value.number for value in reversed(kind.values) if not value.name.endswith("_UNKNOWN"))
