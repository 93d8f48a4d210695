"""Toolboxes of one tool, for tests."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kit.breaker import CircuitBreaker
from services.tools.calling.calls import Calls
from services.tools.calling.execution import Toolbox
from services.tools.calling.processes import Processes
from services.tools.calling.progress import unheard
from services.tools.context import ToolContext
from services.tools.models import Call, FunctionTool, Policy
from services.tools.ports import CallStore
from services.tools.settings import ToolsSettings
from services.tools.sources.chain import guarded
from services.tools.sources.limits import Turns
from services.tools.sources.modules import module_source
from tests.unit.tools.fakes import START, MemoryCallStore

PARAMETERS = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}},
    "required": ["count"],
    "additionalProperties": False,
}
CALL = Call("acme", "probe", {"count": 1})


def make_box(
    function: Callable[..., Any],
    *,
    other: Callable[..., Any] | None = None,
    policy: Policy | None = None,
    waiting: int = 8,
    cacheable: bool = False,
    allowed: Mapping[str, list[str]] | None = None,
    breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
    store: CallStore | None = None,
    **fields: Any,
) -> Toolbox:
    """With the tool `probe`, and the same as `other` unless that is another function; two calls at once and one process."""
    tool = FunctionTool(
        "probe", "A probe.", PARAMETERS, cacheable, policy or Policy(timeout_s=60.0), function=function, **fields
    )
    tools = {"other": replace(tool, name="other", function=other or function), "probe": tool}
    turns = Turns(2, waiting)
    modules = module_source(tools, Processes(1), make_context)
    source = guarded([modules], turns, allowed=allowed, breaker=breaker)
    return Toolbox(source, Calls(store or MemoryCallStore(), now=lambda: START), turns)


def make_context(call: Call) -> ToolContext:
    """For tools that ask no other service."""
    no_services: Any = None
    return ToolContext(
        call.call_id,
        call.collection_ids,
        ToolsSettings(),
        no_services,
        lambda: START,
        ToolsSettings().local_principal(),
        unheard,
    )
