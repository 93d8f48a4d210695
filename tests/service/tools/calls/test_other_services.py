"""What tools ask of other services: in their caller's name, with its token, and within the call's time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest
from groundwork.retriever.v1 import retriever_pb2
from groundwork.retriever.v1 import retriever_pb2_grpc as retriever_rpc
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc as rpc

from kit.access.principal import Principal, current_principal, use_principal
from kit.access.tokens import TokenSigner
from kit.rpc.channel import Channel, open_channel
from kit.testing.harness import make_signer, running_servicer
from services.orchestrator.adapters.services.tools import ASKED_BY_TOOLS
from services.tools.connections.desk import ConnectionDesk
from services.tools.handlers import ToolsServicer
from services.tools.models import Effect, Policy
from services.tools.server_admin import ServerAdmin
from services.tools.server_logins import ServerLogins
from tests.service.tools.calls.conftest import Serve
from tests.unit.tools.boxes import make_box

ANN = Principal("acme", "ann", frozenset({"query", "ingest"}))


@dataclass
class Retriever(retriever_rpc.RetrieverServiceServicer):
    """Remembers who asked, and how much time they left."""

    asked: list[tuple[Principal, float]] = field(default_factory=list)

    async def Search(self, request: Any, context: Any) -> Any:
        self.asked.append((current_principal(), context.time_remaining()))
        return retriever_pb2.SearchResponse()


@pytest.fixture
def retriever() -> Retriever:
    return Retriever()


@pytest.fixture
async def retriever_address(retriever: Retriever) -> AsyncIterator[str]:
    async with running_servicer(retriever_rpc.add_RetrieverServiceServicer_to_server, retriever) as address:
        yield address


async def called(channel: Channel, request: pb.CallToolRequest) -> pb.ToolResult:
    stub: Any = rpc.ToolsServiceStub(channel)
    events = [event async for event in stub.CallTool(request, timeout=300)]
    result: pb.ToolResult = events[-1].result
    return result


async def test_tool_asks_on_in_its_callers_name_and_within_its_own_time(
    serve: Serve, retriever: Retriever, retriever_address: str
) -> None:
    """The service has no signing key: it holds only what came with the call."""
    async with (
        serve(retriever_address=retriever_address) as address,
        open_channel(address, make_signer(), passed_on_to=ASKED_BY_TOOLS) as channel,
    ):
        with use_principal(ANN):
            result = await called(channel, pb.CallToolRequest(name="asks"))
    assert (result.ok, result.output.string_value) == (True, "asked")
    ((principal, left_s),) = retriever.asked
    assert principal == ANN
    assert left_s <= 20.0, "of the tool's limit, not of the caller's five minutes"


async def test_token_that_is_meant_for_the_tools_alone_is_refused_further_on(
    serve: Serve, retriever: Retriever, retriever_address: str
) -> None:
    async with (
        serve(retriever_address=retriever_address) as address,
        open_channel(address, make_signer()) as channel,
    ):
        with use_principal(ANN):
            result = await called(channel, pb.CallToolRequest(name="asks"))
    assert (result.ok, result.error_reason) == (False, "BAD_TOKEN")
    assert "in its caller's name" in result.error_message
    assert retriever.asked == []


async def test_service_that_is_away_is_no_fault_of_the_tool_and_named_without_address(serve: Serve) -> None:
    async with (
        serve(retriever_address="127.0.0.1:1") as address,
        open_channel(address, make_signer(), passed_on_to=ASKED_BY_TOOLS) as channel,
    ):
        with use_principal(ANN):
            result = await called(channel, pb.CallToolRequest(name="asks"))
    assert result.error_reason == "SERVICE_UNAVAILABLE"
    assert "127.0.0.1" not in result.error_message


async def test_call_that_outlives_its_callers_token_fails_clearly(retriever: Retriever, retriever_address: str) -> None:
    """It has an effect, so it goes on when its caller hangs up; by the time it asks another service the token has expired."""
    began, go_on = asyncio.Event(), asyncio.Event()
    ahead_s = 0.0
    signer = TokenSigner(None, clock=lambda: time.time() + ahead_s)

    async def works_long(count: int) -> None:
        began.set()
        await go_on.wait()
        search: Any = retriever_rpc.RetrieverServiceStub(retriever_channel).Search
        await search(retriever_pb2.SearchRequest(), timeout=30)

    box = make_box(works_long, policy=Policy(timeout_s=600.0, effect=Effect.IDEMPOTENT))
    request = pb.CallToolRequest(name="probe", call_id="run1/a")
    request.arguments.update({"count": 1})
    async with (
        open_channel(retriever_address, signer) as retriever_channel,
        running_servicer(
            rpc.add_ToolsServiceServicer_to_server,
            ToolsServicer(box, Mock(spec=ServerAdmin), Mock(spec=ServerLogins), Mock(spec=ConnectionDesk)),
        ) as address,
        open_channel(address, make_signer(), passed_on_to=ASKED_BY_TOOLS) as channel,
    ):
        with use_principal(ANN):
            caller = asyncio.create_task(called(channel, request))
            await began.wait()
            caller.cancel()
            await asyncio.wait([caller])
            ahead_s = 3600.0
            go_on.set()
            result = await called(channel, request)
    assert (result.ok, result.error_reason) == (False, "TOKEN_EXPIRED")
    assert "expired" in result.error_message
    assert "ask again" in result.error_message
    assert retriever.asked == []
