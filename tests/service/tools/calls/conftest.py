"""The tools service as a process would run it, with tools that are dropped into a folder, or with a real ingest service or a real
retriever beside it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from groundwork.tools.v1 import tools_pb2

from kit.rpc.channel import Channel
from kit.testing.harness import free_port, open_test_channel, running_service
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.models import Tool
from services.tools.app import run
from services.tools.settings import ToolsSettings
from tests.service.ingest.conftest import _own_metrics, system
from tests.service.retriever.conftest import address, local, models, models_address, settings

__all__ = ["_own_metrics", "address", "local", "models", "models_address", "settings", "system"]

DROPPED = Path(__file__).parent / "dropped"
CONTRACT = [tools_pb2.DESCRIPTOR.services_by_name["ToolsService"]]

Serve = Callable[..., AbstractAsyncContextManager[str]]


@pytest.fixture
def serve(nats_url: str) -> Serve:
    """Runs the tools service within a block; yields its address."""

    @asynccontextmanager
    async def served(address: str = "", **options: Any) -> AsyncIterator[str]:
        address = address or f"127.0.0.1:{free_port()}"
        settings = ToolsSettings(grpc_address=address, nats_url=nats_url, tools_folders=(DROPPED,), **options)
        async with running_service(run, settings):
            yield address

    return served


@pytest.fixture
async def channel(serve: Serve) -> AsyncIterator[Channel]:
    async with serve() as address, open_test_channel(address, services=CONTRACT) as channel:
        yield channel


@pytest.fixture
def tools(channel: Channel) -> GrpcTools:
    """As the orchestrator has them."""
    return GrpcTools(channel, list_timeout_s=30.0)


async def named(tools: GrpcTools, name: str) -> Tool:
    (found,) = [tool for tool in await tools.offered() if tool.name == name]
    return found
