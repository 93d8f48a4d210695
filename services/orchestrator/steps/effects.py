"""Calls that change something outside of the run, and what to make of one whose worker died before it knew the result."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import structlog

from kit.errors import DeadlineExceeded, GroundworkError, Internal, Unavailable
from services.orchestrator.log.events import EffectClass, Evidence, ToolResult

_log = structlog.get_logger()
IN_DOUBT = "IN_DOUBT"
_MAY_HAVE_BEEN_DONE = (Unavailable, DeadlineExceeded, Internal)
"""Errors after which a call may have taken effect all the same. Any other is a refusal."""


class Fate(Enum):
    """What an executor says about a call id whose result it does not have."""

    NEVER_BEGAN = "never began"
    """It is sure that no call of this id has begun, and should one still arrive from a worker that was only slow, it takes both for
    one."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ToolOutcome:
    """What came of a call. One that failed is an observation like any other."""

    ok: bool
    content: Any = None
    """What the model is told: JSON."""
    summary: str = ""
    """What a person is shown."""
    error_reason: str = ""
    duration_s: float = 0.0
    evidence: Sequence[Evidence] = ()
    """The passages whose text the content holds, in its order; their numbers are the tool's own."""

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


def arguments_hash(arguments: Mapping[str, Any] | None) -> str:
    """SHA-256 of the arguments as JSON with sorted keys and no spaces, hex."""
    text = json.dumps(arguments or {}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def make(call: Call, call_id: str) -> ToolOutcome:
    """The outcome of a call that was never made before. A failure that leaves open whether it took effect is settled."""
    try:
        return await call.run(call_id)
    except _MAY_HAVE_BEEN_DONE as error:
        if call.effect is EffectClass.NONE:
            return _failed(error)
        return await _settled_once(call, call_id, error)
    except GroundworkError as error:
        return _failed(error)
    except Exception as error:
        _log.exception("tool_call_failed", tool=call.name, error=type(error).__name__)
        return in_doubt(call.name) if not _may_repeat(call) else _failed(Internal(f"tool {call.name} broke"))


async def settle(call: Call, call_id: str) -> ToolOutcome:
    """The outcome of a call that was about to be made when its worker died: asked for by its id first, then made again if that
    does no harm."""
    found = await _found(call, call_id)
    if isinstance(found, ToolOutcome):
        return found
    if found is Fate.NEVER_BEGAN or _may_repeat(call):
        return await make(call, call_id)
    return in_doubt(call.name)


async def _settled_once(call: Call, call_id: str, error: GroundworkError) -> ToolOutcome:
    found = await _found(call, call_id)
    if isinstance(found, ToolOutcome):
        return found
    if found is Fate.NEVER_BEGAN:
        return ToolOutcome(False, summary=f"{call.name} could not be reached.", error_reason="UNAVAILABLE")
    return _failed(error) if _may_repeat(call) else in_doubt(call.name)


async def _found(call: Call, call_id: str) -> ToolOutcome | Fate:
    try:
        return await call.find(call_id)
    except GroundworkError as error:
        _log.warning("tool_call_fate_unknown", tool=call.name, reason=error.reason)
        return Fate.UNKNOWN


def _may_repeat(call: Call) -> bool:
    return call.effect in (EffectClass.NONE, EffectClass.IDEMPOTENT)


def in_doubt(name: str) -> ToolOutcome:
    """Nobody knows, and nobody tries again."""
    said = f"Nobody knows whether {name} took effect. It is not repeated; please look."
    return ToolOutcome(False, content={"error": IN_DOUBT, "message": said}, summary=said, error_reason=IN_DOUBT)


def _failed(error: GroundworkError) -> ToolOutcome:
    content = {"error": error.reason, "message": error.message}
    return ToolOutcome(False, content=content, summary=error.message, error_reason=error.reason)
