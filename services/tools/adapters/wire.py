"""Calls and what comes of them, as the contract has them."""

from typing import Any

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct, Value
from groundwork.tools.v1 import tools_pb2 as pb

from kit.structs import as_json
from services.tools.adapters.services.retriever import passage_of
from services.tools.errors import InvalidArguments
from services.tools.models import Effect, Need, Quoted, Tool, ToolAnswer, ToolOutcome, WithoutModel
from services.tools.sources.remote import ListedServer

_DESCRIPTION_CHARACTERS_MAX = 10_000
_EFFECTS = {
    Effect.NONE: pb.TOOL_EFFECT_NONE,
    Effect.IDEMPOTENT: pb.TOOL_EFFECT_IDEMPOTENT,
    Effect.ONCE: pb.TOOL_EFFECT_ONCE,
}


def encode_tool(tool: Tool) -> pb.Tool:
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
        worth=tool.policy.worth,
        on_request=tool.policy.on_request,
        outward=tool.policy.outward,
        called_for_by=tool.policy.called_for_by,
        without_model=_encode_without_model(tool.policy.without_model),
        self_contained=tool.policy.self_contained,
        other_names=tool.other_names,
    )


def encode_server(server: ListedServer) -> pb.ToolServer:
    """The server as administrators see it."""
    return pb.ToolServer(
        name=server.name,
        url=server.url,
        error=server.error,
        header_names=server.headers,
        logged_in=server.is_logged_in,
        tools=[
            pb.ServerTool(
                name=each.remote.name,
                description=each.remote.description[:_DESCRIPTION_CHARACTERS_MAX],
                parameters=json_format.ParseDict(dict(each.remote.input_schema), Struct(), max_recursion_depth=50),
                digest=each.remote.digest,
                state=each.state,
                why=each.why,
                reads_only=each.reads_only,
            )
            for each in server.tools
        ],
    )


def _encode_without_model(what: WithoutModel | None) -> pb.WithoutModel | None:
    return pb.WithoutModel(intent=what.intent, argument=what.argument, ability=what.ability) if what else None


def decode_arguments(arguments: Struct) -> dict[str, Any]:
    """Raises InvalidArguments for numbers that JSON does not have."""
    try:
        return dict(as_json(arguments))
    except ValueError as error:
        raise InvalidArguments(
            "the arguments hold a number that JSON does not have: infinity, or none at all"
        ) from error


def encode_outcome(outcome: ToolOutcome) -> pb.ToolResult:
    return pb.ToolResult(
        ok=outcome.ok,
        output=json_format.ParseDict(outcome.output, Value()) if outcome.ok else None,
        error_reason=outcome.error_reason,
        error_message=outcome.error_message,
        duration=_duration(outcome.duration_s),
        cached=outcome.cached,
        summary=outcome.summary,
        hits=[passage.hit for passage in outcome.passages if passage.hit is not None],
        need=_encode_need(outcome.need),
        quotes=map(_encode_quoted, outcome.quotes),
    )


def decode_outcome(result: pb.ToolResult) -> ToolOutcome:
    return ToolOutcome(
        ok=result.ok,
        duration_s=result.duration.ToNanoseconds() / 1e9,
        output=as_json(result.output) if result.ok else None,
        error_reason=result.error_reason,
        error_message=result.error_message,
        cached=result.cached,
        summary=result.summary,
        passages=tuple(passage_of(hit) for hit in result.hits),
        quotes=tuple(map(_decode_quoted, result.quotes)),
    )


def _encode_quoted(quoted: Quoted) -> pb.QuotedSource:
    if quoted.message_id:
        message = pb.QuotedMessage(thread_id=quoted.thread_id, message_id=quoted.message_id)
        return pb.QuotedSource(message=message)
    return (
        pb.QuotedSource(fact_id=quoted.fact_id) if quoted.fact_id else pb.QuotedSource(document_id=quoted.document_id)
    )


def _decode_quoted(quoted: pb.QuotedSource) -> Quoted:
    return Quoted(quoted.fact_id, quoted.document_id, quoted.message.thread_id, quoted.message.message_id)


def _encode_need(need: Need | None) -> pb.ToolNeed | None:
    if need is None:
        return None
    content = json_format.ParseDict(dict(need.content), Struct())
    return pb.ToolNeed(kind=need.kind, digest=need.digest, content=content)


def decode_answers(call: pb.CallToolRequest) -> tuple[ToolAnswer, ...]:
    return tuple(ToolAnswer(each.digest, each.text, each.model) for each in call.answers)


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
