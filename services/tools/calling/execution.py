"""Calls tools: arguments checked, time limited, work off the event loop, failures turned into results.

    call → offered? → arguments? → remembered? → noted (an effect) → breaker → turn → tool → bounds

A coroutine function runs on the event loop, a plain one in a process (see processes.py). A tool that fails again and again by its
own fault, or by that of a service behind it, is left alone for a while; one that says no to what was asked works.
"""

import asyncio
import inspect
import math
import time
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import structlog
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from opentelemetry.trace import Span, StatusCode

from kit.access.principal import SCOPES, grant
from kit.breaker import CircuitBreaker
from kit.deadline import bounded_timeout_s, is_spent, limited_to
from kit.errors import (
    Cancelled,
    DeadlineExceeded,
    GroundworkError,
    Internal,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from kit.telemetry import span
from services.tools.calling.bounds import bounded, shortened
from services.tools.calling.calls import Calls
from services.tools.calling.processes import Processes
from services.tools.calling.progress import Tell, unheard
from services.tools.calling.result_cache import ResultCache
from services.tools.context import ToolContext
from services.tools.errors import (
    CallInDoubt,
    InvalidArguments,
    ScopeMissing,
    ServiceUnavailable,
    ToolBroke,
    ToolError,
    ToolNotAllowed,
    ToolsBusy,
    ToolsFull,
    ToolTimedOut,
    ToolUnavailable,
    UnknownTool,
)
from services.tools.metrics import CALLS, SECONDS, UNKNOWN_TOOL, outcome_of, show_breaker
from services.tools.models import Call, Effect, Tool, ToolOutcome, ToolOutput

_log = structlog.get_logger()
_ERROR_CHARACTERS_MAX = 1000
_TOO_MANY = "too many tool calls wait already; try again in a moment"
_AWAY = (Unavailable, DeadlineExceeded, Cancelled)  # Cancelled is what a stopping server says
_BROKEN = (Internal, Unimplemented)


class _ServiceSilent(ServiceUnavailable):
    """The tool did not foresee it, so nobody knows what was done by then."""


class Toolbox:
    """All tools behind one door."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        calls: Calls,
        *,
        calls_at_once: int,
        calls_waiting: int,
        processes: int,
        allowed: Mapping[str, Collection[str]] | None = None,
        context: Callable[[Call], ToolContext],
        breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
    ) -> None:
        """`allowed` names the tools of tenants that may not use all. `context` is what a tool that asks for it is given, `breaker`
        makes that of a tool."""
        self.tools = tools
        self._context = context
        self._once = calls
        self._allowed = allowed or {}
        self._gate = asyncio.Semaphore(calls_at_once)
        self._calls_max = calls_at_once + calls_waiting
        self._calls = 0
        self._processes = Processes(processes)
        self._cache = ResultCache()
        self._breakers = {name: breaker() for name in tools}
        for name, made in self._breakers.items():
            show_breaker(name, lambda made=made: made.state)  # type: ignore[misc]

    def offered(self, tenant_id: str, scopes: Collection[str] = SCOPES) -> list[Tool]:
        """The tools that a caller of the tenant with these scopes may use and that are set up, by name."""
        return [tool for tool in self._permitted(tenant_id) if not tool.missing and grant(scopes, tool.policy.scope)]

    async def forget(self, tenant_id: str, caller: str) -> None:
        """Erases what came of a run's calls; `caller` is its id. Raises Unavailable."""
        await self._once.forget(tenant_id, caller)

    async def call(self, call: Call, tell: Tell = unheard) -> ToolOutcome:
        """Never raises for what the tool, its caller or the clock did wrong: that is a result. `tell` is told what the tool tells
        the person meanwhile."""
        name = call.name if call.name in self.tools else UNKNOWN_TOOL
        started_at = time.monotonic()
        with span(f"execute_tool {name}") as traced:
            try:
                outcome = await self._called(call, tell)
            except ToolError as error:
                outcome = _failed(error, started_at)
            except asyncio.CancelledError:
                CALLS.labels(tool=name, outcome="abandoned").inc()
                raise
            _trace(traced, name, call, outcome, time.monotonic() - started_at)
        return outcome

    def check_room(self, call: Call) -> None:
        """Raises ToolsFull when the call would be turned away as one too many. Not of one with an effect, of which something may be
        known already."""
        tool = self.tools.get(call.name)
        if tool is not None and tool.policy.effect is Effect.NONE and self._is_full():
            CALLS.labels(tool=tool.name, outcome="busy").inc()
            raise ToolsFull(_TOO_MANY)

    async def _called(self, call: Call, tell: Tell) -> ToolOutcome:
        tool = self._tool(call)
        _check(tool, call.arguments)
        if tool.cacheable and (known := self._cache.get(call)) is not None:
            return _succeeded(known, 0.0, cached=True)
        return await self._once.once(call, tool.policy, lambda: self._outcome(tool, call, tell))

    def _permitted(self, tenant_id: str) -> list[Tool]:
        allowed = self._allowed.get(tenant_id, self.tools)
        return [tool for name, tool in self.tools.items() if name in allowed]

    def _tool(self, call: Call) -> Tool:
        permitted = {tool.name: tool for tool in self._permitted(call.tenant_id)}
        if call.allowed_tools:
            permitted = {name: tool for name, tool in permitted.items() if name in call.allowed_tools}
        if call.name in permitted and not grant(call.scopes, scope := permitted[call.name].policy.scope):
            raise ScopeMissing(
                f"{call.name} needs the scope {scope!r}, which its caller does not have: go on without it, and tell the person "
                "that it takes an API key with that scope"
            )
        if call.name in permitted and (missing := permitted[call.name].missing):
            raise ToolUnavailable(f"{call.name} is not set up here: {missing}")
        if call.name in permitted:
            return permitted[call.name]
        offered = ", ".join(name for name, tool in permitted.items() if _is_offered(tool, call)) or "none"
        if call.name in self.tools:
            raise ToolNotAllowed(f"{call.name} is not offered here; there are: {offered}")
        raise UnknownTool(f"there is no tool {call.name!r:.80}; there are: {offered}")

    async def _outcome(self, tool: Tool, call: Call, tell: Tell) -> ToolOutcome:
        started_at = time.monotonic()
        try:
            output = await self._guarded(tool, call, tell)
        except ToolError as error:
            return _failed(_as_known(tool, error), started_at)
        return _succeeded(output, time.monotonic() - started_at)

    async def _guarded(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        """What comes of the tool, unless its breaker is open."""
        breaker = self._breakers[tool.name]
        if not breaker.allow():
            raise ToolUnavailable(
                f"{tool.name} keeps failing and is left alone for now; it is tried again in {math.ceil(breaker.wait_s) or 1} s"
            )
        settle = breaker.abandoned
        try:
            output = await self._output(tool, call, tell)
            settle = breaker.succeeded
        except ToolError as error:
            if _is_fault(error):
                settle = breaker.failed
            raise
        else:
            return output
        finally:
            settle()

    async def _output(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        async with self._turn(tool):
            returned = await self._returned(tool, call, tell)
        output = returned if isinstance(returned, ToolOutput) else ToolOutput(returned)
        try:
            output, size_bytes = bounded(tool.name, output)
        except ToolError as error:
            if tool.policy.effect is Effect.NONE:
                raise
            raise type(error)(f"{tool.name} was done, but what it says cannot be passed on: {error}") from error
        if tool.cacheable and not output.passages:  # passages must not outlive their document
            self._cache.put(call, output, size_bytes)
        return output

    async def _returned(self, tool: Tool, call: Call, tell: Tell) -> Any:
        limit_s = _limit_s(tool)
        try:
            if not inspect.iscoroutinefunction(tool.function):
                return await self._processes.run(tool.function, call.arguments, limit_s)
            with limited_to(limit_s):
                async with asyncio.timeout(limit_s):
                    given = {"context": replace(self._context(call), progress=tell)} if tool.wants_context else {}
                    return await tool.function(**call.arguments, **given)
        except ToolError:
            raise
        except TimeoutError as error:
            raise ToolTimedOut(f"{tool.name} took longer than {limit_s:.1f} s; ask for less") from error
        except GroundworkError as error:
            raise _of_a_service(tool.name, error) from error
        except Exception as error:
            # What it says may quote the arguments.
            frame = traceback.extract_tb(error.__traceback__)[-1]
            _log.error("tool_broke", tool=tool.name, error=type(error).__name__, at=f"{frame.filename}:{frame.lineno}")
            _log.debug("tool_broke_because", tool=tool.name, exc_info=error)
            raise ToolBroke(f"{tool.name} failed unexpectedly; try other arguments or another way") from error

    def _is_full(self) -> bool:
        return self._calls >= self._calls_max

    @asynccontextmanager
    async def _turn(self, tool: Tool) -> AsyncIterator[None]:
        if self._is_full():
            raise ToolsBusy(_TOO_MANY)
        self._calls += 1
        try:
            try:
                async with asyncio.timeout(_limit_s(tool)):
                    await self._gate.acquire()
            except TimeoutError as error:
                raise ToolsBusy("the call has waited for its turn for too long; try again in a moment") from error
            try:
                yield
            finally:
                self._gate.release()
        finally:
            self._calls -= 1


def _is_offered(tool: Tool, call: Call) -> bool:
    return not tool.missing and grant(call.scopes, tool.policy.scope)


def _limit_s(tool: Tool) -> float:
    """What changes something goes on when its caller hangs up, so the caller's deadline is not its own."""
    own_s = tool.policy.timeout_s
    if tool.policy.effect is not Effect.NONE:
        return own_s
    limit_s = bounded_timeout_s(own_s)
    return own_s if limit_s is None else limit_s


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    error = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if error is not None:
        where = f"{error.json_path.removeprefix('$.')}: " if error.path else ""
        raise InvalidArguments(f"{tool.name}: {where}{error.message[:300]}")


def _is_fault(error: ToolError) -> bool:
    """Whether the tool failed, or a service behind it, rather than refused. A caller that left no time says nothing about them."""
    broke = isinstance(error, ToolTimedOut | ToolBroke | ServiceUnavailable)
    return (broke or isinstance(error.__cause__, (*_AWAY, *_BROKEN))) and not is_spent()


def _of_a_service(tool_name: str, error: GroundworkError) -> ToolError:
    """For tools that do not translate what a service says themselves."""
    if isinstance(error, _AWAY):
        return _ServiceSilent(f"a service that {tool_name} needs does not answer now; try again in a minute")
    if isinstance(error, Unauthenticated | PermissionDenied):
        return ToolError(
            f"{tool_name} may not do this in its caller's name: {error.message}; ask again, or ask the operator",
            reason=error.reason,
        )
    if isinstance(error, _BROKEN):
        return ToolBroke(f"a service that {tool_name} needs has failed; try again, or another way")
    return ToolError(error.message, reason=error.reason)


def _as_known(tool: Tool, error: ToolError) -> ToolError:
    """What must not be done twice may have been done by a call that was cut off or broke."""
    if tool.policy.effect is Effect.ONCE and isinstance(error, ToolTimedOut | ToolBroke | _ServiceSilent):
        return CallInDoubt(
            f"{error}. It may have been done all the same; look whether it was, before anybody does it anew"
        )
    return error


def _succeeded(output: ToolOutput, duration_s: float, *, cached: bool = False) -> ToolOutcome:
    return ToolOutcome(
        True, duration_s, output.content, cached=cached, summary=output.summary, passages=output.passages
    )


def _failed(error: ToolError, started_at: float) -> ToolOutcome:
    said = shortened(str(error), _ERROR_CHARACTERS_MAX)
    return ToolOutcome(False, time.monotonic() - started_at, None, error.reason, said)


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
