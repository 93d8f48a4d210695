"""Events between the core's dataclasses and protobuf. The contract is the one source: a payload's dataclass has the name of its
message and the names of its fields, so one walk over the fields does it; what differs (enums, times) is said here once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC
from enum import Enum
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import state_pb2

from kit.structs import as_json
from services.orchestrator.log import events
from services.orchestrator.log.events import Budgets, Payload, RunEvent, StepState

_E = TypeVar("_E", bound=Enum)

_KINDS: dict[str, type] = {
    payload.name: getattr(events, payload.message_type.name)
    for payload in pb.RunEvent.DESCRIPTOR.oneofs_by_name["payload"].fields
    if payload.message_type is not None
}
_FIELDS = {kind: name for name, kind in _KINDS.items()}


_WELL_KNOWN: dict[str, Callable[[Any], Any]] = {
    Duration.DESCRIPTOR.full_name: lambda value: value.ToNanoseconds() / 1e9,
    Timestamp.DESCRIPTOR.full_name: lambda value: value.ToDatetime(tzinfo=UTC),
    Struct.DESCRIPTOR.full_name: as_json,
}


def event_to_proto(event: RunEvent) -> pb.RunEvent:
    """The event's message as the log has it; of one that was read, the very message that was stored."""
    if event.raw is not None:
        return pb.RunEvent.FromString(event.raw)
    message = pb.RunEvent(run_id=event.run_id, seq=event.seq, step=event.step)
    message.at.FromDatetime(event.at)
    payload = getattr(message, _FIELDS[type(event.payload)])
    payload.SetInParent()
    fill(payload, event.payload)
    if event.state is not None:
        state = state_pb2.StepState()
        fill(state, event.state)
        message.state = state.SerializeToString()
    return message


def event_for_client(event: RunEvent) -> pb.RunEvent:
    """The event's message without what is none of a client's business."""
    message = event_to_proto(event)
    message.ClearField("state")
    return message


def event_from_bytes(data: bytes) -> RunEvent:
    """The event of a stored message. Raises DecodeError, ValueError or OverflowError for bytes that are none."""
    message = pb.RunEvent.FromString(data)
    name = message.WhichOneof("payload")
    payload: Payload = read(getattr(message, name), _KINDS[name]) if name else events.Unknown()
    state = read(state_pb2.StepState.FromString(message.state), StepState) if message.state else None
    at = message.at.ToDatetime(tzinfo=UTC)
    return RunEvent(message.run_id, message.seq, at, payload, message.step, state, data)


def fill(message: Message, value: Any) -> None:
    """Copies a dataclass into the message of the same fields. None leaves a field unset."""
    kind: type = type(value)
    for attribute, write in _writers(kind, message.DESCRIPTOR):
        item = getattr(value, attribute)
        if item is not None:
            write(message, item)


@cache
def _writers(kind: type, descriptor: Any) -> Sequence[tuple[str, Callable[[Any, Any], None]]]:
    """How each field of the dataclass is written. Asked once for a kind: each event of a run is filled."""
    return [
        (field.name, _writer(descriptor.fields_by_name[_name_in(descriptor, field.name)])) for field in fields(kind)
    ]


def _name_in(descriptor: Any, name: str) -> str:
    """A Duration has no unit in its name."""
    return name if name in descriptor.fields_by_name else name.removesuffix("_s")


def _writer(field: Any) -> Callable[[Any, Any], None]:
    name, kind = field.name, field.message_type
    if field.is_repeated:
        if kind is None:
            return lambda message, items: getattr(message, name).extend(items)
        if kind.GetOptions().map_entry:
            return lambda message, items: getattr(message, name).update(items)
        return lambda message, items: _extend(getattr(message, name), items)
    if field.enum_type is not None:
        return lambda message, item: setattr(message, name, enum_number(field.enum_type, item))
    if kind is None:
        return lambda message, item: setattr(message, name, item)
    return _message_writer(name, kind.full_name)


def _message_writer(name: str, full_name: str) -> Callable[[Any, Any], None]:
    match full_name:
        case "google.protobuf.Duration":
            return lambda message, item: getattr(message, name).FromNanoseconds(round(item * 1e9))
        case "google.protobuf.Timestamp":
            return lambda message, item: getattr(message, name).FromDatetime(item)
        case "google.protobuf.Struct":
            return lambda message, item: getattr(message, name).update(item)

    def fill_part(message: Any, item: Any) -> None:
        part = getattr(message, name)
        part.SetInParent()
        fill(part, item)

    return fill_part


def _extend(repeated: Any, items: Sequence[Any]) -> None:
    for item in items:
        fill(repeated.add(), item)


def read(message: Any, kind: type) -> Any:
    """The dataclass `kind` with the message's values."""
    return kind(**{name: get(message) for name, get in _readers(kind, message.DESCRIPTOR)})


@cache
def _readers(kind: type, descriptor: Any) -> Sequence[tuple[str, Callable[[Any], Any]]]:
    """How each field of the dataclass is read. Asked once for a kind: each event that is followed is read."""
    return [
        (name, _reader(descriptor.fields_by_name[_name_in(descriptor, name)], hint))
        for name, hint in _hints(kind).items()
    ]


def _reader(field: Any, hint: Any) -> Callable[[Any], Any]:
    name = field.name
    if isinstance(hint, UnionType):
        get = _reader(field, next(option for option in get_args(hint) if option is not type(None)))
        if field.has_presence:
            return lambda message: get(message) if message.HasField(name) else None
        return lambda message: get(message) if getattr(message, name) != field.default_value else None
    convert = _converter(field, hint)
    return attrgetter(name) if convert is None else lambda message: convert(getattr(message, name))


def _converter(field: Any, hint: Any) -> Callable[[Any], Any] | None:
    """None of a value that is the same in both."""
    kind = field.message_type
    if kind is not None and not field.is_repeated and kind.full_name in _WELL_KNOWN:
        return _WELL_KNOWN[kind.full_name]
    if get_origin(hint) is not None:
        return _collector(hint)
    if issubclass(hint, Enum):
        return lambda number: enum_from_number(field.enum_type, number, hint)
    return (lambda part: read(part, hint)) if isinstance(hint, type) and is_dataclass(hint) else None


def _collector(hint: Any) -> Callable[[Any], Any]:
    if issubclass(get_origin(hint), Mapping):
        return dict
    (item,) = get_args(hint)
    if isinstance(item, type) and is_dataclass(item):
        return lambda values: tuple(read(each, item) for each in values)
    return tuple


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def enum_number(descriptor: Any, item: Enum) -> int:
    prefix = descriptor.values[0].name.removesuffix("UNSPECIFIED")
    return int(descriptor.values_by_name[prefix + item.name].number)


def enum_from_number(descriptor: Any, number: int, kind: type[_E]) -> _E:
    """The member for a number of the contract, UNKNOWN for one that this version does not have."""
    prefix = descriptor.values[0].name.removesuffix("UNSPECIFIED")
    value = descriptor.values_by_number.get(number)
    name = value.name.removeprefix(prefix) if value is not None else ""
    return kind[name if name in kind.__members__ else "UNKNOWN"]


def budgets_from_proto(message: pb.Budgets) -> Budgets:
    budgets: Budgets = read(message, Budgets)
    return budgets
