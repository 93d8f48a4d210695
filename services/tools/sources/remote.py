"""MCP servers as a source of tools. Lists are read in the background and kept, so that a server that does not answer holds up no
run; a tool is offered while what its server says of it has the digest that was approved."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from services.tools.calling.progress import Tell
from services.tools.errors import ToolError, UnknownTool
from services.tools.models import Call, Caller, Tool, ToolOutput
from services.tools.sources.remote_tools import SEPARATOR, RemotePolicy, RemoteServer, tool_of

_log = structlog.get_logger()
_LIST_TIMEOUT_S = 20.0
_TOOLS_MAX = 200
"""Of one server: more would push all others out of a model's sight."""


@dataclass
class _Listed:
    server: RemoteServer
    policy: RemotePolicy
    tools: dict[str, Tool] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    """Why a tool is not offered, by its name; said once in the log."""


class RemoteTools:
    """The tools of all servers, as `server__tool`."""

    def __init__(self, servers: Mapping[str, tuple[RemoteServer, RemotePolicy]], *, every_s: float = 300.0) -> None:
        """`every_s`: how often a server is asked which tools it has."""
        self._servers = {name: _Listed(server, policy) for name, (server, policy) in servers.items()}
        self._every_s = every_s

    async def run(self) -> None:
        """Keeps the lists fresh until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._every_s)

    async def refresh(self) -> None:
        """Asks all servers at once, each within its time. One that fails keeps the tools that it had."""
        async with asyncio.TaskGroup() as group:
            for name, listed in self._servers.items():
                group.create_task(self._refresh(name, listed))

    async def list(self, caller: Caller) -> Sequence[Tool]:  # noqa: ARG002 - an operator's servers are everybody's
        return [tool for listed in self._servers.values() for tool in listed.tools.values()]

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        name, _, remote_name = tool.name.partition(SEPARATOR)
        listed = self._servers.get(name)
        if listed is None or tool.name not in listed.tools:
            raise UnknownTool(f"there is no tool {tool.name!r:.80} any more")
        return await listed.server.call(remote_name, call.arguments, tell)

    async def _refresh(self, name: str, listed: _Listed) -> None:
        try:
            async with asyncio.timeout(_LIST_TIMEOUT_S):
                found = await listed.server.tools()
        except (ToolError, TimeoutError) as error:
            _log.warning("mcp_server_unlisted", server=name, error=str(error)[:300] or "no answer in time")
            return
        tools: dict[str, Tool] = {}
        withheld: dict[str, str] = {}
        for remote in found[:_TOOLS_MAX]:
            if remote.digest != (approved := listed.policy.approved.get(remote.name)):
                withheld[remote.name] = f"{'changed' if approved else 'new'}: approve it as {remote.digest}"
                continue
            try:
                tool = tool_of(name, remote, listed.policy)
            except ValueError as error:
                withheld[remote.name] = str(error)
            else:
                tools[tool.name] = tool
        for tool_name, why in withheld.items():
            if listed.withheld.get(tool_name) != why:
                _log.warning("mcp_tool_withheld", server=name, tool=tool_name[:80], why=why)
        listed.tools, listed.withheld = tools, withheld
