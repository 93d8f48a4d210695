"""The real toolbox with settings of the test's choice, called as the service calls it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

from kit.access.principal import Principal, current_principal, use_principal
from kit.testing.harness import USER_SCOPES
from services.tools import toolbox
from services.tools.calling.calls import Calls
from services.tools.calling.execution import Toolbox
from services.tools.calling.processes import Processes
from services.tools.context import Services, ToolContext
from services.tools.models import Call, ToolOutcome
from services.tools.ports import CallStore
from services.tools.settings import ToolsSettings
from services.tools.sources.chain import guarded
from services.tools.sources.discovery import discover
from services.tools.sources.limits import Turns
from services.tools.sources.modules import module_source
from tests.unit.tools.fakes import START, MemoryCallStore

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class Box:
    """Calls in the name of one tenant; each is another call unless it is given an id."""

    def __init__(
        self, settings: ToolsSettings, store: CallStore | None = None, services: Services | None = None
    ) -> None:
        turns = Turns(8, 8)
        modules = module_source(discover(toolbox), Processes(1), lambda call: _context(settings, call, services))
        calls = Calls(store or MemoryCallStore(), now=lambda: START)
        self.toolbox = Toolbox(guarded([modules], turns), calls, turns)
        self._calls = 0

    async def call(
        self, name: str, arguments: dict[str, Any], call_id: str = "", tenant_id: str = "acme"
    ) -> ToolOutcome:
        self._calls += 1
        with _tenant(tenant_id):
            return await self.toolbox.call(Call(tenant_id, name, arguments, call_id or f"call{self._calls}"))


@contextmanager
def _tenant(tenant_id: str) -> Iterator[None]:
    with use_principal(Principal(tenant_id, "ann", USER_SCOPES)):
        yield


def _context(settings: ToolsSettings, call: Call, services: Services | None) -> ToolContext:
    async def unheard(_: str) -> None:
        pass

    return ToolContext(
        call.call_id,
        call.collection_ids,
        settings,
        services or Mock(spec=Services),
        lambda: NOW,
        current_principal(),
        unheard,
    )
