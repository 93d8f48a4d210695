"""Composition root of the tools service."""

from concurrent.futures import ThreadPoolExecutor

from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc

from kit.service import Service
from services.tools import toolbox
from services.tools.discovery import discover
from services.tools.execution import Toolbox
from services.tools.handlers import ToolsServicer
from services.tools.settings import ToolsSettings


async def run(settings: ToolsSettings) -> None:
    """Serves until told to stop."""
    async with Service("tools", settings) as service:
        executor = ThreadPoolExecutor(settings.tools_calls_at_once, thread_name_prefix="tool")
        service.stack.callback(executor.shutdown, wait=False, cancel_futures=True)
        box = Toolbox(
            discover(toolbox),
            executor,
            calls_at_once=settings.tools_calls_at_once,
            calls_waiting=settings.tools_calls_waiting,
        )
        service.add_servicer(
            tools_pb2_grpc.add_ToolsServiceServicer_to_server,
            ToolsServicer(box),
            tools_pb2.DESCRIPTOR.services_by_name["ToolsService"],
        )
        await service.serve()
