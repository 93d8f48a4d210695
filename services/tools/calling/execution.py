"""The door to all tools: a call is looked up, its arguments are checked, it is made once, and its outcome is returned.

    call → offered? → arguments? → noted (an effect) → the sources with their wrappers (see sources/chain.py)

The execution knows no origin of tools.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog
from opentelemetry.trace import Span, StatusCode

from kit.json_schema import SchemaRefused, first_violation
from kit.observability.telemetry import span
from services.tools.calling.bounds import shortened
from services.tools.calling.calls import Calls
from services.tools.calling.progress import Tell, unheard
from services.tools.errors import (
    CallInDoubt,
    InputNeeded,
    InvalidArguments,
    ToolBroke,
    ToolError,
    ToolNotAllowed,
    ToolsFull,
    ToolTimedOut,
    UnknownTool,
)
from services.tools.metrics import CALLS, SECONDS, UNKNOWN_TOOL, outcome_of
from services.tools.models import Call, Caller, Effect, FunctionTool, Tool, ToolOutcome, ToolOutput
from services.tools.sources.failures import ServiceSilent
from services.tools.sources.limits import TOO_MANY, Turns
from services.tools.sources.source import ToolSource

_log = structlog.get_logger()
_ERROR_CHARACTERS_MAX = 1000


class Toolbox:
    """All tools behind one door."""

    def __init__(self, source: ToolSource, calls: Calls, turns: Turns) -> None:
        """`turns` are those that calls of the source wait for."""
        self._source = source
        self._once = calls
        self._turns = turns

    async def offered(self, caller: Caller) -> list[Tool]:
        """The tools that the caller may use, by name. One that is another name of a tool stands in that tool's `other_names`."""
        listed = sorted(await self._source.list(caller), key=lambda tool: tool.name)
        names: dict[str, list[str]] = defaultdict(list)
        for tool in listed:
            names[tool.policy.other_name_of].append(tool.name)
        return [
            replace(tool, other_names=tuple(names.get(tool.name, ())))
            for tool in listed
            if tool.refusal is None and not tool.policy.other_name_of
        ]

    async def forget(self, tenant_id: str, caller: str) -> None:
        """Erases what came of a run's calls; `caller` is its id. Raises Unavailable."""
        await self._once.forget(tenant_id, caller)

    async def call(self, call: Call, tell: Tell = unheard) -> ToolOutcome:
        """Never raises for what the tool, its caller or the clock did wrong: that is a result. `tell` is given what the tool tells
        the person meanwhile."""
        known = await self._known(call)
        name = call.name if call.name in known else UNKNOWN_TOOL
        started_at = time.monotonic()
        with span(f"execute_tool {name}") as traced:
            try:
                outcome = await self._called(_permitted(known, call), call, tell)
            except ToolError as error:
                outcome = _failed(error, started_at)
            except asyncio.CancelledError:
                CALLS.labels(tool=name, outcome="abandoned").inc()
                raise
            _trace(traced, name, call, outcome, time.monotonic() - started_at)
        return outcome

    async def check_room(self, call: Call) -> None:
        """Raises ToolsFull when the call would be turned away as one too many. Not for a call with an effect, where something
        may be known already."""
        if not self._turns.is_full:
            return
        tool = (await self._known(call)).get(call.name)
        if tool is not None and tool.policy.effect is Effect.NONE:
            CALLS.labels(tool=tool.name, outcome="busy").inc()
            raise ToolsFull(TOO_MANY)

    async def _known(self, call: Call) -> dict[str, Tool]:
        return {tool.name: tool for tool in await self._source.list(call.caller)}

    async def _called(self, tool: Tool, call: Call, tell: Tell) -> ToolOutcome:
        _check(tool, call.arguments)
        return await self._once.once(call, tool.policy, lambda: self._outcome(tool, call, tell))

    async def _outcome(self, tool: Tool, call: Call, tell: Tell) -> ToolOutcome:
        started_at = time.monotonic()
        try:
            output = await self._source.call(tool, call, tell)
        except ToolError as error:
            return _failed(_as_known(tool, error), started_at)
        return _succeeded(output, time.monotonic() - started_at)


def _permitted(known: Mapping[str, Tool], call: Call) -> Tool:
    """The tool that is called. Raises ToolError where the caller may not call it, or nobody can."""
    allowed = call.allowed_tools or known
    offered = (
        ", ".join(sorted(name for name, tool in known.items() if name in allowed and tool.refusal is None)) or "none"
    )
    tool = known.get(call.name)
    if tool is None:
        raise UnknownTool(f"there is no tool {call.name!r:.80}; there are: {offered}")
    if tool.name not in allowed or isinstance(tool.refusal, ToolNotAllowed):
        raise ToolNotAllowed(f"{call.name} is not offered here; there are: {offered}")
    if tool.refusal is not None:
        raise tool.refusal
    return tool


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    try:
        error = first_violation(tool.parameters, arguments, trusted=isinstance(tool, FunctionTool))
    except SchemaRefused as refused:
        raise InvalidArguments(f"{tool.name}: its schema {refused}") from refused
    if error is not None:
        where = f"{error.json_path.removeprefix('$.')}: " if error.path else ""
        raise InvalidArguments(f"{tool.name}: {where}{error.message[:300]}")


def _as_known(tool: Tool, error: ToolError) -> ToolError:
    """What must not be done twice may have been done by a call that was cut off or broke."""
    if tool.policy.effect is Effect.ONCE and isinstance(error, ToolTimedOut | ToolBroke | ServiceSilent):
        return CallInDoubt(
            f"{error}. It may have been done all the same; look whether it was, before anybody does it anew"
        )
    return error


def _succeeded(output: ToolOutput, duration_s: float) -> ToolOutcome:
    return ToolOutcome(
        True,
        duration_s,
        output.content,
        cached=output.cached,
        summary=output.summary,
        passages=output.passages,
        quotes=output.quotes,
    )


def _failed(error: ToolError, started_at: float) -> ToolOutcome:
    said = shortened(str(error), _ERROR_CHARACTERS_MAX)
    need = error.need if isinstance(error, InputNeeded) else None
    return ToolOutcome(False, time.monotonic() - started_at, None, error.reason, said, need=need)


def _trace(traced: Span, name: str, call: Call, outcome: ToolOutcome, took_s: float) -> None:
    """One line of the log, one span, and the metrics; without arguments, which are the user's words."""
    label = outcome_of(outcome)
    CALLS.labels(tool=name, outcome=label).inc()
    if not outcome.cached:
        SECONDS.labels(tool=name).observe(took_s)
    facts: dict[str, str | bool] = {
        "tool": name,
        "outcome": label,
        "reason": outcome.error_reason,
        "cached": outcome.cached,
    }
    traced.set_attributes(
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call_id[:200],
            "groundwork.tool.outcome": label,
            "groundwork.tool.reason": outcome.error_reason,
            "groundwork.tool.cached": outcome.cached,
        }
    )
    if not outcome.ok:
        traced.set_attribute("error.type", outcome.error_reason)
        traced.set_status(StatusCode.ERROR, outcome.error_reason)
    _log.info("tool_called", **facts, call_id=call.call_id[:200], duration_ms=round(1000 * took_s, 1))
