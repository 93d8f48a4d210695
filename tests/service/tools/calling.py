"""Calls of tools over a running tools service, in the name of anybody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf import json_format
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc

from kit.access.principal import Principal
from kit.testing.harness import TEST_PRINCIPAL, free_port, open_test_channel, running_service
from services.tools.app import run
from services.tools.settings import ToolsSettings

OTHER_TENANT = Principal("umbrella", "tester")
_TIMEOUT_S = 60.0


class Tools:
    """Calls of tools."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def result(
        self,
        name: str,
        call_id: str = "",
        *,
        principal: Principal = TEST_PRINCIPAL,
        collection_ids: Sequence[str] = (),
        **arguments: Any,
    ) -> pb.ToolResult:
        request = pb.CallToolRequest(name=name, call_id=call_id, collection_ids=collection_ids)
        request.arguments.update(arguments)
        async with open_test_channel(self._address, principal) as channel:
            stub: Any = tools_pb2_grpc.ToolsServiceStub(channel)
            events = [event async for event in stub.CallTool(request, timeout=_TIMEOUT_S)]
        result: pb.ToolResult = events[-1].result
        return result

    async def call(self, name: str, call_id: str = "", **arguments: Any) -> dict[str, Any]:
        """What came out; error and message when it failed."""
        result = await self.result(name, call_id, **arguments)
        if not result.ok:
            return {"error": result.error_reason, "message": result.error_message}
        output: dict[str, Any] = json_format.MessageToDict(result.output)
        return output


@asynccontextmanager
async def running_tools(nats_url: str, **settings: Any) -> AsyncIterator[Tools]:
    """A tools service with these addresses of its neighbours; nobody answers at the others."""
    settings = {"local_subject": TEST_PRINCIPAL.subject, **settings}
    nobody = {f"{room}_address": f"127.0.0.1:{free_port()}" for room in ("retriever", "reranker", "ingest")}
    given = {"connection_patience_s": 0.1, **nobody, **settings}
    configured = ToolsSettings(grpc_address=f"127.0.0.1:{free_port()}", nats_url=nats_url, **given)
    async with running_service(run, configured) as address:
        yield Tools(address)
