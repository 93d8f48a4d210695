"""Events between the core's dataclasses and protobuf. Field names agree on both sides, so one walk over the fields does it; what
differs (enums, durations) is said here once."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.orchestrator.log import events
from services.orchestrator.log.events import Budgets, Payload, RunEvent

_E = TypeVar("_E", bound=Enum)

_KINDS: dict[str, type] = {
    "run": events.RunStarted,
    "agent": events.AgentChosen,
    "thinking": events.Thinking,
    "plan": events.Plan,
    "retrieval": events.Retrieval,
    "token": events.Token,
    "verification": events.Verification,
    "answer": events.Answer,
    "usage": events.Usage,
    "error": events.RunError,
    "done": events.Done,
}
_FIELDS = {kind: name for name, kind in _KINDS.items()}


def event_to_proto(event: RunEvent) -> pb.RunEvent:
    """The event's message; of one that was read, the very message that was stored."""
    if event.raw is not None:
        return pb.RunEvent.FromString(event.raw)
    message = pb.RunEvent(run_id=event.run_id, seq=event.seq)
    message.at.FromDatetime(event.at)
    payload = getattr(message, _FIELDS[type(event.payload)])
    payload.SetInParent()
    fill(payload, event.payload)
    return message


def event_from_bytes(data: bytes) -> RunEvent:
    """The event of a stored message. Raises DecodeError, ValueError or OverflowError for bytes that are none."""
    message = pb.RunEvent.FromString(data)
    name = message.WhichOneof("payload")
    payload: Payload = read(getattr(message, name), _KINDS[name]) if name in _KINDS else events.Unknown()
    return RunEvent(message.run_id, message.seq, message.at.ToDatetime(tzinfo=UTC), payload, data)


def fill(message: Message, value: Any) -> None:
    """Copies a dataclass into the message of the same fields. None leaves a field unset."""
    for field in fields(value):
        item = getattr(value, field.name)
        if item is not None:
            _set(message, field.name, item)


def _set(message: Message, name: str, item: Any) -> None:
    if isinstance(item, Budgets):
        budgets_to_proto(item, getattr(message, name))
    elif isinstance(item, Enum):
        setattr(message, name, enum_number(message.DESCRIPTOR.fields_by_name[name].enum_type, item))
    elif is_dataclass(item):
        getattr(message, name).SetInParent()
        fill(getattr(message, name), item)
    elif isinstance(item, Mapping):
        getattr(message, name).update(item)
    elif isinstance(item, Sequence) and not isinstance(item, str):
        _extend(getattr(message, name), item)
    else:
        setattr(message, name, item)


def _extend(repeated: Any, items: Sequence[Any]) -> None:
    for item in items:
        if is_dataclass(item):
            fill(repeated.add(), item)
        else:
            repeated.append(item)


def read(message: Any, kind: type) -> Any:
    """The dataclass `kind` with the message's values."""
    return kind(**{name: _get(message, name, hint) for name, hint in _hints(kind).items()})


def _get(message: Any, name: str, hint: Any) -> Any:
    if isinstance(hint, UnionType):
        if not message.HasField(name):
            return None
        hint = next(option for option in get_args(hint) if option is not type(None))
    value = getattr(message, name)
    if hint is Budgets:
        return budgets_from_proto(value)
    if isinstance(value, Struct):
        return MessageToDict(value)
    if get_origin(hint) is not None:
        return _collection(value, hint)
    if issubclass(hint, Enum):
        return enum_from_number(message.DESCRIPTOR.fields_by_name[name].enum_type, value, hint)
    return read(value, hint) if isinstance(hint, type) and is_dataclass(hint) else value


def _collection(value: Any, hint: Any) -> Any:
    if issubclass(get_origin(hint), Mapping):
        return dict(value)
    (item,) = get_args(hint)
    if isinstance(item, type) and is_dataclass(item):
        return tuple(read(each, item) for each in value)
    return tuple(value)


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


def budgets_to_proto(budgets: Budgets, message: pb.Budgets) -> None:
    message.SetInParent()
    message.wall_clock.FromMilliseconds(round(budgets.wall_clock_s * 1000))
    message.answer_tokens = budgets.answer_tokens


def budgets_from_proto(message: pb.Budgets) -> Budgets:
    return Budgets(message.wall_clock.ToMilliseconds() / 1000, message.answer_tokens)
