"""What a tool asks in the middle of a call: the run waits for a person, and the tool is called again with the answer."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from kit.llm import ModelUnavailable
from services.orchestrator.errors import Parked
from services.orchestrator.log.events import (
    Answer,
    ApprovalDecision,
    InputRequest,
    InputState,
    RunEvent,
    StepState,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Tool
from services.orchestrator.steps.effects import ToolAnswer, ToolNeed, ToolOutcome
from tests.unit.orchestrator.cutting import KEY, now
from tests.unit.orchestrator.fakes import FakeTools
from tests.unit.orchestrator.toolloop.scripting import Reply, Scene, ScriptedReplies, call, calls

TOOL = Tool("poet__write", "(From the server poet, which is not ours.) Writes.", {"type": "object", "properties": {}})
SAMPLING = ToolNeed(
    "sampling", "d1", {"system": "Be brief.", "messages": [{"role": "user", "text": "A haiku?"}], "max_tokens": 50}
)
ELICITATION = ToolNeed(
    "elicitation",
    "d2",
    {"message": "In which language?", "fields": [{"name": "language", "type": "string", "about": "ISO code"}]},
)
WRITES = calls(call("poet__write", "{}"))
HAIKU = "An old silent pond."


class Desk:
    """A run whose tool asks one thing, or goes on asking."""

    def __init__(self, need: ToolNeed, *, always: bool = False, written: Reply = HAIKU) -> None:
        self._need, self._always = need, always
        self.tools = FakeTools([TOOL], self._outcome)
        self.scene = Scene(ScriptedReplies([WRITES, "It is written."], forced=(written,)), self.tools)

    def _outcome(self, _name: str, _arguments: Any) -> ToolOutcome:
        if self.tools.answers and not self._always:
            return ToolOutcome(True, {"text": self.tools.answers[0].text}, "Written.")
        return ToolOutcome(False, {}, "asks something first", "TOOL_INPUT_NEEDED", need=self._need)

    async def work(self) -> list[RunEvent]:
        with suppress(Parked):
            await self.scene.work(await Journal.open(KEY, self.scene.log, now))
        return list(self.scene.log.events[KEY])

    async def decide(self, decision: ApprovalDecision) -> Any:
        journal = await Journal.open(KEY, self.scene.log, now)
        step, asked = list(journal.progress.approvals.items())[-1]
        await journal.record(step, replace(asked, decision=decision, decided_by="ann"), StepState())
        return asked

    async def answer(self, text: str) -> InputRequest:
        journal = await Journal.open(KEY, self.scene.log, now)
        ((step, asked),) = journal.progress.inputs.items()
        await journal.record(step, replace(asked, state=InputState.ANSWERED, text=text), StepState())
        return asked

    @property
    def observed(self) -> str:
        """What the model was told of the call."""
        return str(self.scene.model.requests[-1].messages)


def answers(events: list[RunEvent]) -> list[Answer]:
    return [event.payload for event in events if isinstance(event.payload, Answer)]


async def test_model_writes_for_a_tool_once_a_person_has_allowed_it() -> None:
    desk = Desk(SAMPLING)
    assert not answers(await desk.work())
    assert len(desk.tools.made) == 1
    asked = await desk.decide(ApprovalDecision.ALLOWED)
    assert (asked.tool, asked.arguments) == ("poet__write", {"asks_the_model": SAMPLING.content})
    assert answers(await desk.work())[0].text == "It is written."
    assert desk.tools.answers == (ToolAnswer("d1", HAIKU, "scripted"),)
    (sampled,) = [each for each in desk.scene.model.requests if each.max_tokens == 50]
    assert [(each.role, each.content) for each in sampled.messages] == [("system", "Be brief."), ("user", "A haiku?")]
    (usage,) = [event.payload for event in desk.scene.log.events[KEY] if isinstance(event.payload, Usage)]
    assert [each.completion_tokens > 0 for each in usage.steps if each.step.endswith("need1/model")] == [True]


@pytest.mark.parametrize("decision", [ApprovalDecision.DENIED, ApprovalDecision.EXPIRED])
async def test_tool_is_not_called_again_where_nobody_allows_it(decision: ApprovalDecision) -> None:
    desk = Desk(SAMPLING)
    await desk.work()
    await desk.decide(decision)
    assert answers(await desk.work())
    assert len(desk.tools.made) == 1
    assert "TOOL_INPUT_REFUSED" in desk.observed
    assert not [each for each in desk.scene.model.requests if each.max_tokens == 50]


async def test_model_that_writes_nothing_for_a_tool_ends_the_call_and_not_the_run() -> None:
    desk = Desk(SAMPLING, written=ModelUnavailable("finished without an answer"))
    await desk.work()
    await desk.decide(ApprovalDecision.ALLOWED)
    assert answers(await desk.work())[0].text == "It is written."
    assert len(desk.tools.made) == 1
    assert "TOOL_INPUT_REFUSED" in desk.observed


async def test_user_is_asked_by_the_run_and_told_who_asks() -> None:
    desk = Desk(ELICITATION)
    assert not answers(await desk.work())
    asked = await desk.answer("de")
    for said in ("The server poet, which is not ours", "In which language?", "ISO code", "no passwords"):
        assert said in asked.question
    assert answers(await desk.work())
    assert desk.tools.answers == (ToolAnswer("d2", "de"),)


async def test_tool_that_goes_on_asking_is_given_up() -> None:
    desk = Desk(SAMPLING, always=True)
    for _ in range(3):
        await desk.work()
        await desk.decide(ApprovalDecision.ALLOWED)
    assert answers(await desk.work())
    assert len(desk.tools.made) == 4
    assert "asks too often" in desk.observed
