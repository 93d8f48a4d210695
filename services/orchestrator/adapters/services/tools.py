"""The tools service: what it offers, and calls of it."""

import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc as rpc

from kit.access.principal import current_principal
from kit.errors import Cancelled, DeadlineExceeded, Internal, InvalidArgument, ResourceExhausted, Unavailable
from kit.rpc.calls import responses
from kit.rpc.channel import Channel
from kit.stores.forgetting import Source
from kit.structs import as_json
from services.orchestrator.adapters.codec import enum_from_number
from services.orchestrator.adapters.services.memory import answering_run
from services.orchestrator.adapters.services.retriever import evidence_of
from services.orchestrator.errors import ToolsSilent
from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool, WithoutModel
from services.orchestrator.steps.effects import IN_DOUBT, Call, Fate, ToolAnswer, ToolNeed, ToolOutcome

ASKED_BY_TOOLS = ("retriever", "reranker", "ingest", "memory")
"""Rooms that tools ask in the name of their caller: they pass on the token of the call."""
_MARGIN_S = 10.0
"""For what a call takes beside the tool's own time: its turn, and the start of a process."""
_FORGET_TIMEOUT_S = 5.0
_CALL_IN_DOUBT = "CALL_IN_DOUBT"
"""What the tools service says of a call that may have been made and must not be made twice."""


class GrpcTools:
    """Tools over the tools service's contract."""

    def __init__(self, channel: Channel, *, list_timeout_s: float) -> None:
        self._channel = channel
        self._stub = rpc.ToolsServiceStub(channel)
        self._list_timeout_s = list_timeout_s

    async def messages(self) -> Sequence[pb.Tool]:
        """The tools as the contract has them."""
        with _in_our_words():
            listed = await self._stub.ListTools(
                pb.ListToolsRequest(), timeout=self._list_timeout_s, wait_for_ready=True
            )
        return listed.tools

    async def offered(self) -> Sequence[Tool]:
        return [_tool(message) for message in await self.messages()]

    def call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        collection_ids: Sequence[str],
        progress: Callable[[str], Awaitable[None]] | None = None,
        answers: Sequence[ToolAnswer] = (),
    ) -> Call:
        return _GrpcCall(
            self._channel.connected, self._stub, tool, arguments, tuple(collection_ids), progress, tuple(answers)
        )

    async def forget_calls(self, run_id: str) -> None:
        with _in_our_words():
            await self._stub.ForgetCalls(pb.ForgetCallsRequest(caller=run_id), timeout=_FORGET_TIMEOUT_S)


@dataclass(frozen=True)
class _GrpcCall:
    connected: Callable[[], Awaitable[bool]]
    """Waits for the service while it is restarted. Not in the time of the call: without this every call of those seconds would be
    lost, and of one that must not be made twice nobody would know what came of it."""
    stub: rpc.ToolsServiceStub
    tool: Tool
    arguments: Mapping[str, Any]
    collection_ids: tuple[str, ...]
    progress: Callable[[str], Awaitable[None]] | None = None
    answers: tuple[ToolAnswer, ...] = ()

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def effect(self) -> EffectClass:
        return self.tool.effect

    async def run(self, call_id: str) -> ToolOutcome:
        request = self._request(call_id)
        await self.connected()  # if it is not, the call says what is wrong
        began = time.monotonic()
        with _in_our_words():
            try:
                async with aclosing(
                    responses(self.stub.CallTool(request, timeout=self.tool.timeout_s + _MARGIN_S))
                ) as events:
                    async for event in events:
                        kind = event.WhichOneof("event")
                        if kind == "result":
                            return _outcome(self.name, event.result, time.monotonic() - began)
                        if kind == "progress" and self.progress is not None:
                            await self.progress(event.progress.message)
            except ResourceExhausted as error:  # all replicas are full, and none has begun it
                return _failed(error.message, error.reason, time.monotonic() - began)
        raise Internal(f"the tools service ended the call of {self.name} without a result")

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        """Asks again by the same id: the tools service makes a call with an effect once, and answers with what came of it."""
        return await self.run(call_id)

    def _request(self, call_id: str) -> pb.CallToolRequest:
        """Raises InvalidArgument for arguments that no message can hold."""
        try:
            json.dumps(self.arguments, allow_nan=False, ensure_ascii=False).encode()
            request = pb.CallToolRequest(name=self.name, call_id=call_id, collection_ids=self.collection_ids)
            request.arguments.update(self.arguments)
            for each in self.answers:
                request.answers.add(digest=each.digest, text=each.text, model=each.model)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(
                f"the arguments of {self.name} are not plain JSON; write them anew", reason="INVALID_ARGUMENTS"
            ) from error
        return request


def _tool(message: pb.Tool) -> Tool:
    return Tool(
        message.name,
        message.description,
        as_json(message.parameters),
        enum_from_number(pb.ToolEffect.DESCRIPTOR, message.effect, EffectClass),
        message.parallel_safe,
        message.requires_fresh_input,
        message.needs_approval,
        tuple(message.key_arguments),
        message.timeout.ToNanoseconds() / 1e9,
        message.worth,
        tuple(message.called_for_by),
        _without_model(message.without_model) if message.HasField("without_model") else None,
        message.self_contained,
        message.on_request,
        message.outward,
        tuple(message.other_names),
    )


def _without_model(message: pb.WithoutModel) -> WithoutModel:
    return WithoutModel(message.intent, message.argument, message.ability)


def _outcome(tool_name: str, result: pb.ToolResult, duration_s: float) -> ToolOutcome:
    if not result.ok:
        reason = IN_DOUBT if result.error_reason == _CALL_IN_DOUBT else result.error_reason or "TOOL_FAILED"
        said = result.error_message or f"{tool_name} failed and did not say why."
        need = ToolNeed(result.need.kind, result.need.digest, as_json(result.need.content))
        return replace(_failed(said, reason, duration_s), need=need if result.HasField("need") else None)
    content = as_json(result.output)
    evidence = tuple(evidence_of(number, hit) for number, hit in enumerate(result.hits, start=1))
    quotes = tuple(source for each in result.quotes for source in _quoted(each))
    return ToolOutcome(True, content, result.summary, "", duration_s, evidence, quotes=quotes)


def _quoted(quoted: pb.QuotedSource) -> Iterator[Source]:
    """What has to be forgotten for the text to go: a message goes with its thread, and an answer with what its run quotes."""
    subject = current_principal().subject
    match quoted.WhichOneof("source"):
        case "fact_id":
            yield Source.fact(subject, quoted.fact_id)
        case "document_id":
            yield Source.document(quoted.document_id)
        case "message":
            yield Source.thread(subject, quoted.message.thread_id)
            if run_id := answering_run(quoted.message.message_id):
                yield Source.run(run_id)


def _failed(said: str, reason: str, duration_s: float) -> ToolOutcome:
    return ToolOutcome(False, {"error": reason, "message": said}, said, reason, duration_s)


@contextmanager
def _in_our_words() -> Iterator[None]:
    """A user reads the message: gRPC's own names addresses and frames."""
    try:
        yield
    except (Unavailable, DeadlineExceeded, Cancelled) as error:  # Cancelled is what a stopping server says
        raise ToolsSilent("the tools do not answer now; try again in a minute") from error
