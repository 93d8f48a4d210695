"""Calls that change something outside of the run: what one is, and what may become of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from kit.stores.forgetting import Source
from services.orchestrator.log.events import EffectClass, Evidence, ToolResult

IN_DOUBT = "IN_DOUBT"


class Fate(Enum):
    """What an executor says about a call id whose result it does not have."""

    NEVER_BEGAN = "never began"
    """It is sure that no call of this id has begun, and should one still arrive from a worker that was only slow, it takes both for
    one."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ToolNeed:
    """What a tool asks in the middle of a call, a stranger's text: it is to be called again with the answer."""

    kind: str
    """`sampling`: words of a model; `elicitation`: words of the user."""
    digest: str
    content: Mapping[str, Any]


@dataclass(frozen=True)
class ToolAnswer:
    """The answer to what a tool has asked."""

    digest: str
    text: str
    model: str = ""


@dataclass(frozen=True)
class ToolOutcome:
    """What came of a call. One that failed is an observation like any other."""

    ok: bool
    content: Any = None
    """What the model reads: JSON."""
    summary: str = ""
    """What a person is shown."""
    error_reason: str = ""
    duration_s: float = 0.0
    evidence: Sequence[Evidence] = ()
    """The passages whose text the content holds, in its order; their numbers are the tool's own."""
    need: ToolNeed | None = None
    quotes: Sequence[Source] = ()
    """What else the content quotes. Not recorded: it is noted before."""

    @property
    def is_in_doubt(self) -> bool:
        return self.error_reason == IN_DOUBT

    def event(self, call_id: str) -> ToolResult:
        problem = "" if self.ok else self.summary
        return ToolResult(call_id, self.ok, self.summary, self.duration_s, self.error_reason, problem)


class Call(Protocol):
    """One call of a tool, ready to be made."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Any]: ...

    @property
    def effect(self) -> EffectClass: ...

    async def run(self, call_id: str) -> ToolOutcome:
        """Makes the call. Raises GroundworkError when it fails."""
        ...

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        """What came of an earlier call of this id; may wait for one that is under way."""
        ...
