"""The loop cut off at every point at which a worker can die, and continued: the same answer in the same words, no effect twice, and
no completion or call done again that the log has."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kit.llm import ModelUnavailable
from services.orchestrator.errors import Parked
from services.orchestrator.log.events import (
    Answer,
    Approval,
    ApprovalDecision,
    Budgets,
    EffectClass,
    Payload,
    RunEvent,
    StepState,
    ToolCall,
    ToolResult,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import approval_id
from services.orchestrator.models import Tool
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.toolloop.loop import LoopEnd
from tests.unit.orchestrator.cutting import KEY, Cut, DyingLog, cut_and_continued, cuts, now, shown_by, told, worked
from tests.unit.orchestrator.fakes import EVIDENCE, FakeTools
from tests.unit.orchestrator.toolloop.scripting import SCHEMA, SEARCH, Scene, ScriptedReplies, call, calls, found

PAY = Tool("pay", "Pays.", SCHEMA, EffectClass.ONCE, parallel_safe=False)
MAIL = replace(PAY, name="mail", needs_approval=True)
GOOD = "It was built in 1889 [1]."


def answered(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
    return found(*EVIDENCE) if name == "search" else ToolOutcome(True, {"receipt": arguments["query"]}, "Done.")


def tools(*more: Tool) -> FakeTools:
    return FakeTools([SEARCH, PAY, *more], answered)


def search(query: str, index: int = 0) -> Any:
    return call("search", f'{{"query": "{query}"}}', index)


def pay(query: str, index: int = 0) -> Any:
    return call("pay", f'{{"query": "{query}"}}', index)


def scene(*replies: Any, forced: Any = ("Forced [1].",), budgets: Budgets | None = None) -> Scene:
    model = ScriptedReplies(replies, forced)
    return Scene(model, tools(), budgets or Budgets(reasoning_steps=3, tool_calls=6, parallel_calls=3))


SCENES = {
    "answers at once": partial(scene, "Hello."),
    "several calls at once, an effect between them, an answer": partial(
        scene, calls(search("a"), search("b", 1), pay("c", 2), search("d", 3)), calls(search("a"), pay("c", 1)), GOOD
    ),
    "steps are spent": partial(scene, calls(search("a")), calls(search("b")), calls(search("c"))),
    "steps of the run are spent": partial(
        scene, calls(search("a")), calls(search("b"), search("c", 1)), budgets=Budgets(steps=6, parallel_calls=2)
    ),
    "the model goes on calling": partial(
        scene, calls(search("a"), pay("b", 1)), forced=(calls(search("c")), calls(search("d")))
    ),
    "the model breaks off": partial(scene, calls(pay("a")), [*calls(search("b"))[:1], ModelUnavailable("away")]),
    "calls that cannot be made": partial(scene, calls(call("fly", "{}"), call("search", "{}", 1)), GOOD),
    "a call written as text": partial(
        scene, '<tool_call>{"name": "pay", "arguments": {"query": "x"}}</tool_call>', "Paid."
    ),
}


def only(events: list[RunEvent], kind: type) -> list[Any]:
    return [event.payload for event in events if isinstance(event.payload, kind)]


def said_in(events: list[RunEvent]) -> list[str]:
    """What was told, without tokens that were paid for again, in an order that does not depend on which call ended first."""

    def plain(payload: Payload) -> Payload:
        return (
            replace(payload, prompt_tokens=0, completion_tokens=0, steps=()) if isinstance(payload, Usage) else payload
        )

    return sorted(repr((step, plain(payload))) for step, payload in told(events))


def completions(scene: Scene) -> list[str]:
    """The conversations that the model was asked to go on with."""
    return [repr(request.messages) + repr(bool(request.tools)) for request in scene.model.requests]


@pytest.mark.parametrize("make", SCENES.values(), ids=SCENES)
async def test_loop_that_is_cut_anywhere_ends_the_same(make: partial[Scene]) -> None:
    whole_scene = make()
    whole = list(await worked(DyingLog(), whole_scene.work))
    assert only(whole, Answer)
    for cut in cuts(whole):
        again = make()
        events = await cut_and_continued(DyingLog(), (again.work, again.work), cut)
        assert said_in(events) == said_in(whole), cut
        assert shown_by(events) == only(whole, Answer)[0].text, cut
        made = sorted(map(repr, again.tools.made))
        assert made == sorted(map(repr, whole_scene.tools.made)), cut
        # The completion that was under way is asked for again, and no other.
        asked = completions(again)
        assert set(asked) == set(completions(whole_scene)), cut
        assert len(asked) <= len(completions(whole_scene)) + 1, cut


async def test_loop_that_dies_again_and_again_still_ends_the_same() -> None:
    make = SCENES["several calls at once, an effect between them, an answer"]
    whole = list(await worked(DyingLog(), make().work))
    again, log = make(), DyingLog()
    for _ in range(200):
        position = len(log.events.get(KEY, []))
        events = await worked(log, again.work, Cut(position + (2 if position else 1), stored=True))
        if only(events, Answer) and events[-1].payload == whole[-1].payload:
            break
    assert said_in(events) == said_in(whole)
    assert len(again.tools.made) == 4


class Desk:
    """Where a run waits for a person."""

    def __init__(self, *replies: Any) -> None:
        self.scene = Scene(ScriptedReplies(replies), tools(MAIL))
        self.log = DyingLog()

    async def work(self, cut: Cut | None = None) -> list[RunEvent]:
        async def worker(journal: Journal) -> None:
            with suppress(Parked):
                await self.scene.work(journal)

        return await worked(self.log, worker, cut)

    async def decide(self, *, allowed: bool) -> None:
        journal = await Journal.open(KEY, self.log, now)
        ((step, asked),) = journal.progress.approvals.items()
        decision = ApprovalDecision.ALLOWED if allowed else ApprovalDecision.DENIED
        await journal.record(step, replace(asked, decision=decision, decided_by="ann"), StepState())


MAIL_AND_SEARCH = calls(search("a"), call("mail", '{"query": "bob"}', 1), search("b", 2))


@pytest.mark.parametrize("allowed", [True, False])
async def test_call_that_needs_approval_waits_and_goes_on_with_the_same_keys(*, allowed: bool) -> None:
    async def ended(cut: Cut | None, late: Cut | None) -> tuple[Desk, list[RunEvent]]:
        desk = Desk(MAIL_AND_SEARCH, GOOD)
        await desk.work(cut)
        events = await desk.work()
        assert not only(events, Answer)
        assert [name for name, _ in desk.scene.tools.made] == ["search"], "what is behind it waits too"
        await desk.decide(allowed=allowed)
        await desk.work(late)
        return desk, list(await desk.work())

    desk, whole = await ended(None, None)
    question = only(whole, Approval)[0]
    assert (question.approval_id, question.tool, question.arguments) == (
        approval_id(KEY.run_id, "round1/call2/approval"),
        "mail",
        {"query": "bob"},
    )
    names = [name for name, _ in desk.scene.tools.made]
    assert names == (["search", "mail", "search"] if allowed else ["search", "search"])
    if not allowed:
        assert "APPROVAL_DENIED" in desk.scene.model.requests[-1].messages[-2].content
    assert only(whole, Answer)[0].text == GOOD
    parked_at = next(event.seq for event in whole if isinstance(event.payload, Approval))
    for cut in cuts(whole):
        early, late = (cut, None) if cut.seq <= parked_at else (None, cut)
        again, events = await ended(early, late)
        assert said_in(events) == said_in(whole), cut
        assert [name for name, _ in again.scene.tools.made] == names, cut


async def test_denied_call_is_not_asked_about_again() -> None:
    desk = Desk(
        calls(call("mail", '{"query": "bob"}')), calls(search("x")), calls(call("mail", '{"query": "bob"}')), GOOD
    )
    await desk.work()
    await desk.decide(allowed=False)
    events = await desk.work()
    assert len({each.approval_id for each in only(events, Approval)}) == 1
    assert "did not allow it" in desk.scene.model.requests[-1].messages[-1].content
    assert desk.scene.result is not None
    assert desk.scene.result.end is LoopEnd.FORCED


async def test_every_call_has_its_result_under_the_key_of_its_place() -> None:
    events = await worked(DyingLog(), SCENES["several calls at once, an effect between them, an answer"]().work)
    expected = {f"{KEY.run_id}/round1/call{number}" for number in (1, 2, 3, 4)}
    assert {each.call_id for each in only(events, ToolCall)} == expected
    assert {each.call_id for each in only(events, ToolResult)} == expected
