"""Chats over the real contract: a real tools service, a model over HTTP, a real log."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc
from groundwork.tools.v1 import tools_pb2

from kit.errors import InvalidArgument, Unimplemented
from kit.jetstream import Nats
from kit.llm import estimate_tokens
from kit.llm.models import open_models
from kit.llm.opening import endpoint_opener
from kit.llm.providers import make_catalog, parse_providers
from kit.network.egress import EgressGuard
from kit.testing.harness import free_port, open_test_channel, running_service
from kit.testing.openai import Reply, ScriptedModel, scripted_model
from services.orchestrator.adapters.jetstream.sources import KeyValueRunSources
from services.orchestrator.adapters.services.tools import GrpcTools
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.modes.serving import Modes, discover_modes
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.usage import Metered
from services.tools.app import run as run_tools
from services.tools.settings import ToolsSettings
from tests.service.orchestrator.conftest import Orchestrator, servicer
from tests.service.orchestrator.test_handlers import serving
from tests.unit.kit.llm_fakes import Script, catalog, following_switch
from tests.unit.orchestrator.fakes import FakeMemory, FakeScorer
from tests.unit.orchestrator.serving import NoModel, mode_services

Start = Callable[..., Awaitable[Orchestrator]]
SUM = {"name": "math_eval", "arguments": json.dumps({"expression": "6*7"})}
CALLS_MATH = Reply([{"tool_calls": [{"index": 0, "id": "c1", "function": SUM}]}], finish_reason="tool_calls")


@pytest.fixture
async def tools(nats_url: str) -> AsyncIterator[GrpcTools]:
    settings = ToolsSettings(grpc_address=f"127.0.0.1:{free_port()}", nats_url=nats_url)
    services = [tools_pb2.DESCRIPTOR.services_by_name["ToolsService"]]
    async with (
        running_service(run_tools, settings) as address,
        open_test_channel(address, services=services) as channel,
    ):
        yield GrpcTools(channel, list_timeout_s=60.0)


Worker = Callable[[ScriptedModel | None], Awaitable[Modes]]


@pytest.fixture
async def make_worker(tools: GrpcTools, jetstream: Nats) -> AsyncIterator[Worker]:
    """Workers that serve all modes, with the model at an address or none."""
    async with AsyncExitStack() as stack:

        async def make(server: ScriptedModel | None) -> Modes:
            opener = endpoint_opener(EgressGuard(), stall_timeout_s=60.0, completion_timeout_s=60.0)
            model: Any = NoModel()
            if server is not None:
                providers = {"local": {"base_url": server.base_url, "models": {"m": {}}, "retries": 0}}
                made = make_catalog(parse_providers(json.dumps(providers)))
                model = await stack.enter_async_context(open_models(made, opener))
            metered = Metered(model)
            drafter, memory = Drafter(FakeScorer(), Generator(metered)), FakeMemory()
            sources = await KeyValueRunSources.open(jetstream, retention_days=1)
            services = mode_services(drafter, model=metered, tools=tools, memory=memory, sources=sources)
            return discover_modes(services, OrchestratorSettings())

        yield make


@asynccontextmanager
async def chatting(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, worker: Modes
) -> AsyncIterator[rpc.OrchestratorServiceStub]:
    orchestrator = await start_orchestrator(worker=worker)
    async with (
        following_switch(jetstream, Script(), catalog("a/m")) as switch,
        serving(servicer(orchestrator, switch, tools)) as stub,
    ):
        yield stub


async def told(stub: rpc.OrchestratorServiceStub, message: str, **fields: Any) -> list[pb.RunEvent]:
    request = pb.StartRunRequest(mode=pb.RUN_MODE_CHAT, question=message, **fields)
    return [response.event async for response in stub.StartRun(request, timeout=60)]


def kinds(events: list[pb.RunEvent]) -> list[str]:
    """Without the notes between."""
    return [str(kind) for event in events if (kind := event.WhichOneof("payload")) not in ("thinking", "token")]


async def test_model_calls_a_real_tool_and_answers(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    async with (
        scripted_model(CALLS_MATH, Reply(["It is ", "42."])) as server,
        chatting(start_orchestrator, jetstream, tools, await make_worker(server)) as stub,
    ):
        events = await told(stub, "What is six times seven?")
    assert kinds(events) == ["run", "plan", "tool", "tool_result", "answer", "usage", "done"]
    answer = next(event.answer for event in events if event.HasField("answer"))
    assert (answer.text, answer.support_status) == ("It is 42.", pb.SUPPORT_STATUS_UNSPECIFIED)
    assert events[-1].done.status == pb.RUN_STATUS_COMPLETED
    offered = [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert {"math_eval", "time_now"} <= set(offered)
    assert '"result": "42"' in server.requests[1]["messages"][-1]["content"]


async def test_model_is_told_that_its_answer_is_read_aloud(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    async with (
        scripted_model(Reply(["Good morning."]), Reply(["Good morning."])) as server,
        chatting(start_orchestrator, jetstream, tools, await make_worker(server)) as stub,
    ):
        await told(stub, "Good morning!")
        await told(stub, "Good morning!", style="spoken")
        with pytest.raises(InvalidArgument, match="use spoken, or leave it out"):
            await told(stub, "Good morning!", style="sung")
    written, spoken = (request["messages"][0]["content"] for request in server.requests)
    assert "read aloud" not in written
    assert "read aloud" in spoken


async def test_server_without_support_for_tools_is_answered_for(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    body = json.dumps(
        {"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}}
    )
    async with (
        scripted_model(Reply(status=400, body=body)) as server,
        chatting(start_orchestrator, jetstream, tools, await make_worker(server)) as stub,
    ):
        events = await told(stub, "What is 6*7?")
    assert kinds(events) == ["run", "plan", "plan", "tool", "tool_result", "answer", "usage", "done"]
    assert "TOOLS_NOT_SUPPORTED" in [event.thinking.degraded.reason for event in events]
    assert next(event.answer.text for event in events if event.HasField("answer")) == "6*7 = 42"


async def test_everything_works_without_a_model(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    async with chatting(start_orchestrator, jetstream, tools, await make_worker(None)) as stub:
        for message, said in (("What is 6*7?", "6*7 = 42"), ("What time is it?", "It is "), ("Hello!", "Hello!")):
            events = await told(stub, message)
            assert next(event.answer.text for event in events if event.HasField("answer")).startswith(said)
            assert events[-1].done.status == pb.RUN_STATUS_COMPLETED


async def test_unknown_tool_is_refused_before_there_is_a_run(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    async with chatting(start_orchestrator, jetstream, tools, await make_worker(None)) as stub:
        with pytest.raises(InvalidArgument, match=r"there is no tool 'mathe'; use some of .*math_eval.*time_now"):
            await told(stub, "Hello!", tools=pb.ToolSelection(names=["math_eval", "mathe"]))
        with pytest.raises(Unimplemented, match="use auto"):
            await told(stub, "Hello!", memory="telepathic")
        assert not (await stub.ListRuns(pb.ListRunsRequest(), timeout=60)).runs
        events = await told(stub, "Hello!", tools=pb.ToolSelection(), memory="auto")
        assert next(event.thinking.text for event in events if event.step == "tools") == "No tools."


def takes(limit_tokens: int, *replies: Reply) -> Callable[[Mapping[str, Any]], Reply]:
    """A server that says nothing of its context until a prompt is too long for it; then it does what vLLM does."""
    said = iter(replies)

    def reply_to(asked: Mapping[str, Any]) -> Reply:
        tokens = estimate_tokens(json.dumps([asked["messages"], asked.get("tools", [])], ensure_ascii=False))
        if tokens + asked["max_tokens"] <= limit_tokens:
            return next(said)
        message = (
            f"This model's maximum context length is {limit_tokens} tokens. However, you requested {tokens} tokens."
        )
        return Reply(
            status=400, body=json.dumps({"error": {"message": message, "type": "BadRequestError", "code": 400}})
        )

    return reply_to


async def test_context_is_learnt_from_the_refusal_of_the_first_prompt_that_is_too_long(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    async with scripted_model() as server:
        server.reply_to = takes(4096, CALLS_MATH, Reply(["It is 42."]), Reply(["Hello."]))
        async with chatting(start_orchestrator, jetstream, tools, await make_worker(server)) as stub:
            events = await told(stub, "What is 6*7?")
            assert kinds(events) == ["run", "plan", "tool", "tool_result", "answer", "usage", "done"]
            shown = [{tool["function"]["name"] for tool in asked["tools"]} for asked in server.requests]
            assert len(shown) == 3, "one refusal, and the prompt anew"
            assert "math_eval" in shown[1] < shown[0]
            await told(stub, "Hello!")
            assert len(server.requests) == 4, "it is known from then on"


async def test_answer_from_documents_is_asked_for_anew_once_the_context_is_known(
    start_orchestrator: Start, jetstream: Nats, tools: GrpcTools, make_worker: Worker
) -> None:
    async with scripted_model() as server:
        server.reply_to = takes(700, Reply(["The tower was built in 1889 by Gustave Eiffel. [1]"]))
        async with chatting(start_orchestrator, jetstream, tools, await make_worker(server)) as stub:
            request = pb.StartRunRequest(
                mode=pb.RUN_MODE_QA, question="When was the tower built?", collection_ids=["c"]
            )
            events = [response.event async for response in stub.StartRun(request, timeout=60)]
    answer = next(event.answer for event in events if event.HasField("answer"))
    assert (answer.method, len(server.requests)) == ("model", 2)
    assert server.requests[1]["max_tokens"] < server.requests[0]["max_tokens"]
