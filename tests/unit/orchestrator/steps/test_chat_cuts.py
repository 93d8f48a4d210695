"""Chats cut off at every point and continued: the same answer, told in the same words, with each effect once."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kit.llm import ModelUnavailable, ToolsRefused
from services.orchestrator.errors import Parked
from services.orchestrator.log.events import (
    Answer,
    ApprovalDecision,
    Budgets,
    Done,
    RunEvent,
    RunStatus,
    StepState,
    ToolResult,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import ToolSelection
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.run import tell_time_is_up
from tests.unit.orchestrator.chatting import PAY, SEARCH, TOOLS, Chatting, RepeatedReplies, answered
from tests.unit.orchestrator.cutting import KEY, DyingLog, cut_and_continued, cuts, now, shown_by, told, worked
from tests.unit.orchestrator.fakes import FakeTools
from tests.unit.orchestrator.steps.test_cuts import only, without_tokens
from tests.unit.orchestrator.toolloop.scripting import call, calls

GOOD = "The tower was built in 1889 by Gustave Eiffel. [1]"
FIND = calls(call("search", '{"queries": ["tower"]}'))
BOTH = calls(call("pay", '{"amount": 3}'), call("search", '{"queries": ["bridge"]}', 1))
PAYS = replace(PAY, needs_approval=False)
TRUSTED_SEARCH = replace(SEARCH, self_contained=True)
"""Nothing that it finds makes a person be asked about PAYS."""


def failing_once() -> FakeTools:
    outcomes: list[ToolOutcome] = [ToolOutcome(False, {}, "away", "SEARCH_UNAVAILABLE")]

    def answer(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        return outcomes.pop() if outcomes else answered(name, arguments)

    return FakeTools(TOOLS, answer)


WORLDS: dict[str, partial[Chatting]] = {
    "tools": partial(
        Chatting, lambda: RepeatedReplies([FIND, BOTH, GOOD]), lambda: FakeTools([TRUSTED_SEARCH, PAYS], answered)
    ),
    "plain": partial(Chatting, lambda: RepeatedReplies(["Hello."])),
    "retried": partial(Chatting, lambda: RepeatedReplies([FIND, GOOD]), failing_once),
    "refuses tools": partial(Chatting, lambda: RepeatedReplies([ToolsRefused("no")])),
    "model breaks": partial(Chatting, lambda: RepeatedReplies([FIND, ModelUnavailable("down")])),
    "not carried": partial(Chatting, lambda: RepeatedReplies([FIND, "The tower was built in 1874. [1]"])),
    "forced": partial(Chatting, lambda: RepeatedReplies([FIND, GOOD]), budgets=Budgets(reasoning_steps=1)),
    "no model": partial(Chatting),
    "sum": partial(Chatting, question="6 * 7"),
    "small talk": partial(
        Chatting, lambda: RepeatedReplies(["Hi."]), question="Hi", limits=ChatLimits(tool_calling=False)
    ),
    "shed": partial(Chatting, lambda: RepeatedReplies([GOOD]), limits=ChatLimits(agentic_runs_max=1), others=1),
    "no tools": partial(Chatting, selection=ToolSelection(())),
}


def made(world: partial[Chatting]) -> Chatting:
    """The world with a model and tools of its own."""
    model, *tools = world.args or (None,)
    fields: dict[str, Any] = {"model": model()} if model else {}
    if tools:
        fields["tools"] = tools[0]()
    return Chatting(**fields, **{"thread_id": "t1", **world.keywords})


def in_any_order(events: list[RunEvent]) -> list[str]:
    """What a client is told: calls that are made beside each other end in any order."""
    return sorted(map(repr, without_tokens(told(events))))


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
async def test_chat_that_is_cut_anywhere_ends_the_same_with_each_effect_once(world: partial[Chatting]) -> None:
    whole = list(await worked(DyingLog(), made(world).work))
    assert isinstance(whole[-1].payload, Done)
    for cut in cuts(whole):
        chat = made(world)
        events = await cut_and_continued(DyingLog(), (chat.work, chat.work), cut)
        assert [event.seq for event in events] == list(range(1, len(events) + 1)), cut
        assert in_any_order(events) == in_any_order(whole), cut
        assert shown_by(events) == only(whole, Answer)[0].text, cut
        assert len(set(chat.memory.remembered)) == 1, cut
        assert [name for name, _ in chat.tools.made].count("pay") <= 1, cut


async def test_chat_that_waits_for_a_person_is_continued_from_anywhere() -> None:
    """Parked again and again, until somebody has decided."""

    def parking() -> Chatting:
        return Chatting(RepeatedReplies([FIND, BOTH, GOOD]), FakeTools([SEARCH, PAY], answered))

    async def works(chat: Chatting, journal: Journal) -> None:
        with suppress(Parked):
            await chat.work(journal)

    async def decided(log: DyingLog) -> list[RunEvent]:
        journal = await Journal.open(KEY, log, now)
        ((step, asked),) = journal.progress.approvals.items()
        if asked.decision is ApprovalDecision.PENDING:
            await journal.record(step, replace(asked, decision=ApprovalDecision.ALLOWED, decided_by="ann"), StepState())
        return log.events[KEY]

    log, chat = DyingLog(), parking()
    asked = list(await worked(log, partial(works, chat)))
    await decided(log)
    whole = list(await worked(log, partial(works, chat)))
    assert isinstance(whole[-1].payload, Done)
    for cut in cuts(whole):
        log, chat = DyingLog(), parking()
        worker = partial(works, chat)
        await worked(log, worker, cut if cut.seq <= len(asked) else None)
        await worked(log, worker)
        await decided(log)
        await worked(log, worker, cut if cut.seq > len(asked) else None)
        events = await worked(log, worker)
        assert only(events, Answer) == only(whole, Answer), cut
        assert only(events, Done) == only(whole, Done), cut
        assert [name for name, _ in chat.tools.made].count("pay") == 1, cut


class Late(BaseException):
    """The run's time is over."""


async def test_chat_whose_time_runs_out_answers_with_what_it_found_wherever_it_is_cut() -> None:
    def late(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        if name == "pay":
            raise Late
        return answered(name, arguments)

    async def works(chat: Chatting, journal: Journal) -> None:
        if not (journal.progress.is_time_up or journal.progress.answer):
            try:
                await chat.work(journal)
            except Late:
                await tell_time_is_up(journal)
                await journal.say_nothing_twice()
        await chat.work(journal)

    def world() -> Chatting:
        return Chatting(
            RepeatedReplies([FIND, calls(call("pay", "{}")), "Paid."]), FakeTools([TRUSTED_SEARCH, PAYS], late)
        )

    whole = list(await worked(DyingLog(), partial(works, world())))
    (answer,) = only(whole, Answer)
    assert answer.text == GOOD, "what was found is quoted"
    assert only(whole, Done) == [Done(RunStatus.TIMEOUT)]
    assert only(whole, ToolResult)[-1].error_reason == "IN_DOUBT"
    for cut in cuts(whole):
        chat = world()
        events = await cut_and_continued(DyingLog(), (partial(works, chat), partial(works, chat)), cut)
        assert in_any_order(events) == in_any_order(whole), cut
        assert shown_by(events) == answer.text, cut
