"""Makes calls that change something outside of the run, and settles one whose worker died before it knew the result."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import structlog

from kit import deadline
from kit.errors import DeadlineExceeded, GroundworkError, Internal, Unavailable
from services.orchestrator.log.events import EffectClass
from services.orchestrator.steps.effects import IN_DOUBT, Call, Fate, ToolOutcome

_log = structlog.get_logger()
_ASKING_S = 2.0
"""For asking what came of a call that ran out of time, out of what the run keeps for its answer."""
_MAY_HAVE_BEEN_DONE = (Unavailable, DeadlineExceeded, Internal)
"""Errors after which a call may have taken effect all the same. Any other is a refusal."""


def arguments_hash(arguments: Mapping[str, Any] | None) -> str:
    """SHA-256 of the arguments as JSON with sorted keys and no spaces, hex."""
    text = json.dumps(arguments or {}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def make(call: Call, call_id: str) -> ToolOutcome:
    """The outcome of a call that was never made before. A failure that leaves open whether it took effect is settled."""
    try:
        return await call.run(call_id)
    except _MAY_HAVE_BEEN_DONE as error:
        return _failed(error) if call.effect is EffectClass.NONE else await _settled_once(call, call_id, error)
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
    """What came of a call that ended with `error`, as far as anybody knows."""
    left_s = deadline.remaining_s()
    # The call may have taken all the time that there was, and be done a moment later.
    with deadline.limited_to(max(left_s, _ASKING_S)) if left_s is not None else nullcontext():
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
