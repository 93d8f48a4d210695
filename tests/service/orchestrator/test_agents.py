"""An agent is one file in a folder: dropped in, it is asked over HTTP, with a model and without."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.jetstream import Nats
from kit.llm.models import open_models
from kit.llm.opening import endpoint_opener
from kit.llm.providers import make_catalog, parse_providers
from kit.network.egress import EgressGuard
from kit.testing.openai import Reply, ScriptedModel, scripted_model
from services.gateway.settings import GatewaySettings
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import SearchQuery, Tool
from services.orchestrator.modes.agents import discover_agents
from services.orchestrator.modes.serving import discover_modes
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.usage import Metered
from tests.service.gateway.conftest import SERVICES, World, over_http
from tests.service.gateway.sse_reader import received
from tests.service.orchestrator.conftest import Orchestrator, servicer
from tests.unit.kit.llm_fakes import Script, catalog, following_switch
from tests.unit.orchestrator.chatting import TOOLS, answered
from tests.unit.orchestrator.fakes import FakeMemory, FakeScorer, FakeSearcher, FakeTools
from tests.unit.orchestrator.serving import mode_services

Start = Callable[..., Awaitable[Orchestrator]]
MILESTONES = """
from services.orchestrator.agent import Agent, Made, Searching


def show(block):
    return "\\n".join(each["what"] for each in block["milestones"])


def without_model(found):
    first = found.evidence[0]
    what = f"{first.text} [{first.number}]"
    return Made(what, {"milestones": [{"year": 1889, "what": what}]})


AGENT = Agent(
    "Lists milestones: what was built, opened or signed, and in which year.",
    prompt="You are a historian.",
    searching=Searching(top_k=3, strategy="lexical", metadata={"kind": ["chronicle"]}),
    output={
        "type": "object",
        "properties": {
            "milestones": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"year": {"type": "integer"}, "what": {"type": "string"}},
                    "required": ["year", "what"],
                },
            }
        },
        "required": ["milestones"],
    },
    show=show,
    without_model=without_model,
)
"""
CALCULATOR = """
from services.orchestrator.agent import Agent

AGENT = Agent("Does sums.", prompt="You are an accountant.", tools=("math_eval",))
"""
SUM = {"name": "math_eval", "arguments": json.dumps({"expression": "6*7"})}
CALLS_MATH = Reply([{"tool_calls": [{"index": 0, "id": "c1", "function": SUM}]}], finish_reason="tool_calls")
FILLED_IN = {"milestones": [{"year": 1889, "what": "The tower was built in 1889. [1]"}]}
MESSAGE = {"message": "When was the tower built?", "agent": "milestones"}
SEND_EMAIL = Tool("send_email", "Sends.", {"type": "object"}, EffectClass.ONCE, needs_approval=True)
PATH = "/v1/collections/default/chat"
JSON = {"Accept": "application/json"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An operator's, with two agents."""
    (tmp_path / "milestones.py").write_text(MILESTONES)
    (tmp_path / "calculator.py").write_text(CALCULATOR)
    return tmp_path


@pytest.fixture
async def script() -> AsyncIterator[ScriptedModel]:
    async with scripted_model(Reply([json.dumps(FILLED_IN)])) as server:
        yield server


class Serving:
    """A gateway and an orchestrator with the agents of a folder."""

    def __init__(self, client: httpx.AsyncClient, searcher: FakeSearcher) -> None:
        self.client = client
        self.searcher = searcher

    async def answered(self, message: dict[str, Any]) -> dict[str, Any]:
        answer = await self.client.post(PATH, json=message, headers=JSON)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    async def streamed(self, message: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The last event of each kind."""
        async with self.client.stream("POST", PATH, json=message) as response:
            return {each.event: each.data async for each in received(response)}


@pytest.fixture
async def serve(start_orchestrator: Start, jetstream: Nats, folder: Path) -> AsyncIterator[Callable[..., Any]]:
    async with AsyncExitStack() as stack:

        async def start(server: ScriptedModel | None = None) -> Serving:
            return await stack.enter_async_context(_serving(start_orchestrator, jetstream, folder, server))

        yield start


@asynccontextmanager
async def _serving(
    start_orchestrator: Start, jetstream: Nats, folder: Path, server: ScriptedModel | None
) -> AsyncIterator[Serving]:
    async with AsyncExitStack() as stack:
        drafter, model = Drafter(FakeScorer(), None), None
        if server is not None:
            providers = {"local": {"base_url": server.base_url, "models": {"m": {}}, "retries": 0}}
            opener = endpoint_opener(EgressGuard(), stall_timeout_s=60.0, completion_timeout_s=60.0)
            models = open_models(make_catalog(parse_providers(json.dumps(providers))), opener)
            model = Metered(await stack.enter_async_context(models))
            drafter = Drafter(FakeScorer(), Generator(model))
        searcher, memory = FakeSearcher(), FakeMemory()
        settings = OrchestratorSettings(agents_folders=(folder,))
        services = mode_services(
            drafter,
            model=model,
            searcher=searcher,
            memory=memory,
            tools=FakeTools((*TOOLS, SEND_EMAIL), answered),
            agents=discover_agents(settings.agents_folders),
        )
        orchestrator = await start_orchestrator(worker=discover_modes(services, settings))
        switch = await stack.enter_async_context(following_switch(jetstream, Script(), catalog("a/m")))
        world = World(orchestrator=servicer(orchestrator, switch))  # type: ignore[arg-type] # the real one
        await world.start()
        stack.push_async_callback(world.kill)
        addresses = {f"{name}_address": f"127.0.0.1:{world.port}" for name in SERVICES}
        client = await stack.enter_async_context(over_http(GatewaySettings(port=0, **addresses)))  # type: ignore[arg-type]
        yield Serving(client, searcher)


async def test_agent_that_is_dropped_in_is_listed_beside_the_default(serve: Callable[..., Any]) -> None:
    listed = (await (await serve()).client.get("/v1/agents")).json()
    assert [(each["name"], each["is_default"], each["makes_block"]) for each in listed["agents"]] == [
        ("calculator", False, False),
        ("extraction", False, False),
        ("milestones", False, True),
        ("quiz", False, False),
        ("reasoning", True, False),
        ("summary", False, False),
        ("visualisation", False, False),
    ]
    assert {each["name"] for each in listed["modes"]} == {"agent", "chat", "grounded", "qa"}


async def test_its_model_fills_in_the_block_and_the_text_shows_it(
    serve: Callable[..., Any], script: ScriptedModel
) -> None:
    serving = await serve(script)
    answer = await serving.answered(MESSAGE)
    assert answer["block"] == FILLED_IN, answer["degraded"]
    assert (answer["answer"], answer["method"]) == ("The tower was built in 1889. [1]", "model")
    assert answer["citations"][0]["document_name"] == "tower.txt"
    assert answer["support_status"] == "similar_wording"
    assert serving.searcher.queries == [
        SearchQuery(("When was the tower built?",), ("default",), (), 6, "lexical", {"kind": ["chronicle"]})
    ], "twice as many passages as the agent wants: among them the sides of a disagreement are looked for"
    (asked,) = script.requests
    assert "You are a historian." in asked["messages"][0]["content"]
    assert asked["response_format"]["json_schema"]["schema"]["required"] == ["milestones"]
    events = await serving.streamed(MESSAGE)
    assert events["agent"]["name"] == "milestones"
    assert events["agent"]["chosen_by"] == "explicit"
    assert events["token"]["text"] == events["answer"]["text"] == answer["answer"]
    assert events["answer"]["block"] == FILLED_IN
    run = (await serving.client.get(f"/v1/runs/{events['done']['run_id']}")).json()
    assert run["answer"]["block"] == FILLED_IN


async def test_without_a_model_its_own_function_answers(serve: Callable[..., Any]) -> None:
    serving = await serve()
    answer = await serving.answered(MESSAGE)
    text = "The tower was built in 1889 by Gustave Eiffel. [1]"
    assert answer["block"] == {"milestones": [{"year": 1889, "what": text}]}
    assert (answer["answer"], answer["method"]) == (text, "extractive")
    events = await serving.streamed(MESSAGE)
    assert (events["answer"]["block"], events["answer"]["text"]) == (answer["block"], text)


async def test_without_a_name_the_words_of_the_message_choose(serve: Callable[..., Any]) -> None:
    serving = await serve()
    for message, chosen in (
        ("Which milestones were signed in which year?", ("milestones", "classified")),
        ("When was the tower built?", ("reasoning", "default")),
    ):
        event = (await serving.streamed({"message": message, "agent": "auto"}))["agent"]
        assert (event["name"], event["chosen_by"]) == chosen


async def test_agent_that_does_not_exist_is_refused_with_those_that_do(serve: Callable[..., Any]) -> None:
    answer = await (await serve()).client.post(PATH, json={**MESSAGE, "agent": "nobody"})
    assert answer.status_code == 400
    names = "calculator, extraction, milestones, quiz, reasoning, summary, visualisation"
    assert names in answer.json()["detail"]


async def test_agent_with_tools_has_its_model_call_them_and_no_others(
    serve: Callable[..., Any], script: ScriptedModel
) -> None:
    serving = await serve(script)
    script.replies = [CALLS_MATH, Reply(["It is 42."])]
    message = {"message": "What is 6*7?", "agent": "calculator"}
    assert (await serving.answered(message))["answer"] == "It is 42."
    assert [each["function"]["name"] for each in script.requests[0]["tools"]] == ["math_eval"]
    assert "You are an accountant." in script.requests[0]["messages"][0]["content"]
    script.replies = [CALLS_MATH, Reply(["It is 42."])]
    events = await serving.streamed(message)
    assert (events["tool"]["name"], events["tool_result"]["ok"], events["answer"]["text"]) == (
        "math_eval",
        True,
        "It is 42.",
    )
    assert not serving.searcher.queries


async def test_agent_with_tools_searches_where_no_model_calls_them(serve: Callable[..., Any]) -> None:
    answer = await (await serve()).answered({**MESSAGE, "agent": "calculator"})
    assert (answer["answer"], answer["method"]) == ("The tower was built in 1889 by Gustave Eiffel. [1]", "extractive")


async def test_the_answer_is_there_before_its_email_is_allowed_and_sent(serve: Callable[..., Any]) -> None:
    client = (await serve()).client
    message = {"message": "When was the tower built? Then mail it to anna@example.org", "agent": "reasoning"}
    answer = await client.post(PATH, json=message, headers=JSON)
    waiting = answer.json()
    assert (answer.status_code, waiting["status"]) == (202, "waiting"), waiting
    (asked,) = waiting["approvals"]
    assert waiting["answer"] in asked["arguments"]["text"]
    assert asked["arguments"]["to"] == ["anna@example.org"]
    decision = {"decision": "allow", "arguments_hash": asked["arguments_hash"]}
    decided = await client.post(f"/v1/approvals/{asked['id']}", json=decision)
    assert decided.status_code == 200, decided.text
    async with client.stream("GET", f"/v1/runs/{waiting['run_id']}/events") as response:
        events = {each.event: each.data async for each in received(response)}
    assert (events["tool_result"]["step"], events["tool_result"]["ok"]) == ("delivery/send", True)
    assert events["done"]["status"] == "completed"
    run = (await client.get(f"/v1/runs/{waiting['run_id']}")).json()
    assert run["answer"]["text"] == waiting["answer"]
