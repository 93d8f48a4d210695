"""The first source of tools: Python modules. A coroutine function runs on the event loop, a plain one in a process of its own, so
that these are two sources: the start of a process does not count against the tool's time."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.tools.calling.processes import Processes
from services.tools.calling.progress import Tell
from services.tools.connections.records import Connections, not_connected
from services.tools.context import ToolContext
from services.tools.errors import ToolUnavailable
from services.tools.models import Call, Caller, FunctionTool, Tool, ToolOutput
from services.tools.sources.limits import Deadline, limit_s
from services.tools.sources.source import Combined, ToolSource, Wrapper


def module_source(
    tools: Mapping[str, FunctionTool], processes: Processes, context: Callable[[Call], ToolContext]
) -> ToolSource:
    """The tools of modules. `context` makes what a tool that asks for it is given."""
    coroutines = {name: tool for name, tool in tools.items() if inspect.iscoroutinefunction(tool.function)}
    plain = {name: tool for name, tool in tools.items() if name not in coroutines}
    return Combined([Deadline(Coroutines(coroutines, context)), PlainFunctions(plain, processes)])


class _Functions:
    def __init__(self, tools: Mapping[str, FunctionTool]) -> None:
        self._tools = tools

    async def list(self, caller: Caller) -> Sequence[Tool]:  # noqa: ARG002 - modules are the same for everybody
        return [_listed(tool) for tool in self._tools.values()]


class Connected(Wrapper):
    """Refuses tools of services that the caller has not connected, so that they are not offered."""

    def __init__(self, inside: ToolSource, connections: Connections) -> None:
        super().__init__(inside)
        self._connections = connections

    async def list(self, caller: Caller) -> Sequence[Tool]:
        return [self._listed(tool, caller) for tool in await super().list(caller)]

    def _listed(self, tool: Tool, caller: Caller) -> Tool:
        service = tool.connection if isinstance(tool, FunctionTool) else ""
        if not service or self._connections.find(caller.tenant_id, caller.subject, service):
            return tool
        return replace(tool, refusal=not_connected(service))


class Coroutines(_Functions):
    """Coroutine functions, on the event loop."""

    def __init__(self, tools: Mapping[str, FunctionTool], context: Callable[[Call], ToolContext]) -> None:
        super().__init__(tools)
        self._context = context

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        found = self._tools[tool.name]
        given = {"context": replace(self._context(call), progress=tell)} if found.wants_context else {}
        return _output(found, await found.function(**call.arguments, **given))


class PlainFunctions(_Functions):
    """Plain functions, in processes, which keep the tool's time themselves."""

    def __init__(self, tools: Mapping[str, FunctionTool], processes: Processes) -> None:
        super().__init__(tools)
        self._processes = processes

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:  # noqa: ARG002 - a process tells nothing
        found = self._tools[tool.name]
        return _output(found, await self._processes.run(found.function, call.arguments, limit_s(tool)))


def _listed(tool: FunctionTool) -> Tool:
    if not tool.missing:
        return tool
    return replace(tool, refusal=ToolUnavailable(f"{tool.name} is not set up here: {tool.missing}"))


def _output(tool: FunctionTool, returned: Any) -> ToolOutput:
    if isinstance(returned, ToolOutput):
        return returned
    return ToolOutput(returned, tool.summarise(returned) if tool.summarise else "")
