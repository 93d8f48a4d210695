"""A thorough run that asks its user first what the question is about."""

from datetime import timedelta

import pytest

from kit.access.principal import Principal
from services.orchestrator.errors import InputClosed, InvalidRequest, NotYoursToDecide, Parked
from services.orchestrator.log.events import (
    Answer,
    Done,
    InputRequest,
    InputState,
    Payload,
    RunMode,
    RunParked,
    RunStatus,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest, Turn
from services.orchestrator.research.question.clarifying import clarify_by_rules
from services.orchestrator.runs.inputs import Inputs
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, Worker, cuts, now, told, worked
from tests.unit.orchestrator.fakes import FakeModel, MemoryLog
from tests.unit.orchestrator.research.test_research import Stage, answer_of, only

UNCLEAR = "Where was she born?"
ANN = Principal("local", "ann", frozenset())


class Waiting:
    """Runs and their store, as far as an answer needs them."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self.cancelled = cancelled
        self.resumed: list[object] = []

    async def parked(self, tenant_id: str) -> dict[object, object]:
        return {}

    async def wake_by(self, key: object, at: object) -> None: ...

    async def resume(self, key: object) -> None:
        self.resumed.append(key)

    async def is_cancelled(self, key: object) -> bool:
        return self.cancelled


def record(subject: str = "ann") -> RunRecord:
    return RunRecord(KEY, subject, RunRequest(RunMode.AGENT, UNCLEAR, ("default",)), RunStatus.WAITING, AT)


async def answered(log: MemoryLog, text: str, runs: Waiting | None = None, who: Principal = ANN) -> InputRequest:
    runs = runs or Waiting()
    return await Inputs(runs, log, runs, now).answer(who, record(), text)  # type: ignore[arg-type]


def parking(worker: Worker, until: list[object] | None = None) -> Worker:
    """The worker, which parks the run as an orchestrator does."""

    async def work(journal: Journal) -> None:
        try:
            await worker(journal)
        except Parked as parked:
            await journal.park(parked.until)

    return work


async def asking(log: MemoryLog, stage: Stage | None = None, question: str = UNCLEAR) -> list[Payload]:
    await parking((stage or Stage()).worker(question, effort="high"))(await Journal.open(KEY, log, now))
    return [event.payload for event in log.events[KEY]]


async def test_question_about_nobody_is_asked_back_and_answered_with_the_answer() -> None:
    log = MemoryLog()
    payloads = await asking(log)
    assert isinstance(payloads[-1], RunParked)
    assert payloads[-1].waits_for == "input"
    (asked,) = [each for each in payloads if isinstance(each, InputRequest)]
    assert (asked.state, UNCLEAR in asked.question) == (InputState.PENDING, True)
    assert (await answered(log, "Edda Lindqvist")).state is InputState.ANSWERED
    payloads = await asking(log)
    assert "Uppsala" in answer_of(payloads).text
    assert payloads[-1] == Done(RunStatus.COMPLETED)


async def test_second_answer_is_refused_and_the_same_one_is_harmless() -> None:
    log, runs = MemoryLog(), Waiting()
    await asking(log)
    await answered(log, "Edda Lindqvist")
    assert (await answered(log, "Edda Lindqvist", runs)).text == "Edda Lindqvist"
    assert runs.resumed, "the run may not have heard of the first one"
    with pytest.raises(InputClosed, match="already"):
        await answered(log, "Tom Barrow")


async def test_answer_that_is_none_or_comes_from_somebody_else_is_refused() -> None:
    log = MemoryLog()
    await asking(log)
    with pytest.raises(InvalidRequest):
        await answered(log, "  ")
    with pytest.raises(NotYoursToDecide):
        await answered(log, "Edda Lindqvist", who=Principal("local", "bob", frozenset({"admin"})))
    with pytest.raises(InputClosed, match="cancelled"):
        await answered(log, "Edda Lindqvist", Waiting(cancelled=True))


async def test_run_that_asks_nothing_takes_no_answer() -> None:
    log = MemoryLog()
    await asking(log, question="Where was Edda Lindqvist born?")
    with pytest.raises(InputClosed, match="asks nothing"):
        await answered(log, "Tom Barrow")


async def test_run_goes_on_without_an_answer_that_does_not_come() -> None:
    log = MemoryLog()
    await asking(log)
    later = await Journal.open(KEY, log, lambda: AT + timedelta(days=365))
    await Stage().worker(UNCLEAR, effort="high")(later)
    payloads = [event.payload for event in log.events[KEY]]
    assert [each.state for each in payloads if isinstance(each, InputRequest)] == [
        InputState.PENDING,
        InputState.EXPIRED,
    ]
    assert isinstance(payloads[-1], Done)
    with pytest.raises(InputClosed):
        await answered(log, "Edda Lindqvist")


async def test_run_that_asks_and_is_cut_anywhere_ends_the_same() -> None:
    async def whole_run(log: DyingLog, cut: object = None) -> None:
        await worked(log, parking(Stage().worker(UNCLEAR, effort="high")), cut)  # type: ignore[arg-type]
        await worked(log, parking(Stage().worker(UNCLEAR, effort="high")))
        if any(isinstance(event.payload, Done) for event in log.events[KEY]):
            return
        await answered(log, "Edda Lindqvist")
        await worked(log, parking(Stage().worker(UNCLEAR, effort="high")))

    whole = DyingLog()
    await whole_run(whole)
    asked = next(event.seq for event in whole.events[KEY] if isinstance(event.payload, RunParked))
    for cut in cuts(whole.events[KEY][:asked]):
        log = DyingLog()
        await whole_run(log, cut)
        assert told(log.events[KEY])[:-2] == told(whole.events[KEY])[:-2], str(cut)
    for cut in cuts(whole.events[KEY][asked + 1 :]):
        log = DyingLog()
        await worked(log, parking(Stage().worker(UNCLEAR, effort="high")))
        await answered(log, "Edda Lindqvist")
        await worked(log, parking(Stage().worker(UNCLEAR, effort="high")), cut)
        events = await worked(log, parking(Stage().worker(UNCLEAR, effort="high")))
        (answer,) = [event.payload for event in events if isinstance(event.payload, Answer)]
        assert "Uppsala" in answer.text, str(cut)


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("When did he die?", True),
        ("Where was she born?", True),
        ("Что он сказал?", True),
        ("Where was Edda Lindqvist born?", False),
        ("What happens if an employee loses their badge?", False),
        ("How long is the notice period?", False),
        ("overtime", False),
    ],
)
def test_only_what_says_nothing_of_its_subject_is_asked_back(question: str, asks: bool) -> None:
    assert bool(clarify_by_rules(question, ())) is asks
    assert not clarify_by_rules(question, [Turn("user", "Who is Edda Lindqvist?")])


async def test_model_may_ask_about_what_names_nothing() -> None:
    said = '{"is_clear": false, "question": "Which harbour do you mean?"}'
    payloads = await asking(MemoryLog(), Stage(planner=FakeModel([said])), "How deep is the harbour?")
    (asked,) = only(payloads, InputRequest)
    assert isinstance(asked, InputRequest)
    assert asked.question == "Which harbour do you mean?"


async def test_medium_effort_asks_nobody() -> None:
    payloads = await Stage().run(UNCLEAR, effort="medium")
    assert not only(payloads, InputRequest)
