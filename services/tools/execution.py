"""Calls tools: arguments checked, time limited, work off the event loop, failures turned into results."""

import asyncio
import inspect
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import structlog
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from kit.deadline import bounded_timeout_s
from services.tools.errors import InvalidArguments, OutputTooLarge, ToolError, ToolsBusy, ToolTimedOut, UnknownTool
from services.tools.models import Tool, ToolOutcome

_log = structlog.get_logger()

OUTPUT_CHARACTERS_MAX = 100_000
"""Longer than any model's useful attention for one observation, and far below gRPC's message limit."""


class Toolbox:
    """All tools behind one door."""

    def __init__(
        self, tools: Mapping[str, Tool], executor: ThreadPoolExecutor, *, calls_at_once: int, calls_waiting: int
    ) -> None:
        """`executor` needs `calls_at_once` threads: a call that runs out of time keeps its thread until it really ends."""
        self.tools = tools
        self._executor = executor
        self._gate = asyncio.Semaphore(calls_at_once)
        self._calls_max = calls_at_once + calls_waiting
        self._calls = 0

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Never raises for what the tool, its caller or the clock did wrong: that is a result."""
        started_at = time.monotonic()
        try:
            output = await self._call(name, arguments)
        except ToolError as error:
            return ToolOutcome(False, time.monotonic() - started_at, None, error.reason, str(error))
        except Exception as error:
            _log.exception("tool_failed_unexpectedly", tool=name, error=repr(error))
            message = f"{name} failed unexpectedly; try other arguments or another way"
            return ToolOutcome(False, time.monotonic() - started_at, None, ToolError.reason, message)
        return ToolOutcome(True, time.monotonic() - started_at, output)

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        tool = self.tools.get(name)
        if tool is None:
            raise UnknownTool(f"there is no tool {name!r:.80}; there are: {', '.join(self.tools) or 'none'}")
        _check(tool, arguments)
        timeout_s = bounded_timeout_s(tool.policy.timeout_s)
        try:
            async with asyncio.timeout(timeout_s), self._turn():
                output = await self._run(tool, arguments)
        except TimeoutError as error:
            raise ToolTimedOut(f"{name} took longer than {timeout_s:.1f} s; ask for less") from error
        return _checked_output(name, output)

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        if inspect.iscoroutinefunction(tool.function):
            return await tool.function(**arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: tool.function(**arguments))

    @asynccontextmanager
    async def _turn(self) -> Any:
        if self._calls >= self._calls_max:
            raise ToolsBusy("too many tool calls wait already; try again in a moment")
        self._calls += 1
        try:
            async with self._gate:
                yield
        finally:
            self._calls -= 1


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    error = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if error is not None:
        where = f"{error.json_path.removeprefix('$.')}: " if error.path else ""
        raise InvalidArguments(f"{tool.name}: {where}{error.message[:300]}")


def _checked_output(name: str, output: Any) -> Any:
    try:
        size = len(json.dumps(output, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ToolError(f"{name} answered with something that JSON cannot hold") from error
    if size > OUTPUT_CHARACTERS_MAX:
        raise OutputTooLarge(f"{name} answered with {size} characters; at most {OUTPUT_CHARACTERS_MAX} are passed on")
    return output
