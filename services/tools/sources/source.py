"""Where tools come from. A source lists its tools and calls them; all else (who may call, how long, how often, what is kept) is a
wrapper, which is a source too and goes around any other. `chain.py` puts them together."""

from collections.abc import Sequence
from typing import Protocol

from services.tools.calling.progress import Tell
from services.tools.errors import UnknownTool
from services.tools.models import Call, Caller, Tool, ToolOutput


class ToolSource(Protocol):
    """Tools of one origin: modules, another server, all of them together."""

    async def list(self, caller: Caller) -> Sequence[Tool]:
        """The tools that there are for the caller. A tool with a `refusal` cannot be called, and is not offered. Cheap: it is asked
        for each call."""
        ...

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        """Calls a tool of the list with arguments that fit its schema. `tell` is given messages for the person meanwhile. Raises
        ToolError."""
        ...


class Wrapper:
    """Passes everything on to the source inside. A wrapper overrides what it changes."""

    def __init__(self, inside: ToolSource) -> None:
        self._inside = inside

    async def list(self, caller: Caller) -> Sequence[Tool]:
        return await self._inside.list(caller)

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        return await self._inside.call(tool, call, tell)


class Combined:
    """Several sources as one. Of two tools of one name, that of the earlier source is there."""

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self._sources = sources

    async def list(self, caller: Caller) -> Sequence[Tool]:
        found: dict[str, Tool] = {}
        for source in self._sources:
            for tool in await source.list(caller):
                found.setdefault(tool.name, tool)
        return list(found.values())

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        for source in self._sources:
            if any(each.name == tool.name for each in await source.list(call.caller)):
                return await source.call(tool, call, tell)
        raise UnknownTool(f"there is no tool {tool.name!r:.80} any more")
