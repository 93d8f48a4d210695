"""Who may call which tool, and whether a person is asked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from kit.access.principal import grant, is_guest
from services.tools.calling.progress import Tell
from services.tools.errors import ScopeMissing, ToolError, ToolNotAllowed
from services.tools.models import Call, Caller, Tool, ToolOutput
from services.tools.sources.source import ToolSource, Wrapper

GUEST_TOOLS = frozenset(
    {
        "compose_context",
        "dedup_diversify",
        "document_compare",
        "document_search",
        "fetch_docs",
        "math_eval",
        "memory_search",
        "multi_query_rewrite",
        "query_local_kb",
        "query_plan",
        "quote_finder",
        "rag_list",
        "rag_search",
        "rerank",
        "router_select",
        "run_summary",
        "search",
        "structured_extraction",
        "temporal_normalize",
        "time_now",
        "verify",
    }
)
"""Tools of guests, where their tenant has no list: those that read nothing but the caller's documents and memory. A new tool is
closed to guests until somebody puts it here: others read an operator's database or ask other servers, and anybody may be a
guest."""


class _Refusing(Wrapper):
    """Refuses some tools to some callers."""

    async def list(self, caller: Caller) -> Sequence[Tool]:
        tools = await super().list(caller)
        return [replace(tool, refusal=self._refusal(tool, caller) or tool.refusal) for tool in tools]

    async def call(self, tool: Tool, call: Call, tell: Tell) -> ToolOutput:
        if (refusal := self._refusal(tool, call.caller)) is not None:
            raise refusal
        return await super().call(tool, call, tell)

    def _refusal(self, tool: Tool, caller: Caller) -> ToolError | None:
        raise NotImplementedError


class Allowed(_Refusing):
    """Leaves tenants the tools that are listed for them. A tenant without a list may use all, guests GUEST_TOOLS."""

    def __init__(self, inside: ToolSource, allowed: Mapping[str, Collection[str]]) -> None:
        super().__init__(inside)
        self._allowed = allowed

    def _refusal(self, tool: Tool, caller: Caller) -> ToolError | None:
        allowed = self._allowed.get(caller.tenant_id, GUEST_TOOLS if is_guest(caller.subject) else None)
        if allowed is None or tool.name in allowed:
            return None
        return ToolNotAllowed(f"{tool.name} is not offered here")


class Scoped(_Refusing):
    """Asks for the scope of a tool's policy."""

    def _refusal(self, tool: Tool, caller: Caller) -> ToolError | None:
        if grant(caller.scopes, tool.policy.scope):
            return None
        return ScopeMissing(
            f"{tool.name} needs the scope {tool.policy.scope!r}, which its caller does not have: go on without it, and tell the "
            "person that it takes an API key with that scope"
        )


class ApprovalRequired(Wrapper):
    """Makes a person allow each call of more tools than ask for it themselves. The orchestrator asks the person."""

    def __init__(self, inside: ToolSource, names: Collection[str]) -> None:
        """`names` may hold the wildcards `*` and `?`."""
        super().__init__(inside)
        self._names = names

    async def list(self, caller: Caller) -> Sequence[Tool]:
        return [self._asked_for(tool) for tool in await super().list(caller)]

    def _asked_for(self, tool: Tool) -> Tool:
        if not any(fnmatchcase(tool.name, name) for name in self._names):
            return tool
        return replace(tool, policy=replace(tool.policy, needs_approval=True))
