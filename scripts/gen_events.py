"""Makes the gateway's schemas of a run's events, and the table of events in docs/api.md, from the contract and its comments. With
--check it writes nothing and fails when what is committed differs."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

_ROOT = Path(__file__).resolve().parent.parent
_CONTRACT = "groundwork/orchestrator/v1/orchestrator.proto"
_SCHEMAS, _PAGE = "services/gateway/schemas/conversations/events.py", "docs/api.md"
_COMMON = {
    ".groundwork.common.v1.BoundingBox": "BoundingBox",
    ".groundwork.common.v1.Degradation": "Degradation",
    ".groundwork.common.v1.Origin": "Origin",
}
_NAMES = {"Budgets": "BudgetsInForce"}
"""Schemas that are called otherwise than their message."""
_MAY_BE_EMPTY = "Usage"
"""The message that a result has also before its event has come."""
_TOOL_RESULT = """
    call_id: str | None = Field(description="The call.")
    ok: bool = Field(description="Whether it worked.")
    summary: str = Field(description="What came out, shortened.")
    duration_ms: float | None = Field(description="How long it took, milliseconds.")
    error: ToolError | None = Field(description="Why it did not work; null when it did.")
"""
_OWN = {"tool_result": _TOOL_RESULT}
"""Members of events whose public shape is not the contract's; see services/gateway/streams/events.py."""
_F = FieldDescriptorProto
_OPEN = "RunMode"
"""The enum whose words the orchestrator alone knows."""
_PLAIN = {_F.TYPE_STRING: "str", _F.TYPE_ENUM: "str", _F.TYPE_BOOL: "bool", _F.TYPE_DOUBLE: "float | None"}
_WELL_KNOWN = {"Timestamp": "Moment | None", "Duration": "float | None", "Struct": "dict[str, Any] | None"}
_IN_JSON = {
    "(PENDING)": "(`pending`)",
    "; 0 where there are none": "; null where there are none",
    ", or empty.": ", or null.",
    "Absent where": "Null where",
}
"""How comments of the contract read where what is left empty is null."""
_EMPTY = {"str": '""', "int": "0", "float | None": "0.0"}
_HEAD = '''# ruff: noqa: E501
"""Events of a run as clients see them: one model a kind. Made from orchestrator.proto and its comments by `make gen`."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.schemas.documents.search import BoundingBox, Degradation, Origin
from services.gateway.schemas.times import Moment
'''
_BASE = '''
class Event(BaseModel):
    """What every event carries."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(description="The run.")
    seq: int = Field(description="Position in the run's log, from 1 without gaps; also the event's `id:`.")
    at: Moment | None = Field(description="When it happened.")
    step: str = Field(description="Step of the run that it belongs to; empty for none.")


class ToolError(BaseModel):
    """Why a call of a tool did not work."""

    reason: str = Field(
        description="UPPER_SNAKE. `IN_DOUBT`: nobody knows whether the call took effect, and it is not repeated."
    )
    message: str = Field(description="What happened and what to do, for a person.")

'''


class _Contract:
    """The contract's file with its comments."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self.file = file
        self._comments = {
            tuple(place.path): " ".join(place.leading_comments.split()) for place in file.source_code_info.location
        }
        self.messages = {message.name: number for number, message in enumerate(file.message_type)}

    def message(self, name: str) -> DescriptorProto:
        return self.file.message_type[self.messages[name]]

    def comment(self, message: str, field: int | None = None) -> str:
        """In the words of JSON: what a message leaves empty is null, and words are quoted as code."""
        path = (4, self.messages[message]) if field is None else (4, self.messages[message], 2, field)
        said = re.sub(r'"([a-z_]+)"', r"`\1`", self._comments[path])
        for here, there in _IN_JSON.items():
            said = said.replace(here, there)
        return said

    def payloads(self) -> Iterator[tuple[str, str]]:
        """Kind and message of each event, in the order of the contract."""
        for field in self.message("RunEvent").field:
            if field.HasField("oneof_index"):
                yield field.name, field.type_name.rpartition(".")[2]


def contract() -> _Contract:
    """Reads the protos, with comments."""
    with tempfile.NamedTemporaryFile() as target:
        options = ["--include_imports", "--include_source_info", f"--descriptor_set_out={target.name}"]
        folders = [f"-I{_ROOT / 'protos'}", f"-I{Path(grpc_tools.__file__).parent / '_proto'}"]
        if protoc.main(["protoc", *folders, *options, _CONTRACT]):
            raise SystemExit("the contracts cannot be read")
        files = FileDescriptorSet.FromString(Path(target.name).read_bytes())
    return _Contract(next(each for each in files.file if each.name == _CONTRACT))


def schemas(of: _Contract) -> str:
    """The module of the gateway."""
    parts = {name: None for _, message in of.payloads() for name in _parts(of, message)}
    events = {kind: _event_name(kind) for kind, _ in of.payloads()}
    blocks = [_HEAD + "".join(_words(of)), _BASE]
    blocks += [_model(of, name, _NAMES.get(name, name), "BaseModel") for name in parts]
    for kind, message in of.payloads():
        base = "Event, Usage" if message == _MAY_BE_EMPTY else "Event"
        blocks.append(_model(of, message, events[kind], base, kind))
    table = "".join(f'    "{kind}": {name},\n' for kind, name in events.items())
    blocks.append(f'\nEVENT_MODELS: dict[str, type[Event]] = {{\n{table}}}\n"""The data of each kind of event."""\n')
    return _formatted("\n".join(blocks))


def _formatted(source: str) -> str:
    ruff = [str(Path(sys.executable).parent / "ruff"), "format", "--stdin-filename", _SCHEMAS, "-"]
    return subprocess.run(ruff, input=source, capture_output=True, text=True, check=True, cwd=_ROOT).stdout


def _event_name(kind: str) -> str:
    return "RunStartedEvent" if kind == "run" else "".join(word.title() for word in kind.split("_")) + "Event"


def _parts(of: _Contract, message: str) -> Iterator[str]:
    """Messages of the contract inside of an event, each after those that it has itself; and usage, which stands elsewhere too."""
    for field in of.message(message).field:
        name = field.type_name.rpartition(".")[2]
        if field.type == _F.TYPE_MESSAGE and field.type_name == f".{of.file.package}.{name}":
            yield from _parts(of, name)
            yield name
    if message == _MAY_BE_EMPTY:
        yield message


def _words(of: _Contract) -> Iterator[str]:
    """The words of each enum that events have."""
    names = {of.message(message).name for _, each in of.payloads() for message in (*_parts(of, each), each)}
    used = {field.type_name for name in names for field in of.message(name).field if field.type == _F.TYPE_ENUM}
    for enum in of.file.enum_type:
        if enum.name != _OPEN and f".{of.file.package}.{enum.name}" in used:
            prefix = enum.value[0].name.removesuffix("UNSPECIFIED")
            words = ", ".join(f'"{value.name.removeprefix(prefix).lower()}"' for value in enum.value[1:])
            yield f"\n{enum.name} = Literal[{words}]"
    yield "\n"


def _model(of: _Contract, message: str, name: str, base: str, kind: str = "") -> str:
    said = of.comment(message)
    title = f"`{kind}`: {said[0].lower()}{said[1:]}" if kind else said.partition(". ")[0].removesuffix(".") + "."
    lines = [f"\nclass {name}({base}):", f'    """{title}"""\n']
    if kind in _OWN:
        lines.append(_OWN[kind])
    elif base in ("Event", "BaseModel"):
        lines += [_member(of, message, number) for number in range(len(of.message(message).field))]
    return "\n".join(lines)


def _member(of: _Contract, message: str, number: int) -> str:
    field = of.message(message).field[number]
    kind = _type(of, field)
    default = f"default={_EMPTY[kind]}, " if message == _MAY_BE_EMPTY and kind in _EMPTY else ""
    if message == _MAY_BE_EMPTY and not default:
        default = "default_factory=dict, " if kind.startswith("dict") else "default_factory=list, "
    said = of.comment(message, number).replace('"', "'")
    return f'    {_key(field)}: {kind} = Field({default}description="{said}")'


def _key(field: FieldDescriptorProto) -> str:
    return f"{field.name}_s" if field.type_name.endswith(".Duration") else field.name


def _type(of: _Contract, field: FieldDescriptorProto) -> str:
    """As services/gateway/encoding.py encodes it."""
    name = field.type_name.rpartition(".")[2]
    if field.label == _F.LABEL_REPEATED:
        single = _single(field, name)
        return f"dict[str, {_entry(of, field)}]" if name.endswith("Entry") else f"list[{single}]"
    if field.name == "arguments" and field.type == _F.TYPE_MESSAGE:
        return "dict[str, Any]"  # see services/gateway/streams/events.py
    single = _single(field, name)
    is_nullable = field.type in (_F.TYPE_MESSAGE, _F.TYPE_ENUM) or field.proto3_optional
    is_nullable |= field.name == "page" or field.name.endswith("_id")
    return single if not is_nullable or single.endswith("None") else f"{single} | None"


def _single(field: FieldDescriptorProto, name: str) -> str:
    if field.type == _F.TYPE_MESSAGE:
        known = _WELL_KNOWN if field.type_name.startswith(".google.protobuf.") else {}
        return known.get(name) or _COMMON.get(field.type_name) or _NAMES.get(name, name)
    return name if field.type == _F.TYPE_ENUM and name != _OPEN else _PLAIN.get(field.type, "int")


def _entry(of: _Contract, field: FieldDescriptorProto) -> str:
    message = of.message(field.type_name.rsplit(".", 2)[1])
    entry = next(each for each in message.nested_type if field.type_name.endswith(f".{each.name}"))
    return _single(entry.field[1], entry.field[1].type_name.rpartition(".")[2])


def page(of: _Contract, text: str) -> str:
    """docs/api.md with its table of events made anew."""
    rows = ["| event | says | carries |", "|---|---|---|"]
    for kind, message in of.payloads():
        own = re.findall(r"(\w+): .*Field", _OWN.get(kind, ""))
        keys = own or [_key(field) for field in of.message(message).field]
        rows.append(f"| `{kind}` | {of.comment(message)} | {', '.join(f'`{key}`' for key in keys)} |")
    table = "\n".join(["<!-- events -->", *rows, "<!-- /events -->"])
    return re.sub(r"<!-- events -->.*?<!-- /events -->", lambda _: table, text, flags=re.DOTALL)


def main(*, check: bool) -> int:
    of = contract()
    made = {_SCHEMAS: schemas(of), _PAGE: page(of, (_ROOT / _PAGE).read_text("utf-8"))}
    stale = [name for name, text in made.items() if (_ROOT / name).read_text("utf-8") != text]
    if check and stale:
        print(f"out of date: {', '.join(stale)}: run make gen and commit them", file=sys.stderr)
        return 1
    for name in stale:
        (_ROOT / name).write_text(made[name], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
