"""Every mode, and a made-up one that has everything the engine offers, cut off at every point and continued: the same answer,
told in the same words, with each effect once."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.errors import Unavailable
from kit.llm import ModelUnavailable
from services.orchestrator.agent import Agent, Made
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import (
    Answer,
    Budgets,
    Citation,
    Degradation,
    Done,
    EffectClass,
    Plan,
    Retrieval,
    RunEvent,
    RunMode,
    RunStarted,
    RunStatus,
    SupportStatus,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import RunRecord, RunRequest, Turn
from services.orchestrator.modes.agents import Agents
from services.orchestrator.steps.effects import Fate, ToolOutcome
from services.orchestrator.steps.run import Run, resolved
from tests.unit.orchestrator.cutting import AT, KEY, Cut, DyingLog, cut_and_continued, cuts, shown_by, told, worked
from tests.unit.orchestrator.fakes import (
    EVIDENCE,
    FakeMemory,
    FakeModel,
    FakeScorer,
    FakeSearcher,
)
from tests.unit.orchestrator.serving import document_modes, mode_services

QUESTION = "When was the tower built?"
DENSE_AWAY = Degradation("dense", "EMBEDDER_UNAVAILABLE", "words only")


@dataclass
class World:
    """What stands outside of the run and outlives its workers."""

    mode: RunMode
    pieces: tuple[str, ...] = ()
    model_error: Exception | None = None
    question: str = QUESTION
    thread_id: str = "t1"
    search_down: bool = False
    memory_down: bool = False
    agents: Agents | None = None
    retrieval: Retrieval = field(default_factory=lambda: Retrieval(EVIDENCE, strategy="hybrid"))

    def __post_init__(self) -> None:
        self.searcher = FakeSearcher(self.retrieval)
        self.searcher.down = self.search_down
        self.memory = FakeMemory([Turn("user", "hello"), Turn("assistant", "hi", "r0")])
        self.memory.down = self.memory_down
        self.model = FakeModel(self.pieces, self.model_error) if self.pieces else None

    async def work(self, journal: Journal) -> RunStatus:
        """One worker: everything of the process is new."""
        generator = Generator(self.model) if self.model else None
        drafter = Drafter(FakeScorer(), generator)
        modes = document_modes(mode_services(drafter, searcher=self.searcher, memory=self.memory, agents=self.agents))
        request = RunRequest(self.mode, self.question, ("default",), thread_id=self.thread_id)
        return await modes.run(RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT), journal)


GOOD = ("The tower was ", "built in 1889. [1]")
YEAR = Agent(
    "Tells the year.",
    output={"type": "object", "properties": {"year": {"type": "string"}}, "required": ["year"]},
    without_model=lambda found: Made(f"{found.evidence[0].text} [1]", {"year": "1889 [1]"}),
    name="reasoning",
)
WORLDS: dict[str, partial[World]] = {
    "qa, extractive": partial(World, RunMode.QA, thread_id=""),
    "qa, refused": partial(World, RunMode.QA, question="What is the boiling point of ethanol?"),
    "qa, search down": partial(World, RunMode.QA, search_down=True),
    "qa, half a search": partial(World, RunMode.QA, retrieval=Retrieval(EVIDENCE, (DENSE_AWAY,))),
    "grounded, extractive": partial(World, RunMode.GROUNDED),
    "grounded, model": partial(World, RunMode.GROUNDED, GOOD),
    "grounded, model breaks off": partial(World, RunMode.GROUNDED, GOOD[:1], ModelUnavailable("broke off")),
    "grounded, model invents": partial(World, RunMode.GROUNDED, ("The tower was built in 1889. [1][9]",)),
    "grounded, model is not carried": partial(World, RunMode.GROUNDED, ("Visitors adore the view in summer.",)),
    "grounded, block by a model": partial(
        World, RunMode.GROUNDED, ('{"year": "The tower was built in 1889. [1]"}',), agents=Agents({"reasoning": YEAR})
    ),
    "grounded, block that is none": partial(World, RunMode.GROUNDED, GOOD, agents=Agents({"reasoning": YEAR})),
    "grounded, block without a model": partial(World, RunMode.GROUNDED, agents=Agents({"reasoning": YEAR})),
    "grounded, memory down": partial(World, RunMode.GROUNDED, GOOD, memory_down=True),
}


def only(events: list[RunEvent], kind: type) -> list[Any]:
    return [event.payload for event in events if isinstance(event.payload, kind)]


@pytest.mark.parametrize("make_world", WORLDS.values(), ids=WORLDS)
async def test_mode_that_is_cut_anywhere_ends_the_same(make_world: partial[World]) -> None:
    whole_log = DyingLog()
    whole = list(await worked(whole_log, make_world().work))
    assert isinstance(whole[-1].payload, Done)
    for cut in cuts(whole):
        log, world = DyingLog(), make_world()
        events = await cut_and_continued(log, (world.work, world.work), cut)
        assert [event.seq for event in events] == list(range(1, len(events) + 1)), cut
        assert without_tokens(told(events)) == without_tokens(told(whole)), cut
        assert shown_by(events) == only(whole, Answer)[0].text, cut
        searches = [
            each for each in world.searcher.queries if each.queries[0] == world.question
        ]  # none of single claims
        assert len(searches) <= (2 if world.search_down or searched_in_vain(whole, cut) else 1), cut
        turns = set(world.memory.remembered)
        assert len(turns) == (1 if world.thread_id and not world.memory_down else 0), cut


def searched_in_vain(whole: list[RunEvent], cut: Cut) -> bool:
    """Whether the worker died with the evidence in its hand, before the log had it."""
    found = next((event.seq for event in whole if isinstance(event.payload, Retrieval)), 0)
    return cut.seq == found and not cut.stored


def without_tokens(told_: list[Any]) -> list[Any]:
    """A step that is done again is paid for again: its tokens are not the same."""
    return [
        (
            step,
            replace(payload, prompt_tokens=0, completion_tokens=0, steps=()) if isinstance(payload, Usage) else payload,
        )
        for step, payload in told_
    ]


class Bank:
    """An executor that lives in a process of its own. It knows its calls by their ids, unless it is `forgetful`."""

    def __init__(self, *, forgetful: bool = False) -> None:
        self.made: dict[str, int] = {}
        self.outcomes: dict[str, ToolOutcome] = {}
        self.forgetful = forgetful
        self.asked: list[str] = []


@dataclass
class Transfer:
    """A call to the bank."""

    bank: Bank
    effect: EffectClass
    arguments: Mapping[str, Any] = field(default_factory=lambda: {"amount": 3})
    name: str = "transfer"
    error: Exception | None = None

    async def run(self, call_id: str) -> ToolOutcome:
        if self.effect is EffectClass.IDEMPOTENT and call_id in self.bank.outcomes:
            return self.bank.outcomes[call_id]
        self.bank.made[call_id] = self.bank.made.get(call_id, 0) + 1
        self.bank.outcomes[call_id] = ToolOutcome(True, {"receipt": call_id}, "Done.")
        if self.error is not None:
            raise self.error
        return self.bank.outcomes[call_id]

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        self.bank.asked.append(call_id)
        if self.bank.forgetful:
            return Fate.UNKNOWN
        return self.bank.outcomes.get(call_id, Fate.NEVER_BEGAN)


EFFECTS = (EffectClass.NONE, EffectClass.IDEMPOTENT, EffectClass.ONCE)


async def everything(bank: Bank, journal: Journal) -> RunStatus:
    """A mode with nested and parallel steps, and effects of each class."""
    if journal.progress.done is not None:
        return journal.progress.done.status
    run = await Run.begin(journal, RunStarted(RunMode.CHAT, "?", budgets=Budgets(steps=20, parallel_calls=2)))
    plan = await run.once("plan", partial(resolved, Plan("hybrid", ("a",))), Plan)
    await run.say(Thinking("route", "a note between steps"))

    async def round_(number: int) -> str:
        async def body() -> Thinking:
            await run.say(Thinking("route", f"a note in round {number}"))
            calls = [run.effect(f"round{number}/{each.value}", Transfer(bank, each)) for each in EFFECTS]
            outcomes = await run.all(*calls)
            return Thinking("route", " ".join(each.error_reason or "ok" for each in outcomes))

        return (await run.once(f"round{number}", body, Thinking, of_steps=True)).text

    rounds = [await round_(number) for number in (1, 2)]
    text = f"{plan.queries[0]}: {', '.join(rounds)}"

    async def answer() -> Answer:
        screen = Screen(journal)
        for end in range(0, len(text) + 1, 5):
            await screen.show(text[:end])
        await screen.settle(text)
        return Answer(text, (Citation(1, "d", "n", "c", 0, "t"),), SupportStatus.SUPPORTED, "extractive")

    await run.once("answer", answer, Answer)
    return await run.end(RunStatus.COMPLETED)


async def test_effects_that_are_cut_anywhere_are_caused_once() -> None:
    whole = list(await worked(DyingLog(), partial(everything, Bank())))
    assert len(whole) > 20
    for cut in cuts(whole):
        bank = Bank()
        worker = partial(everything, bank)
        events = await cut_and_continued(DyingLog(), (worker, worker), cut)
        assert sorted(map(repr, told(events))) == sorted(map(repr, told(whole))), cut
        assert shown_by(events) == only(whole, Answer)[0].text, cut
        assert set(bank.made) == {f"{KEY.run_id}/round{n}/{each.value}" for n in (1, 2) for each in EFFECTS}, cut
        assert set(bank.made.values()) == {1}, cut


async def test_effect_whose_fate_nobody_knows_is_in_doubt_and_never_repeated() -> None:
    whole = list(await worked(DyingLog(), partial(everything, Bank())))
    doubts = 0
    for cut in cuts(whole):
        bank = Bank(forgetful=True)
        worker = partial(everything, bank)
        events = await cut_and_continued(DyingLog(), (worker, worker), cut)
        results = {each.call_id: each for each in only(events, ToolResult)}
        for call_id, times in bank.made.items():
            is_once = call_id.endswith(EffectClass.ONCE.value)
            assert times == 1 or (times == 2 and call_id.endswith(EffectClass.NONE.value)), (cut, call_id)
            assert results[call_id].ok or (is_once and results[call_id].error_reason == "IN_DOUBT"), (cut, call_id)
        calls = {each.call_id for each in only(events, ToolCall)}
        assert calls == set(results), cut
        assert all(call in bank.made or results[call].error_reason == "IN_DOUBT" for call in calls), cut
        doubts += sum(each.error_reason == "IN_DOUBT" for each in results.values())
        assert isinstance(events[-1].payload, Done), cut
    assert doubts == 2 * 2, "dying behind the intent, or with the result in hand, of two rounds"


async def test_run_that_dies_again_and_again_still_ends_the_same() -> None:
    """Each worker gets one append further than the one before it."""
    whole = list(await worked(DyingLog(), partial(everything, Bank())))
    bank, log = Bank(), DyingLog()
    for _ in range(200):
        position = len(log.events.get(KEY, []))
        # The first append of a worker is the note that it goes on.
        events = await worked(log, partial(everything, bank), Cut(position + (2 if position else 1), stored=True))
        if isinstance(events[-1].payload, Done):
            break
    assert only(events, Answer) == only(whole, Answer)
    assert sorted(map(repr, told(events))) == sorted(map(repr, told(whole)))
    assert set(bank.made.values()) == {1}


async def test_call_that_may_have_been_made_is_asked_for_by_its_id() -> None:
    """The answer got lost, not the worker."""
    once, idempotent = EffectClass.ONCE, EffectClass.IDEMPOTENT
    for bank, effect, expected in (
        (Bank(), once, "ok"),
        (Bank(forgetful=True), once, "IN_DOUBT"),
        (Bank(), idempotent, "ok"),
        (Bank(forgetful=True), idempotent, "UNAVAILABLE"),
    ):

        async def work(journal: Journal, bank: Bank = bank, effect: EffectClass = effect) -> str:
            run = await Run.begin(journal, RunStarted(RunMode.CHAT, "?"))
            call = Transfer(bank, effect, error=Unavailable("the line is dead"))
            outcome = await run.effect("pay", call)
            return outcome.error_reason or "ok"

        assert await work(await Journal.open(KEY, DyingLog(), lambda: AT)) == expected
        assert bank.asked == [f"{KEY.run_id}/pay"]
        assert set(bank.made.values()) == {1}


def test_events_of_steps_keep_their_key_for_clients_and_their_state_for_us() -> None:
    assert pb.RunEvent.DESCRIPTOR.fields_by_name["step"].number == 30
    assert pb.RunEvent.DESCRIPTOR.fields_by_name["state"].number == 31
