"""Three stages of a forced answer: an answer always comes."""

import pytest

from kit.llm import CredentialsRefused, ModelRejected, ModelUnavailable
from services.orchestrator.log.events import Budgets, Thinking
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.toolloop.loop import LoopEnd
from tests.unit.orchestrator.fakes import FakeTools
from tests.unit.orchestrator.toolloop.scripting import SEARCH, Reply, Scene, ScriptedReplies, call, calls

BAD = ModelUnavailable("finished without an answer", reason="LLM_BAD_ANSWER")


def round_(number: int) -> Reply:
    return calls(call("search", f'{{"query": "{number}"}}'))


def wanderer(*forced: Reply) -> ScriptedReplies:
    """A model that never stops calling tools by itself."""
    return ScriptedReplies([round_(number) for number in range(40)], forced or ("It was built in 1889 [1].",))


def degradations(scene: Scene) -> list[str]:
    return [each.degraded.reason for each in scene.events if isinstance(each, Thinking) and each.degraded is not None]


@pytest.mark.parametrize(
    ("budgets", "reason", "made"),
    [
        (Budgets(reasoning_steps=2), "reasoning_steps", 2),
        (Budgets(), "reasoning_steps", 3),
        (Budgets(reasoning_steps=9, tool_calls=4), "tool_calls", 4),
        (Budgets(reasoning_steps=9, steps=5), "steps", 2),
        (Budgets(reasoning_steps=9, tokens=400), "tokens", 4),
    ],
)
async def test_budget_that_is_spent_forces_an_answer(budgets: Budgets, reason: str, made: int) -> None:
    model = wanderer()
    scene = Scene(model, budgets=budgets)
    result = await scene.run()
    assert len(scene.tools.made) == made
    assert result.reason == reason
    assert result.text
    assert result.text == scene.shown
    assert f"BUDGET_{reason.upper()}" in degradations(scene)
    if reason != "tokens":  # then no model may be asked any more
        assert result.end is LoopEnd.FORCED
        assert model.requests[-1].tools == ()
        assert "Stop calling tools" in model.requests[-1].messages[0].content
        assert "Stop calling tools" in model.requests[-1].messages[-1].content
    else:
        assert result.end is LoopEnd.FALLBACK


@pytest.mark.parametrize("first", [round_(50), BAD, ModelRejected("no tool messages, please"), ""], ids=str)
async def test_second_attempt_is_short_and_has_no_trace_of_tools(first: Reply) -> None:
    model = wanderer(first, "It was built in 1889 [1].")
    scene = Scene(model)
    result = await scene.run()
    assert (result.text, result.end) == ("It was built in 1889 [1].", LoopEnd.FORCED)
    last = model.requests[-1].messages
    assert [message.role for message in last] == ["system", "user"]
    assert "The tower was built in 1889" in last[1].content
    assert "No tools are left" in last[1].content


@pytest.mark.parametrize(
    ("forced", "asked"),
    [
        ((round_(50), round_(51)), 2),
        ((BAD, BAD), 2),
        ((ModelUnavailable("away"), "never asked"), 1),
        ((CredentialsRefused("no"), "never asked"), 1),
    ],
    ids=str,
)
async def test_third_stage_quotes_what_was_found_without_a_model(forced: tuple[Reply, ...], asked: int) -> None:
    model = wanderer(*forced)
    scene = Scene(model)
    result = await scene.run()
    assert result.end is LoopEnd.FALLBACK
    assert "The tower was built in 1889" in result.text
    assert "[1]" in result.text
    assert result.text == scene.shown
    assert sum(not request.tools for request in model.requests) == asked


async def test_without_evidence_it_is_said_what_the_tools_said() -> None:
    tools = FakeTools([SEARCH], lambda *_: ToolOutcome(True, {"sum": 42}, "The sum is 42."))
    scene = Scene(wanderer(ModelUnavailable("the model is away")), tools)
    result = await scene.run()
    assert result.end is LoopEnd.FALLBACK
    assert "search: The sum is 42." in result.text
    assert "The model is away.\n" in result.text
    assert result.text == scene.shown


async def test_call_in_a_forced_answer_is_not_shown() -> None:
    written = '<tool_call>{"name": "search", "arguments": {"query": "9"}}</tool_call>'
    scene = Scene(wanderer(written, written))
    result = await scene.run()
    assert "tool_call" not in result.text
    assert len(scene.tools.made) == 3
