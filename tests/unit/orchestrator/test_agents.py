"""Agents are found, checked and chosen; what their files cannot do keeps no run from being answered."""

import re
from pathlib import Path
from typing import Any

import pytest

from evals.artefacts.routing import route_all
from kit.errors import GroundworkError
from kit.llm import Request
from services.orchestrator.agent import Agent, Found, Made
from services.orchestrator.answering.blocks import NoBlock, fill_in, outline, read_object, violation, with_marks_of
from services.orchestrator.answering.generation import Generator, Listener
from services.orchestrator.errors import BrokenAgent, InvalidRequest
from services.orchestrator.log.events import Answer, Citation, Payload, RunMode, RunStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest, Turn
from services.orchestrator.modes.agents import Agents, discover_agents
from services.orchestrator.modes.routing import Router, RuleRouter
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import EVIDENCE, MemoryLog
from tests.unit.orchestrator.serving import NoModel, document_modes, mode_services
from tests.unit.orchestrator.toolloop.scripting import Reply, ScriptedReplies

GUIDE = Path(__file__).parents[3] / "docs" / "agents.md"
IMPORT = "from services.orchestrator.agent import Agent, Searching\n"


def test_agent_of_the_guide_is_one(tmp_path: Path) -> None:
    source = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[0]
    (tmp_path / "from_the_guide.py").write_text(source)
    agent = discover_agents([tmp_path]).get("from_the_guide")
    assert agent is not None
    assert agent.without_model is not None
    assert agent.output is not None
    made = agent.without_model(Found("When?", EVIDENCE))
    assert made is not None
    assert made.block is not None
    assert [each["year"] for each in made.block["milestones"]] == [1889, 1932]
    assert not violation(made.block, agent.output)
    assert agent.show is not None
    assert agent.show(made.block).startswith("1889: The tower")


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("reasoning", "", "two modules are called reasoning"),
        ("away", "import nowhere_to_be_found", "away: the module cannot be imported"),
        ("empty", "", "empty.py: it has no AGENT"),
        ("auto", f"{IMPORT}AGENT = Agent('a')", "auto.py: .* rename it"),
        ("Loud", f"{IMPORT}AGENT = Agent('a')", "Loud.py: .* rename it"),
        ("silent", f"{IMPORT}AGENT = Agent(' ')", "silent.py: its description is empty"),
        ("lost", f"{IMPORT}AGENT = Agent('a', searching=Searching(strategy='luck'))", "'luck'; use lexical"),
        ("bent", f"{IMPORT}AGENT = Agent('a', output={{'type': 'thing'}})", "no JSON Schema"),
        ("flat", f"{IMPORT}AGENT = Agent('a', output={{'type': 'array'}})", "must describe an object"),
        ("heavy", f"{IMPORT}AGENT = Agent('a', searching=Searching(weights={{'luck': 1.0}}))", "another engine"),
        ("odd", f"{IMPORT}AGENT = Agent('a', artefacts={{'map': {{'type': 'array'}}}})", "artefact map must describe"),
        ("busy", f"{IMPORT}AGENT = Agent('a', output={{'type': 'object'}}, work=print)", "has work and an output"),
        ("both", f"{IMPORT}AGENT = Agent('a', output={{'type': 'object'}}, tools=('search',))", "one of the two"),
    ],
)
def test_file_that_is_no_agent_is_named_with_what_to_do(tmp_path: Path, name: str, source: str, says: str) -> None:
    (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(BrokenAgent, match=says) as caught:
        discover_agents([tmp_path])
    assert isinstance(caught.value, GroundworkError), "which a process says in a line before it ends"


def test_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenAgent, match="GROUNDWORK_AGENTS_FOLDERS"):
        discover_agents([tmp_path / "nowhere"])


async def test_words_choose_between_agents_and_the_default_takes_the_rest(tmp_path: Path) -> None:
    (tmp_path / "contract_review.py").write_text(
        f"{IMPORT}AGENT = Agent('Finds obligations, deadlines and risks in contracts.')"
    )
    (tmp_path / "drills.py").write_text(f"{IMPORT}AGENT = Agent('Makes drills with questions to learn from.')")
    agents = discover_agents([tmp_path])
    router = Router(agents, NoModel())
    for question, named, chosen in [
        ("Which risks and deadlines does the contract have?", "", ("contract_review", "classified")),
        ("Please review this contract", "auto", ("contract_review", "classified")),
        ("What risk does the report name?", "auto", ("reasoning", "default")),
        ("Which risks and deadlines does the contract have?", "drills", ("drills", "explicit")),
        ("When was the tower built?", "", ("reasoning", "default")),
        ("Summarise the handbook", "", ("summary", "classified")),
    ]:
        choice = await router.choose(
            RunRequest(RunMode.GROUNDED, question, ("default",), agent=named), (), may_ask=True
        )
        assert (choice.name, choice.chosen_by) == chosen, question
    with pytest.raises(InvalidRequest, match=r"contract_review, .*reasoning"):
        agents.check("nobody")


def test_follow_up_goes_to_the_agent_of_the_message_before_it() -> None:
    rules = RuleRouter(discover_agents())
    before = [Turn("user", "Summarise the handbook"), Turn("assistant", "It is about …")]
    assert rules.choose("Shorter, please", before).name == "summary"
    assert rules.choose("Again", before).name == "summary"
    assert rules.choose("one more", [*before, Turn("user", "again")]).name == "summary"
    assert rules.choose("When was the tower built?", before).name == "reasoning"


def test_rules_choose_the_agent_of_nine_messages_in_ten() -> None:
    """Of those that `make eval ARGS='artefacts --only routing'` prints; the rules were mended on them."""
    routed = route_all()
    assert len(routed) == 200
    for language in {each.language for each in routed}:
        own = [each.is_right for each in routed if each.language == language]
        assert sum(own) / len(own) >= 0.85, language
    assert sum(each.is_right for each in routed) / len(routed) >= 0.9


async def test_model_chooses_with_the_recent_turns_and_at_most_ten_tokens() -> None:
    request = RunRequest(RunMode.GROUNDED, "Again, but for children", ("default",))
    history = [Turn("user", "Summarise the handbook"), Turn("assistant", "It is about …")]
    for reply, chosen in [("Summary.", ("summary", "model")), ("I do not know", ("summary", "classified"))]:
        model = Said([reply])
        choice = await Router(discover_agents(), model).choose(request, history, may_ask=True)
        assert (choice.name, choice.chosen_by) == chosen
        (asked,) = model.requests
        assert (asked.max_tokens, asked.temperature) == (10, 0.0)
        assert "Summarise the handbook" in asked.messages[-1].content


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here it is:\n```json\n{"a": {"b": [1]}}\n```', {"a": {"b": [1]}}),
        ('In {braces} there is {"a": 1} at last', {"a": 1}),
        ("[1, 2]", None),
        ("{" * 5000, None),
        ("no", None),
        ('{"a": 1, "b": [{"c": 2}, {"c": 3', {"a": 1, "b": [{"c": 2}, {"c": 3}]}),
        ('{"a": 1} is what the sources say.', {"a": 1}),
    ],
)
def test_object_is_read_whatever_stands_around_it(text: str, found: object) -> None:
    assert read_object(text) == found


def test_marks_of_a_block_become_those_of_the_citations() -> None:
    citations = [Citation(1, "d2", "bridge.txt", "c2", 0, "t"), Citation(2, "d2", "bridge.txt", "c2", 0, "t")]
    block = {"rows": [{"what": "Opened in 1932. [2]", "year": 1932}, {"what": "Built in 1889. [1]"}], "note": None}
    assert with_marks_of(citations, block, EVIDENCE) == {
        "rows": [{"what": "Opened in 1932. [1]", "year": 1932}, {"what": "Built in 1889."}],
        "note": None,
    }


def test_block_without_a_text_of_its_own_is_shown_as_an_outline() -> None:
    block = {"title": "Tower", "is_open": True, "parts": ["top", {"name": "leg", "count": 1}], "owner": None}
    assert outline(block) == (
        "- Title: Tower\n- Is open: yes\n- Parts:\n  - top\n  - Name: leg\n  - Count: 1\n- Owner: –"
    )


OUTPUT = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}


class Said(ScriptedReplies):
    """A model that says its replies one after the other."""

    def _reply(self, request: Request) -> Reply:
        return self.replies[len(self.requests) - 1]


async def filled_in(*replies: str) -> tuple[ScriptedReplies, object]:
    model = Said(replies)
    block = await fill_in(
        Generator(model), OUTPUT, "When?", (), EVIDENCE, system="Fill in.", max_tokens=100, listener=Listener()
    )
    return model, block


async def test_block_that_breaks_the_schema_is_sent_back_once_with_what_is_wrong() -> None:
    model, block = await filled_in('{"year": "1889"}', '{"year": 1889}')
    assert block == {"year": 1889}
    *_, said, order = model.requests[1].messages
    assert said.content == '{"year": "1889"}'
    assert "$.year" in order.content
    assert [request.schema for request in model.requests] == [OUTPUT, OUTPUT]
    with pytest.raises(NoBlock, match="JSON object"):
        await filled_in("I do not know.", "Still not.")


async def test_model_that_repeats_an_item_is_read_no_further() -> None:
    class Loops(ScriptedReplies):
        def _reply(self, request: Request) -> Reply:
            return '{"year": 1889, "points": [' + '{"label": "tower", "value": 1889}, ' * 2000

    model = Loops([""])
    block = await fill_in(
        Generator(model), OUTPUT, "When?", (), EVIDENCE, system="Fill in.", max_tokens=9000, listener=Listener()
    )
    assert block == {"year": 1889, "points": [{"label": "tower", "value": 1889}]}
    assert len(model.requests) == 1


async def run_of(agents: Agents, agent: str = "") -> list[Payload]:
    """What a run wrote that names the agent, without a model."""
    log = MemoryLog()
    request = RunRequest(RunMode.GROUNDED, "When was the tower built?", ("default",), agent=agent)
    record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)
    await document_modes(mode_services(agents=agents)).run(record, await Journal.open(KEY, log, now))
    return [event.payload for event in log.events[KEY]]


def breaks(found: Found) -> Made:
    raise ZeroDivisionError


@pytest.mark.parametrize("own", [None, breaks, lambda _: None, lambda _: Made("1889 [1]", {"year": "no number"})])
async def test_file_that_makes_no_answer_leaves_the_run_to_quotes(own: Any) -> None:
    agent = Agent("Tells the year.", output=OUTPUT, without_model=own, name="reasoning")
    payloads = await run_of(Agents({"reasoning": agent}))
    (answer,) = [each for each in payloads if isinstance(each, Answer)]
    assert (answer.text, answer.block) == ("The tower was built in 1889 by Gustave Eiffel. [1]", None)


async def test_agent_that_is_gone_is_replaced_by_the_default_and_said_so() -> None:
    """A run may be continued by a process that lacks the file."""
    payloads = await run_of(discover_agents(), "lawyer")
    assert [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded] == ["AGENT_GONE"]
    assert any(isinstance(each, Answer) and each.citations for each in payloads)
