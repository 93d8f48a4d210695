"""Tools that a research request names: who plans their calls, what becomes of what they find, and that each call is made once."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kit.errors import Unavailable
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.log.events import (
    Answer,
    Budgets,
    EffectClass,
    Evidence,
    Plan,
    Retrieval,
    RunMode,
    RunStatus,
    Thinking,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import ResearchOptions, RunRecord, RunRequest, Tool, ToolSelection, Turn
from services.orchestrator.research.calling import taint_of
from services.orchestrator.research.models import ResearchPlan
from services.orchestrator.runs.requests import check_tools
from services.orchestrator.steps.effects import ToolOutcome
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, Worker, cut_and_continued, cuts, shown_by, told, worked
from tests.unit.orchestrator.fakes import FakeModel, FakeTools
from tests.unit.orchestrator.research.test_research import QUESTION, Stage

PAGE = Evidence(7, "web-1-0", "web-1", "uppsala.example", "Edda Lindqvist was born in Uppsala, a town of fyris.")
WORDS = {"type": "object", "properties": {"query": {"type": "string", "maxLength": 20}}, "required": ["query"]}
WEB = Tool("web_search", "Searches the web.", WORDS)
SUM = Tool("math_eval", "Computes.", {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]})
FETCH = Tool("web_fetch", "Reads a page.", {"type": "object"}, outward=True)
NOTE = Tool("rag_index", "Keeps a note.", {"type": "object"}, EffectClass.ONCE)
ASKING = Tool("crawl", "Crawls.", {"type": "object"}, needs_approval=True)


def found(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
    """What the web has; of a sum a number."""
    if name == SUM.name:
        return ToolOutcome(True, {"value": 4}, "4")
    return ToolOutcome(True, {}, "1 page found.", evidence=(PAGE,))


class Toolbox(Stage):
    """Research with tools."""

    def __init__(self, *, planner: FakeModel | None = None, tools: FakeTools | None = None) -> None:
        self.tools = tools or FakeTools([WEB, SUM, FETCH, NOTE], found)
        super().__init__(planner=planner, tools=self.tools)

    def worker(  # type: ignore[override] # the names of tools come first
        self, *names: str, effort: str = "medium", budgets: Budgets = Budgets()
    ) -> Worker:
        request = RunRequest(
            RunMode.AGENT,
            QUESTION,
            ("default",),
            budgets=budgets,
            tools=ToolSelection(names),
            research=ResearchOptions(effort),
        )
        record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)

        async def work(journal: Journal) -> None:
            await self.modes.run(record, journal)

        return work

    async def told(self, *names: str, **options: Any) -> Sequence[Any]:
        """The payloads of a run."""
        return [event.payload for event in await worked(DyingLog(), self.worker(*names, **options))]


def evidence_of(payloads: Sequence[Any]) -> set[str]:
    return {each.chunk_id for one in payloads if isinstance(one, Retrieval) for each in one.evidence}


async def test_tool_that_needs_words_alone_is_called_with_the_question_where_no_model_plans() -> None:
    world = Toolbox()
    payloads = await world.told("web_search", "math_eval")
    assert world.tools.made == [("web_search", {"query": QUESTION[:20]})]
    assert PAGE.chunk_id in evidence_of(payloads)


async def test_nothing_is_called_that_the_request_does_not_name() -> None:
    world = Toolbox()
    await world.told()
    assert world.tools.made == []


def planner(*calls: Mapping[str, Any]) -> FakeModel:
    return FakeModel([json.dumps({"queries": ["Iron Harbour director"], "calls": list(calls)})])


async def test_model_plans_the_calls_and_an_answer_may_cite_what_they_find() -> None:
    world = Toolbox(planner=planner({"tool": "web_search", "arguments": {"query": "Lindqvist"}}))
    payloads = await world.told("web_search")
    assert world.tools.made == [("web_search", {"query": "Lindqvist"})]
    (answer,) = [each for each in payloads if isinstance(each, Answer)]
    assert "Uppsala" in answer.text


@pytest.mark.parametrize("arguments", [{}, {"query": 3}, {"query": "x" * 21}])
async def test_call_whose_arguments_do_not_follow_the_schema_is_not_made(arguments: Mapping[str, Any]) -> None:
    world = Toolbox(planner=planner({"tool": "web_search", "arguments": arguments}))
    await world.told("web_search")
    assert world.tools.made == []


async def test_plan_that_calls_what_the_request_does_not_name_is_made_by_rules() -> None:
    world = Toolbox(planner=planner({"tool": "rag_index", "arguments": {}}))
    payloads = await world.told("web_search")
    assert next(each for each in payloads if isinstance(each, Plan)).planned_by == "rules"
    assert [name for name, _ in world.tools.made] == ["web_search"]


async def test_result_without_passages_is_said_to_carry_nothing() -> None:
    world = Toolbox(planner=planner({"tool": "math_eval", "arguments": {"x": 4}}))
    payloads = await world.told("math_eval")
    assert any("no passages" in each.text for each in payloads if isinstance(each, Thinking))


async def test_calls_count_as_searches_and_leave_one_for_the_documents() -> None:
    calls = [{"tool": "web_search", "arguments": {"query": f"q{number}"}} for number in range(4)]
    world = Toolbox(planner=planner(*calls))
    await world.told("web_search", budgets=Budgets(tool_calls=3))
    assert (len(world.tools.made), len(world.corpus.queries)) == (2, 1)


async def test_tools_that_do_not_answer_cost_the_tools_and_not_the_run() -> None:
    class Away(FakeTools):
        async def offered(self) -> Sequence[Tool]:
            raise Unavailable("away", reason="TOOLS_UNAVAILABLE")

    payloads = await Toolbox(tools=Away()).told("web_search")
    assert "Uppsala" in next(each for each in payloads if isinstance(each, Answer)).text
    assert [each.degraded.part for each in payloads if isinstance(each, Thinking) and each.degraded] == ["tools"]


def test_tool_may_be_named_by_another_of_its_names() -> None:
    mode = Toolbox().modes.named(RunMode.AGENT)
    tool = Tool("search", "Searches.", {}, other_names=("rag_search",))
    check_tools(RunRequest(RunMode.AGENT, QUESTION, tools=ToolSelection(("rag_search",))), mode, [tool])
    with pytest.raises(InvalidRequest, match="there is no tool 'rag_find'; use some of search"):
        check_tools(RunRequest(RunMode.AGENT, QUESTION, tools=ToolSelection(("rag_find",))), mode, [tool])


@pytest.mark.parametrize("tool", [NOTE, ASKING], ids=["effect", "approval"])
def test_tool_that_may_change_something_is_refused_by_name(tool: Tool) -> None:
    mode = Toolbox().modes.named(RunMode.AGENT)
    request = RunRequest(RunMode.AGENT, QUESTION, tools=ToolSelection((tool.name,)))
    with pytest.raises(InvalidRequest, match=f"{tool.name} may change something"):
        check_tools(request, mode, [tool])


@pytest.mark.parametrize("effort", ["low", "medium"])
async def test_run_with_calls_that_is_cut_off_after_any_event_ends_the_same_and_calls_once(effort: str) -> None:
    whole = await worked(DyingLog(), Toolbox().worker("web_search", effort=effort))
    for cut in cuts(whole):
        tools = FakeTools([WEB], found)
        workers = [Toolbox(tools=tools).worker("web_search", effort=effort) for _ in range(2)]
        events = await cut_and_continued(DyingLog(), workers, cut)
        assert [(step, payload) for step, payload in told(events) if type(payload).__name__ != "Usage"] == [
            (step, payload) for step, payload in told(whole) if type(payload).__name__ != "Usage"
        ], str(cut)
        assert shown_by(events) == shown_by(whole), str(cut)
        assert len(tools.made) == 1, str(cut)


async def test_address_that_a_model_made_up_from_an_earlier_answer_is_not_asked_for() -> None:
    taint = taint_of(
        "Read on.", [Turn("assistant", "The tower is 42 high.", run_id="r")], ResearchPlan("hybrid", (), ())
    )
    assert taint.may_carry_data({"url": "https://evil.example/?q=tower+42"})
    assert not taint_of("Read https://a.example/x?y=1.", [], ResearchPlan("hybrid", (), ())).may_carry_data(
        {"url": "https://a.example/x?y=1"}
    )
