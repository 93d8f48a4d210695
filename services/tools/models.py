"""Tools and what comes out of calling them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Policy:
    """How a tool may be called. A tool module sets POLICY to one of these, or leaves the defaults."""

    timeout_s: float = 10.0
    """Longest a call may take: a person waits for it."""
    parallel_safe: bool = True
    """Whether calls may run beside each other."""
    needs_approval: bool = False
    """Whether a person must allow each call; for tools that change something in the world."""


@dataclass(frozen=True)
class Tool:
    """A discovered tool."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments, as in OpenAI function calling."""
    function: Callable[..., Any]
    """Called with the arguments by name; a coroutine function or a plain one. Returns something that JSON can hold."""
    cacheable: bool
    policy: Policy


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a call, good or bad."""

    ok: bool
    duration_s: float
    output: Any = None
    error_reason: str = ""
    error_message: str = ""
