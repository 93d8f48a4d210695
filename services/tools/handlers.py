"""The gRPC edge of the tools service: decode, call, encode."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct, Value
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc

from kit.principal import current_principal
from services.tools.execution import Toolbox
from services.tools.models import Call, Effect, Tool, ToolOutcome

EXACT_INTEGER_MAX = 2.0**53
_EFFECTS = {
    Effect.NONE: pb.TOOL_EFFECT_NONE,
    Effect.IDEMPOTENT: pb.TOOL_EFFECT_IDEMPOTENT,
    Effect.ONCE: pb.TOOL_EFFECT_ONCE,
}


class ToolsServicer(tools_pb2_grpc.ToolsServiceServicer):
    """The toolbox."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    async def ListTools(self, request: pb.ListToolsRequest, context: Any) -> pb.ListToolsResponse:
        offered = self._toolbox.offered(current_principal().tenant_id)
        return pb.ListToolsResponse(tools=[_encode_tool(tool) for tool in offered])

    async def CallTool(self, request: pb.CallToolRequest, context: Any) -> AsyncIterator[pb.CallToolResponse]:
        call = Call(
            current_principal().tenant_id,
            request.name,
            _decode_arguments(request.arguments),
            request.call_id,
            tuple(request.allowed_tools),
            tuple(request.collection_ids),
        )
        outcome = await self._toolbox.call(call)
        yield pb.CallToolResponse(result=_encode_outcome(outcome))


def _decode_arguments(arguments: Struct) -> dict[str, Any]:
    decoded = _with_integers(json_format.MessageToDict(arguments))
    return dict(decoded)


def _with_integers(value: Any) -> Any:
    """A Struct has only doubles: what was written as 3 arrives as 3.0, and a tool that counts needs 3."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_INTEGER_MAX:
        return int(value)
    if isinstance(value, Mapping):
        return {key: _with_integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    return value


def _encode_tool(tool: Tool) -> pb.Tool:
    return pb.Tool(
        name=tool.name,
        description=tool.description,
        parameters=json_format.ParseDict(dict(tool.parameters), Struct()),
        parallel_safe=tool.policy.parallel_safe,
        cacheable=tool.cacheable,
        needs_approval=tool.policy.needs_approval,
        timeout=_duration(tool.policy.timeout_s),
        effect=_EFFECTS[tool.policy.effect],
        requires_fresh_input=tool.policy.requires_fresh_input,
        key_arguments=tool.policy.key_arguments,
    )


def _encode_outcome(outcome: ToolOutcome) -> pb.ToolResult:
    return pb.ToolResult(
        ok=outcome.ok,
        output=json_format.ParseDict(outcome.output, Value()) if outcome.ok else None,
        error_reason=outcome.error_reason,
        error_message=outcome.error_message,
        duration=_duration(outcome.duration_s),
        cached=outcome.cached,
        summary=outcome.summary,
        hits=[passage.hit for passage in outcome.passages if passage.hit is not None],
    )


def _duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))
