"""Tools of an MCP server as tools of ours. What the server says of them is a stranger's text: it is bounded, marked, and shown to a
model only while it is the text that somebody has approved."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kit.json_schema import SchemaRefused, check_schema
from services.tools.calling.progress import Tell
from services.tools.models import Call, Effect, Policy, Tool, ToolOutput

SEPARATOR = "__"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DESCRIPTION_CHARACTERS_MAX = 2000
_SCHEMA_BYTES_MAX = 20_000
_PATTERNS = ("pattern", "patternProperties")
"""A stranger's regular expression could keep our process busy for ever: the server checks them itself."""
_CLOSING = ("additionalProperties", "unevaluatedProperties")
_NAMED = ("properties", "$defs", "definitions", "dependentSchemas")


@dataclass(frozen=True)
class RemoteTool:
    """A tool as its server describes it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    digest: str = ""
    """SHA-256 of all that the server says of the tool: what is approved."""


@dataclass(frozen=True)
class RemotePolicy:
    """What an operator says of a server's tools."""

    approved: Mapping[str, str] = field(default_factory=dict)
    """Digests of approved tools by name. Others are withheld."""
    read_only: Collection[str] = ()
    """Tools that change nothing: no person is asked. Whatever the server says of itself does not count."""
    cached: bool = False
    """Whether results of read-only tools may be used again for the same arguments."""
    timeout_s: float = 20.0


class RemoteServer(Protocol):
    """An MCP server."""

    async def tools(self) -> list[RemoteTool]:
        """All its tools. Raises ToolError."""
        ...

    async def call(self, tool: RemoteTool, call: Call, tell: Tell, *, reads: bool) -> ToolOutput:
        """Calls a tool. `reads`: it changes nothing, so that the server may ask, where that is set. Raises InputNeeded for a
        question that has no answer in the call, UnknownTool where the server says something else of the tool by now, and ToolError.
        """
        ...

    def close(self) -> None:
        """Ends what is open to the server and not in use."""
        ...


def digest_of(described: Mapping[str, Any]) -> str:
    """The digest of a tool's description, whatever the order of its members."""
    words = json.dumps(described, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(words.encode()).hexdigest()


def tool_of(server: str, remote: RemoteTool, policy: RemotePolicy) -> Tool:
    """The tool as models are shown it. Raises ValueError for one that cannot be."""
    name = f"{server}{SEPARATOR}{remote.name}"
    if not _NAME.fullmatch(name):
        raise ValueError("its name is too long, or has other characters than letters, digits, '_', '-' and '.'")
    reads = remote.name in policy.read_only
    description = remote.description[:_DESCRIPTION_CHARACTERS_MAX]
    return Tool(
        name=name,
        description=f"(From the server {server}, which is not ours.) {description}",
        parameters=checked(remote.input_schema),
        cacheable=reads and policy.cached,
        policy=Policy(
            timeout_s=policy.timeout_s,
            needs_approval=not reads,
            effect=Effect.NONE if reads else Effect.ONCE,
            parallel_safe=reads,
        ),
    )


def checked(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A stranger's schema of an object, without patterns. Raises ValueError."""
    if len(json.dumps(schema)) > _SCHEMA_BYTES_MAX:
        raise ValueError(f"its schema has more than {_SCHEMA_BYTES_MAX} bytes")
    cleaned: dict[str, Any] = _without_patterns(schema)
    if cleaned.get("type") != "object":
        raise ValueError("its schema describes no JSON object")
    try:
        check_schema(cleaned)
    except SchemaRefused as refused:
        raise ValueError(f"its schema {refused}") from refused
    return cleaned


def _without_patterns(value: Any, *, are_names: bool = False) -> Any:
    """`are_names`: whether the members of the object are named by the tool, and are no words of JSON Schema."""
    if isinstance(value, list):
        return [_without_patterns(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    left_out = () if are_names else (*_PATTERNS, *(_CLOSING if "patternProperties" in value else ()))
    return {
        key: _without_patterns(each, are_names=not are_names and key in _NAMED)
        for key, each in value.items()
        if key not in left_out
    }
