"""Toolboxes of one tool, for tests."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kit.breaker import CircuitBreaker
from services.tools.calling.calls import Calls
from services.tools.calling.execution import Toolbox
from services.tools.calling.progress import unheard
from services.tools.context import ToolContext
from services.tools.models import Call, Policy, Tool
from services.tools.ports import CallStore
from services.tools.settings import ToolsSettings
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
    policy: Policy | None = None,
    waiting: int = 8,
    cacheable: bool = False,
    allowed: Mapping[str, list[str]] | None = None,
    breaker: Callable[[], CircuitBreaker] = CircuitBreaker,
    store: CallStore | None = None,
    **fields: Any,
) -> Toolbox:
    """With the tool `probe`, and the same as `other`; two calls at once and one process."""
    tool = Tool("probe", "A probe.", PARAMETERS, function, cacheable, policy or Policy(timeout_s=60.0), **fields)
    return Toolbox(
        {"other": replace(tool, name="other"), "probe": tool},
        Calls(store or MemoryCallStore(), now=lambda: START),
        calls_at_once=2,
        calls_waiting=waiting,
        processes=1,
        allowed=allowed,
        context=make_context,
        breaker=breaker,
    )


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
