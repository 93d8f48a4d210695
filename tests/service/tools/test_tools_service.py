"""The tools service as a process would run it: real gRPC, the real tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from google.protobuf import json_format
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc

from kit.testing.harness import free_port, open_test_channel, running_service
from services.tools.app import run
from services.tools.settings import ToolsSettings


@pytest.fixture
async def stub(nats_url: str) -> AsyncIterator[Any]:
    settings = ToolsSettings(grpc_address=f"127.0.0.1:{free_port()}", nats_url=nats_url)
    services = [pb.DESCRIPTOR.services_by_name["ToolsService"]]
    async with running_service(run, settings) as address, open_test_channel(address, services=services) as channel:
        yield tools_pb2_grpc.ToolsServiceStub(channel)


async def _call(stub: Any, name: str, **arguments: Any) -> pb.ToolResult:
    request = pb.CallToolRequest(name=name)
    request.arguments.update(arguments)
    events = [event async for event in stub.CallTool(request, timeout=30)]
    assert [event.WhichOneof("event") for event in events][-1:] == ["result"]
    assert sum(event.HasField("result") for event in events) == 1
    return events[-1].result


async def test_tools_are_listed_with_schema_and_policy(stub: Any) -> None:
    tools = {tool.name: tool for tool in (await stub.ListTools(pb.ListToolsRequest(), timeout=60)).tools}
    assert list(tools) == sorted(tools)
    assert tools.keys() >= {"math_eval", "time_now"}
    schema = json_format.MessageToDict(tools["math_eval"].parameters)
    assert schema["required"] == ["expression"]
    assert tools["math_eval"].cacheable
    assert tools["math_eval"].timeout.seconds == 2


async def test_arithmetic_over_the_wire(stub: Any) -> None:
    result = await _call(stub, "math_eval", expression="(2 + 3) * 4")
    assert (result.ok, result.output.struct_value["result"]) == (True, "20")
    assert result.duration.nanos > 0


async def test_the_time_in_a_zone(stub: Any) -> None:
    result = await _call(stub, "time_now", timezone="Asia/Kolkata")
    offset = datetime.fromisoformat(result.output.struct_value["time"]).utcoffset()
    assert offset is not None
    assert offset.total_seconds() == 5.5 * 3600


@pytest.mark.parametrize(
    ("name", "arguments", "key", "expected"),
    [
        ("temporal_normalize", {"text": "в январе 2024"}, "date_from", "2024-01-01T00:00:00+00:00"),
        (
            "temporal_normalize",
            {"text": "先月", "reference_time": "2024-03-05T10:00:00Z"},
            "date_to",
            "2024-03-01T00:00:00+00:00",
        ),
        ("temporal_normalize", {"text": "since 2024-03-05"}, "date_to", None),
        ("router_select", {"query": "E104"}, "strategy", "lexical"),
        ("query_plan", {"query": "news of @durov in May 2024"}, "strategy", "lexical"),
        ("multi_query_rewrite", {"query": "refunds", "count": 1}, "queries", ["reimbursements"]),
    ],
)
async def test_questions_are_read_over_the_wire(
    stub: Any, name: str, arguments: dict[str, Any], key: str, expected: Any
) -> None:
    result = await _call(stub, name, **arguments)
    assert (result.ok, json_format.MessageToDict(result.output).get(key)) == (True, expected)


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("time_now", {"timezone": "Mars/Olympus"}, "UNKNOWN_TIMEZONE"),
        ("time_now", {"timezone": "Europe"}, "UNKNOWN_TIMEZONE"),
        ("time_now", {"timezone": "../../etc/passwd"}, "UNKNOWN_TIMEZONE"),
        ("math_eval", {"expression": "9**9**9"}, "MATH_ERROR"),
        ("math_eval", {"code": "1"}, "INVALID_ARGUMENTS"),
        ("unknown", {}, "TOOL_UNKNOWN"),
    ],
)
async def test_a_failing_tool_is_a_result(stub: Any, name: str, arguments: dict[str, Any], reason: str) -> None:
    result = await _call(stub, name, **arguments)
    assert (result.ok, result.error_reason) == (False, reason)
    assert result.error_message
