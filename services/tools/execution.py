"""Calls tools: arguments checked, time limited, work off the event loop, failures turned into results.

A coroutine function runs on the event loop. A plain one runs in a process of its own, which is killed when it takes too long: a
thread that hangs could not be.
"""

import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_process
import structlog
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from kit.deadline import bounded_timeout_s
from services.tools.calls import Calls
from services.tools.context import ToolContext
from services.tools.errors import (
    InvalidArguments,
    OutputTooLarge,
    ToolError,
    ToolNotAllowed,
    ToolsBusy,
    ToolTimedOut,
    UnknownTool,
)
from services.tools.models import Call, Effect, Tool, ToolOutcome, ToolOutput
from services.tools.result_cache import ResultCache

_log = structlog.get_logger()

OUTPUT_CHARACTERS_MAX = 100_000
"""Longer than any model's useful attention for one observation, and far below gRPC's message limit."""


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
    ) -> None:
        """`allowed` names the tools of tenants that may not use all. `context` is what a tool that asks for it is given."""
        self.tools = tools
        self._context = context
        self._once = calls
        self._allowed = allowed or {}
        self._gate = asyncio.Semaphore(calls_at_once)
        self._calls_max = calls_at_once + calls_waiting
        self._calls = 0
        self._processes = processes
        self._limiter: anyio.CapacityLimiter | None = None
        self._cache = ResultCache()

    def offered(self, tenant_id: str) -> list[Tool]:
        """The tools that the tenant may use, by name."""
        allowed = self._allowed.get(tenant_id, self.tools)
        return [tool for name, tool in self.tools.items() if name in allowed]

    async def forget(self, tenant_id: str, caller: str) -> None:
        """Erases what came of a run's calls; `caller` is its id. Raises Unavailable."""
        await self._once.forget(tenant_id, caller)

    async def call(self, call: Call) -> ToolOutcome:
        """Never raises for what the tool, its caller or the clock did wrong: that is a result."""
        started_at = time.monotonic()
        try:
            outcome = await self._called(call)
        except ToolError as error:
            outcome = ToolOutcome(False, time.monotonic() - started_at, None, error.reason, str(error))
        _log.info(
            "tool_called",
            tool=call.name[:80],
            call_id=call.call_id[:80],
            ok=outcome.ok,
            reason=outcome.error_reason,
            cached=outcome.cached,
            duration_ms=round(1000 * (time.monotonic() - started_at), 1),
        )
        return outcome

    async def _called(self, call: Call) -> ToolOutcome:
        tool = self._tool(call)
        _check(tool, call.arguments)
        if tool.cacheable and (known := self._cache.get(call)) is not None:
            return _succeeded(known, 0.0, cached=True)
        return await self._once.once(call, tool.policy, lambda: self._outcome(tool, call))

    def _tool(self, call: Call) -> Tool:
        offered = {tool.name: tool for tool in self.offered(call.tenant_id)}
        if call.allowed_tools:
            offered = {name: tool for name, tool in offered.items() if name in call.allowed_tools}
        if call.name in self.tools and call.name not in offered:
            raise ToolNotAllowed(f"{call.name} is not offered here; there are: {', '.join(offered) or 'none'}")
        if call.name not in offered:
            raise UnknownTool(f"there is no tool {call.name!r:.80}; there are: {', '.join(offered) or 'none'}")
        return offered[call.name]

    async def _outcome(self, tool: Tool, call: Call) -> ToolOutcome:
        started_at = time.monotonic()
        try:
            output = await self._output(tool, call)
        except ToolError as error:
            return ToolOutcome(False, time.monotonic() - started_at, None, error.reason, str(error))
        except Exception as error:
            _log.exception("tool_failed_unexpectedly", tool=tool.name, error=repr(error))
            message = f"{tool.name} failed unexpectedly; try other arguments or another way"
            return ToolOutcome(False, time.monotonic() - started_at, None, ToolError.reason, message)
        return _succeeded(output, time.monotonic() - started_at)

    async def _output(self, tool: Tool, call: Call) -> ToolOutput:
        # What changes something goes on when its caller hangs up, so the caller's deadline is not its own.
        own_s = tool.policy.timeout_s
        timeout_s = (bounded_timeout_s(own_s) if tool.policy.effect is Effect.NONE else own_s) or own_s
        try:
            async with asyncio.timeout(timeout_s), self._turn():
                output = _output_of(await self._run(tool, call))
        except TimeoutError as error:
            raise ToolTimedOut(f"{tool.name} took longer than {timeout_s:.1f} s; ask for less") from error
        size = _checked_size(tool.name, output.content)
        if tool.cacheable:
            self._cache.put(call, output, size)
        return output

    async def _run(self, tool: Tool, call: Call) -> Any:
        if inspect.iscoroutinefunction(tool.function):
            given = {"context": self._context(call)} if tool.wants_context else {}
            return await tool.function(**call.arguments, **given)
        self._limiter = self._limiter or anyio.CapacityLimiter(self._processes)
        return await anyio.to_process.run_sync(
            _run_tool, tool.function, dict(call.arguments), cancellable=True, limiter=self._limiter
        )

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._calls >= self._calls_max:
            raise ToolsBusy("too many tool calls wait already; try again in a moment")
        self._calls += 1
        try:
            async with self._gate:
                yield
        finally:
            self._calls -= 1


def _output_of(returned: Any) -> ToolOutput:
    return returned if isinstance(returned, ToolOutput) else ToolOutput(returned)


def _succeeded(output: ToolOutput, duration_s: float, *, cached: bool = False) -> ToolOutcome:
    return ToolOutcome(
        True, duration_s, output.content, cached=cached, summary=output.summary, passages=output.passages
    )


def _run_tool(function: Any, arguments: dict[str, Any]) -> Any:
    """In the other process."""
    return function(**arguments)


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    error = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if error is not None:
        where = f"{error.json_path.removeprefix('$.')}: " if error.path else ""
        raise InvalidArguments(f"{tool.name}: {where}{error.message[:300]}")


def _checked_size(name: str, output: Any) -> int:
    """Characters of the output's JSON."""
    try:
        size = len(json.dumps(output, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ToolError(f"{name} answered with something that JSON cannot hold") from error
    if size > OUTPUT_CHARACTERS_MAX:
        raise OutputTooLarge(f"{name} answered with {size} characters; at most {OUTPUT_CHARACTERS_MAX} are passed on")
    return size
