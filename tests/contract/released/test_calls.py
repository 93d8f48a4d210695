"""Clients of the last release call the servers of this one over real gRPC, and the other way round."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from groundwork.ingest.v1 import ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from groundwork.reranker.v1 import reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from groundwork.tools.v1 import tools_pb2, tools_pb2_grpc

from kit.rpc.channel import Channel
from kit.testing.harness import free_port, open_test_channel, running_service, running_servicer
from services.ingest.app import run_api
from services.ingest.settings import IngestSettings
from services.memory.app import run as run_memory
from services.memory.settings import MemorySettings
from services.orchestrator.app import run as run_orchestrator
from services.orchestrator.settings import OrchestratorSettings
from services.retriever.app import run as run_retriever
from services.retriever.settings import RetrieverSettings
from services.tools.app import run as run_tools
from services.tools.settings import ToolsSettings
from tests.contract.released.contracts import released, released_methods, todays
from tests.contract.released.filling import filled
from tests.service.ingest.backends import FakeReranker, FakeRetriever
from tests.service.ingest.conftest import System
from tests.service.retriever.conftest import FakeModelServer, Retriever

TIMEOUT_S = 60.0


class Side:
    """One end of a call: of the last release, or of today."""

    def __init__(self, method: MethodDescriptor, *, is_released: bool) -> None:
        def kind(name: str) -> type[Message]:
            return released(name) if is_released else todays()[name]

        self.method = method
        self.path = f"/{method.containing_service.full_name}/{method.name}"
        self.request, self.response = kind(method.input_type.full_name), kind(method.output_type.full_name)
        self.heard: list[Message] = []

    @property
    def shape(self) -> str:
        ways = self.method.client_streaming, self.method.server_streaming
        return "_".join("stream" if each else "unary" for each in ways)

    def add_to(self, _: object, server: grpc.aio.Server) -> None:
        """Serves the method: notes what is asked, and answers with every field filled."""
        make = getattr(grpc, f"{self.shape}_rpc_method_handler")
        handler = make(self._behaviour(), self.request.FromString, self.response.SerializeToString)
        service = self.method.containing_service.full_name
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {self.method.name: handler}),))

    def _behaviour(self) -> Any:
        async def hear(request: Any) -> None:
            if self.method.client_streaming:
                self.heard.extend([each async for each in request])
            else:
                self.heard.append(request)

        async def one(request: Any, _: Any) -> Message:
            await hear(request)
            return filled(self.response)  # type: ignore[no-any-return]

        async def several(request: Any, _: Any) -> AsyncIterator[Message]:
            await hear(request)
            yield filled(self.response)
            yield filled(self.response)

        return several if self.method.server_streaming else one

    async def call(self, channel: Channel) -> list[Message]:
        """The answers to a request with every field filled."""
        make = getattr(channel, self.shape)
        made = make(self.path, self.request.SerializeToString, self.response.FromString)
        request = filled(self.request)
        answer = made(iter([request, request]) if self.method.client_streaming else request, timeout=TIMEOUT_S)
        return [each async for each in answer] if self.method.server_streaming else [await answer]


@pytest.mark.parametrize("is_client_released", [True, False], ids=["older-client", "older-server"])
@pytest.mark.parametrize("method", released_methods(), ids=lambda method: method.full_name)
async def test_call_arrives_whole_with_the_other_version(method: MethodDescriptor, is_client_released: bool) -> None:
    client, server = (
        Side(method, is_released=is_client_released),
        Side(method, is_released=not is_client_released),
    )
    async with running_servicer(server.add_to, None) as address, open_test_channel(address) as channel:
        answers = await client.call(channel)
    assert server.heard
    assert answers
    for heard in server.heard:
        assert client.request.FromString(heard.SerializeToString()) == filled(client.request)
    for answer in answers:
        assert server.response.FromString(answer.SerializeToString()) == filled(server.response)


class OlderChannel(Channel):
    """A channel of the last release: what its contracts do not have is neither sent nor heard."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._channel.unary_unary(method, *_narrowed(method, *args, **kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._channel.stream_unary(method, *_narrowed(method, *args, **kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._channel.unary_stream(method, *_narrowed(method, *args, **kwargs))


def _narrowed(method: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> tuple[Any, Any]:
    known = {f"/{each.containing_service.full_name}/{each.name}": each for each in released_methods()}
    if method not in known:  # it will not be called
        return request_serializer, response_deserializer
    request, response = (released(kind.full_name) for kind in (known[method].input_type, known[method].output_type))

    def through(kind: type[Message], data: bytes) -> bytes:
        message = kind.FromString(data)
        message.DiscardUnknownFields()  # type: ignore[attr-defined] # of every message class
        return message.SerializeToString()

    return (
        lambda message: through(request, request_serializer(message)),
        lambda data: response_deserializer(through(response, data)),
    )


@asynccontextmanager
async def older_client(run: Any, settings: Any) -> AsyncIterator[OlderChannel]:
    """A client of the last release, to a service of today."""
    async with running_service(run, settings) as address, open_test_channel(address) as channel:
        yield OlderChannel(channel)


def place() -> str:
    return f"127.0.0.1:{free_port()}"


async def test_older_client_appends_messages(nats_url: str) -> None:
    async with older_client(run_memory, MemorySettings(grpc_address=place(), nats_url=nats_url)) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        thread = (await stub.CreateThread(memory_pb2.CreateThreadRequest(), timeout=TIMEOUT_S)).thread
        message = memory_pb2.Message(message_id="q1", role=memory_pb2.ROLE_USER, text="How much leave?", run_id="r1")
        request = memory_pb2.AppendMessagesRequest(thread_id=thread.thread_id, messages=[message])
        assert (await stub.AppendMessages(request, timeout=TIMEOUT_S)).thread.message_count == 1
        history = await stub.GetHistory(memory_pb2.GetHistoryRequest(thread_id=thread.thread_id), timeout=TIMEOUT_S)
    assert [(each.role, each.text) for each in history.messages] == [(memory_pb2.ROLE_USER, "How much leave?")]


async def test_older_client_calls_a_tool(nats_url: str) -> None:
    request = tools_pb2.CallToolRequest(name="math_eval")
    request.arguments.update({"expression": "(2 + 3) * 4"})
    async with older_client(run_tools, ToolsSettings(grpc_address=place(), nats_url=nats_url)) as channel:
        stub = tools_pb2_grpc.ToolsServiceStub(channel)
        events = [event async for event in stub.CallTool(request, timeout=TIMEOUT_S)]
    assert events[-1].result.output.struct_value["result"] == "20"


async def test_older_client_indexes_and_searches(nats_url: str, tmp_path: Path) -> None:
    add = reranker_pb2_grpc.add_RerankerServiceServicer_to_server
    async with running_servicer(add, FakeModelServer()) as models:
        settings = RetrieverSettings(
            grpc_address=place(), nats_url=nats_url, reranker_address=models, data_dir=tmp_path
        )
        async with older_client(run_retriever, settings) as channel:
            client = Retriever(retriever_pb2_grpc.RetrieverServiceStub(channel))
            await client.publish("r1", ["solar panels on the roof", "wind turbines"])
            assert (await client.texts("solar"))[0] == "solar panels on the roof"


async def test_older_client_uploads_a_document(nats_url: str, tmp_path: Path) -> None:
    settings = IngestSettings(grpc_address=place(), nats_url=nats_url, data_dir=tmp_path)
    async with older_client(run_api, settings) as channel:
        stub = ingest_pb2_grpc.IngestServiceStub(channel)
        system = System(stub, FakeReranker(), FakeRetriever(), settings, settings.grpc_address)
        document = await system.upload(b"The tower was built in 1889.", "tower.txt")
    assert (document.name, document.size_bytes) == ("tower.txt", 28)


class NothingIsThere(retriever_pb2_grpc.RetrieverServiceServicer):
    """A retriever whose collections are empty."""

    async def Search(self, request: Any, context: Any) -> retriever_pb2.SearchResponse:
        return retriever_pb2.SearchResponse()


async def test_older_client_starts_a_run_and_follows_it(nats_url: str) -> None:
    nobody: dict[str, Any] = {f"{name}_address": place() for name in ("reranker", "memory", "tools")}
    add = retriever_pb2_grpc.add_RetrieverServiceServicer_to_server
    question = orchestrator_pb2.StartRunRequest(
        mode=orchestrator_pb2.RUN_MODE_GROUNDED, question="When was it built?", collection_ids=["papers"]
    )
    async with running_servicer(add, NothingIsThere()) as retriever:
        settings = OrchestratorSettings(grpc_address=place(), nats_url=nats_url, retriever_address=retriever, **nobody)
        async with older_client(run_orchestrator, settings) as channel:
            stub = orchestrator_pb2_grpc.OrchestratorServiceStub(channel)
            told = [response.event async for response in stub.StartRun(question, timeout=TIMEOUT_S)]
            attach = orchestrator_pb2.AttachRunRequest(run_id=told[0].run_id)
            again = [response.event async for response in stub.AttachRun(attach, timeout=TIMEOUT_S)]
    assert told[-1].WhichOneof("payload") == "done"
    assert kinds(again) == kinds(told)


def kinds(events: list[orchestrator_pb2.RunEvent]) -> list[tuple[int, str | None]]:
    return [(event.seq, event.WhichOneof("payload")) for event in events]
