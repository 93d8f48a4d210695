"""Composition root of the tools service."""

from datetime import UTC, datetime

from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc

from kit.jetstream import connect
from kit.service import Service
from services.tools import toolbox
from services.tools.adapters.call_store import KeyValueCallStore
from services.tools.calls import Calls
from services.tools.discovery import discover
from services.tools.execution import Toolbox
from services.tools.handlers import ToolsServicer
from services.tools.settings import ToolsSettings


async def run(settings: ToolsSettings) -> None:
    """Serves until told to stop."""
    async with Service("tools", settings) as service:
        nats = await service.stack.enter_async_context(connect(settings.nats_url, name="tools"))
        calls = Calls(await KeyValueCallStore.open(nats), now=_now)
        service.stack.push_async_callback(calls.close)
        box = Toolbox(
            discover(toolbox),
            calls,
            calls_at_once=settings.tools_calls_at_once,
            calls_waiting=settings.tools_calls_waiting,
            processes=settings.tools_processes,
            allowed=settings.tools_allowed,
        )
        service.require("nats", nats.check)
        service.add_servicer(
            tools_pb2_grpc.add_ToolsServiceServicer_to_server,
            ToolsServicer(box),
            tools_pb2.DESCRIPTOR.services_by_name["ToolsService"],
        )
        await service.serve()


def _now() -> datetime:
    return datetime.now(UTC)
