"""The tools service: what it offers, and calls of it."""

import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc as rpc

from kit.channel import Channel
from kit.errors import Internal
from services.orchestrator.adapters.codec import enum_from_number
from services.orchestrator.adapters.retriever import evidence_of
from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool
from services.orchestrator.steps.effects import Call, Fate, ToolOutcome

ASKED_BY_TOOLS = ("retriever", "reranker", "ingest")
"""Rooms that tools ask in the name of their caller: they pass on the token of the call."""
_MARGIN_S = 2.0
"""For what a call takes beside the tool's own time."""


class GrpcTools:
    """Tools over the tools service's contract."""

    def __init__(self, channel: Channel, *, list_timeout_s: float) -> None:
        self._stub: Any = rpc.ToolsServiceStub(channel)
        self._list_timeout_s = list_timeout_s

    async def messages(self) -> Sequence[pb.Tool]:
        """The tools as the contract has them."""
        response: pb.ListToolsResponse = await self._stub.ListTools(pb.ListToolsRequest(), timeout=self._list_timeout_s)
        return response.tools

    async def offered(self) -> Sequence[Tool]:
        return [_tool(message) for message in await self.messages()]

    def call(self, tool: Tool, arguments: Mapping[str, Any], collection_ids: Sequence[str]) -> Call:
        return _GrpcCall(self._stub, tool, arguments, tuple(collection_ids))

    async def forget(self, run_id: str) -> None:
        await self._stub.ForgetCalls(pb.ForgetCallsRequest(caller=run_id), timeout=self._list_timeout_s)


@dataclass(frozen=True)
class _GrpcCall:
    stub: Any
    tool: Tool
    arguments: Mapping[str, Any]
    collection_ids: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def effect(self) -> EffectClass:
        return self.tool.effect

    async def run(self, call_id: str) -> ToolOutcome:
        request = pb.CallToolRequest(name=self.name, call_id=call_id, collection_ids=self.collection_ids)
        request.arguments.update(self.arguments)
        began = time.monotonic()
        async with aclosing(self.stub.CallTool(request, timeout=self.tool.timeout_s + _MARGIN_S)) as events:
            async for event in events:
                if event.WhichOneof("event") == "result":
                    return _outcome(event.result, time.monotonic() - began)
        raise Internal(f"the tools service ended the call of {self.name} without a result")

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        """Asks again by the same id: the tools service makes a call with an effect once, and answers with what came of it."""
        return await self.run(call_id)


def _tool(message: pb.Tool) -> Tool:
    return Tool(
        message.name,
        message.description,
        json_format.MessageToDict(message.parameters),
        enum_from_number(pb.ToolEffect.DESCRIPTOR, message.effect, EffectClass),
        message.parallel_safe,
        message.requires_fresh_input,
        message.needs_approval,
        tuple(message.key_arguments),
        message.timeout.ToNanoseconds() / 1e9,
    )


def _outcome(result: pb.ToolResult, duration_s: float) -> ToolOutcome:
    if not result.ok:
        content = {"error": result.error_reason, "message": result.error_message}
        return ToolOutcome(False, content, result.error_message, result.error_reason, duration_s)
    content = json_format.MessageToDict(result.output)
    evidence = tuple(evidence_of(number, hit) for number, hit in enumerate(result.hits, start=1))
    return ToolOutcome(True, content, result.summary, "", duration_s, evidence)
