"""One run being worked on: its clock counts time worked, an answer that is logged is finished, a log that is lost ends once."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from kit.errors import Unavailable
from services.orchestrator.errors import FencedOff, Parked
from services.orchestrator.log.events import (
    Answer,
    Budgets,
    Citation,
    Done,
    Payload,
    RunError,
    RunMode,
    RunStarted,
    RunStatus,
    StepUsage,
    SupportStatus,
    Thinking,
    Token,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey, RunLimits, RunRecord, RunRequest
from services.orchestrator.modes.serving import Modes
from services.orchestrator.runs import execution
from services.orchestrator.runs.execution import Ending, Execution, RunServices
from services.orchestrator.runs.tally import RunCost
from services.orchestrator.steps.run import Run
from tests.unit.orchestrator.cutting import AT, KEY
from tests.unit.orchestrator.fakes import FakeMemory, MemoryLog
from tests.unit.orchestrator.limits.counting import unlimited
from tests.unit.orchestrator.serving import WorkedBy

ANSWER = Answer("a [1]", (Citation(1, "d", "n", "c", 0, "t"),), SupportStatus.SUPPORTED, "extractive")


class Store:
    """The part of RunStore that an execution needs. `down` makes it unreachable."""

    def __init__(self) -> None:
        self.finished: list[RunStatus] = []
        self.down = False
        self.cancelled: list[bool] = [False]
        """What is heard one time after the other; the last for good."""

    async def finish(self, record: RunRecord) -> None:
        if self.down:
            raise Unavailable("the store is down")
        self.finished.append(record.status)

    async def is_cancelled(self, key: RunKey) -> bool:
        return self.cancelled.pop(0) if len(self.cancelled) > 1 else self.cancelled[0]


class Counted:
    """The part of a Tally that an execution needs."""

    def __init__(self) -> None:
        self.costs: dict[RunKey, RunCost] = {}

    async def put(self, cost: RunCost) -> None:
        self.costs[cost.key] = cost


class Works:
    """A worker that does as it is told."""

    def __init__(self, *work: Callable[[Journal], Awaitable[Any]]) -> None:
        self.work = list(work)

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        """The next piece of work; the last one again and again."""
        return await (self.work.pop(0) if len(self.work) > 1 else self.work[0])(journal)


def run_services(
    store: Store, tally: Counted, modes: Modes, limits: RunLimits, now: Callable[[], datetime]
) -> RunServices:
    """The part that an execution needs."""
    none: Any = None
    return RunServices(store, none, none, none, modes, limits, none, tally, unlimited(), none, now)  # type: ignore[arg-type]


class Desk:
    """One run, its log, and who works on it."""

    def __init__(self, wall_clock_s: float = 100.0) -> None:
        self.log = MemoryLog()
        self.store = Store()
        self.tally = Counted()
        self.at = AT
        self.limits = RunLimits(wall_clock_s=wall_clock_s)
        self.memory = FakeMemory()

    def now(self) -> datetime:
        return self.at

    async def execution(self, *work: Callable[[Journal], Awaitable[Any]], budget_s: float = 0.0) -> Execution:
        request = RunRequest(RunMode.QA, "q", ("default",), "t1", budgets=Budgets(wall_clock_s=budget_s))
        record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)
        journal = await Journal.open(KEY, self.log, self.now)
        services = run_services(self.store, self.tally, WorkedBy(Works(*work), self.memory), self.limits, self.now)
        made = Execution(record, journal, services)
        made.task = asyncio.create_task(made.run())
        return made

    async def worked(self, *work: Callable[[Journal], Awaitable[Any]], budget_s: float = 0.0) -> list[Payload]:
        made = await self.execution(*work, budget_s=budget_s)
        assert made.task is not None
        await made.task
        return [event.payload for event in self.log.events.get(KEY, [])]


async def hangs(journal: Journal) -> None:
    await journal.write(RunStarted(RunMode.QA, "q"))
    await asyncio.Event().wait()


async def answers_and_hangs(journal: Journal) -> None:
    await journal.write(RunStarted(RunMode.QA, "q"))
    await journal.write(ANSWER)
    await asyncio.Event().wait()


async def ends(journal: Journal) -> RunStatus:
    run = await Run.begin(journal, RunStarted(RunMode.QA, "q"))
    return await run.end(RunStatus.COMPLETED)


async def writes_and_hangs(journal: Journal) -> None:
    await journal.write(RunStarted(RunMode.QA, "q"))
    await journal.write(Token("The ferry was built", 0))
    await asyncio.Event().wait()


async def writes_and_breaks(journal: Journal) -> None:
    await journal.write(RunStarted(RunMode.QA, "q"))
    await journal.write(Token("The ferry was built", 0))
    raise ValueError("a bug")


async def stopped(desk: Desk) -> None:
    made = await desk.execution(writes_and_hangs)
    while not made.journal.progress.shown:
        await asyncio.sleep(0)
    made.cancel()
    assert made.task is not None
    await made.task


@pytest.mark.parametrize(
    ("desk", "work", "status"),
    [
        (Desk(), stopped, RunStatus.CANCELLED),
        (Desk(wall_clock_s=0.5), lambda desk: desk.worked(writes_and_hangs), RunStatus.TIMEOUT),
        (Desk(), lambda desk: desk.worked(writes_and_breaks), RunStatus.FAILED),
    ],
    ids=["stopped", "out of time", "failed"],
)
async def test_turn_that_came_to_no_answer_stays_in_its_thread(
    desk: Desk, work: Callable[[Desk], Awaitable[Any]], status: RunStatus
) -> None:
    await work(desk)
    assert desk.memory.remembered == [("t1", KEY.run_id, "q", "The ferry was built")]
    assert desk.memory.endings == [status]


async def test_run_that_is_stopped_ends_also_when_its_thread_cannot_be_reached() -> None:
    desk = Desk()
    desk.memory.down = True
    await stopped(desk)
    payloads = [event.payload for event in desk.log.events[KEY]]
    assert payloads[-1] == Done(RunStatus.CANCELLED)
    assert [each.text for each in payloads if isinstance(each, Thinking)] == [
        "This turn could not be kept in its thread."
    ]


async def test_run_that_was_down_for_days_still_has_its_time() -> None:
    desk = Desk(wall_clock_s=100)
    desk.at += timedelta(days=3)
    assert (await desk.worked(ends))[-1] == Done(RunStatus.COMPLETED)


async def test_time_worked_by_others_counts() -> None:
    desk = Desk(wall_clock_s=100)
    journal = await Journal.open(KEY, desk.log, desk.now, clock=iter([0.0, *[99.99] * 10]).__next__)
    await journal.write(RunStarted(RunMode.QA, "q"))
    payloads = await desk.worked(hangs)
    assert payloads[-1] == Done(RunStatus.TIMEOUT)


async def test_time_is_what_the_client_was_told_also_when_the_settings_have_changed() -> None:
    desk = Desk(wall_clock_s=3600)
    journal = await Journal.open(KEY, desk.log, desk.now)
    await journal.write(RunStarted(RunMode.QA, "q", budgets=Budgets(wall_clock_s=0.05)))
    async with asyncio.timeout(60):
        assert (await desk.worked(hangs))[-1] == Done(RunStatus.TIMEOUT)


async def test_answer_that_is_logged_is_finished_and_no_timeout() -> None:
    desk = Desk(wall_clock_s=0.5)
    payloads = await desk.worked(answers_and_hangs, ends)
    assert payloads[-1] == Done(RunStatus.COMPLETED)
    assert not [each for each in payloads if isinstance(each, RunError)]


async def test_answer_that_is_logged_is_finished_even_when_what_follows_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_FINISHING_S", 0.05)
    payloads = await Desk(wall_clock_s=0.5).worked(answers_and_hangs, hangs)
    assert payloads[-1] == Done(RunStatus.COMPLETED)


async def test_run_tells_its_usage_before_it_ends_on_every_way_out() -> None:
    async def breaks(journal: Journal) -> None:
        await journal.write(RunStarted(RunMode.QA, "q"))
        raise ValueError("a bug")

    async def cancelled(desk: Desk) -> list[Payload]:
        made = await desk.execution(hangs)
        assert made.task is not None
        while KEY not in desk.log.events:
            await asyncio.sleep(0)
        made.cancel()
        await made.task
        return [event.payload for event in desk.log.events[KEY]]

    for payloads, status in (
        (await Desk().worked(breaks), RunStatus.FAILED),
        (await Desk(wall_clock_s=0.05).worked(hangs), RunStatus.TIMEOUT),
        (await cancelled(Desk()), RunStatus.CANCELLED),
    ):
        assert isinstance(payloads[-2], Usage)
        assert payloads[-1] == Done(status)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RunError("INTERNAL", "INTERNAL", "a bug", retryable=False), RunStatus.FAILED),
        (execution._OUT_OF_TIME, RunStatus.TIMEOUT),
    ],
)
async def test_run_whose_error_is_logged_is_ended_and_not_worked_on_again(error: RunError, status: RunStatus) -> None:
    async def died_between_error_and_end(journal: Journal) -> None:
        await journal.write(RunStarted(RunMode.QA, "q"))
        await journal.write(error)
        raise FencedOff("killed here")

    desk = Desk()
    await desk.worked(died_between_error_and_end)
    payloads = await desk.worked(ends)
    assert [type(each) for each in payloads] == [RunStarted, RunError, Usage, Done]
    assert payloads[-1] == Done(status)


async def test_run_whose_end_cannot_be_said_is_not_offered_to_the_next_at_once() -> None:
    desk = Desk()

    async def breaks(journal: Journal) -> None:
        raise ValueError("a bug")

    made = await desk.execution(breaks)
    made.journal.meters["s"] = "a bug in what the end tells"  # type: ignore[assignment]
    assert made.task is not None
    assert await made.task is Ending.BROKEN  # type: ignore[comparison-overlap]


async def test_run_that_waits_is_parked_without_an_end() -> None:
    desk = Desk()
    until = AT + timedelta(hours=1)

    async def waits(journal: Journal) -> None:
        await journal.write(RunStarted(RunMode.QA, "q"))
        raise BaseExceptionGroup("a group of tasks", [Parked("a", until)])

    made = await desk.execution(waits)
    assert made.task is not None
    assert await made.task is Ending.PARKED  # type: ignore[comparison-overlap]
    assert [type(event.payload) for event in desk.log.events[KEY]] == [RunStarted]
    assert desk.store.finished == []


async def test_wish_to_cancel_a_run_that_is_about_to_wait_is_heard() -> None:
    desk = Desk()
    desk.store.cancelled = [True]

    async def waits(journal: Journal) -> None:
        await journal.write(RunStarted(RunMode.QA, "q"))
        raise Parked("a", AT + timedelta(hours=1))

    assert (await desk.worked(waits))[-1] == Done(RunStatus.CANCELLED)


@pytest.mark.parametrize("error", [FencedOff("lost"), BaseExceptionGroup("tasks", [FencedOff("lost"), ValueError()])])
async def test_loser_leaves_the_record_alone(error: BaseException) -> None:
    async def loses(journal: Journal) -> None:
        await journal.write(RunStarted(RunMode.QA, "q"))
        raise error

    desk = Desk()
    assert len(await desk.worked(loses)) == 1
    assert desk.store.finished == []


async def test_run_that_lost_its_log_is_ended_in_it_as_soon_as_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_LOST_LOG_RETRY_S", 0.01)
    desk = Desk()

    async def loses_its_log(journal: Journal) -> RunStatus:
        run = await Run.begin(journal, RunStarted(RunMode.QA, "q"))
        desk.log.down = True
        await run.say(Thinking("answer", "only live"))
        return await run.end(RunStatus.COMPLETED)

    made = await desk.execution(loses_its_log)
    live = [type(event.payload).__name__ async for event in made.journal.follow()]
    assert live[-1] == "Done"
    assert desk.store.finished == []
    desk.log.down = False
    assert made.task is not None
    await made.task
    payloads = [event.payload for event in desk.log.events[KEY]]
    assert [type(each).__name__ for each in payloads] == ["RunStarted", "RunError", "Usage", "Done"]
    assert (payloads[1].reason, payloads[-1]) == ("LOG_LOST", Done(RunStatus.COMPLETED))  # type: ignore[union-attr]
    assert desk.store.finished == [RunStatus.COMPLETED], "no sweeper finds it unfinished"


async def test_run_that_lost_its_log_leaves_it_to_who_took_the_run_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_LOST_LOG_RETRY_S", 0.01)
    desk = Desk()

    async def loses_its_log(journal: Journal) -> RunStatus:
        run = await Run.begin(journal, RunStarted(RunMode.QA, "q"))
        desk.log.down = True
        await run.say(Thinking("answer", "only live"))
        return await run.end(RunStatus.COMPLETED)

    made = await desk.execution(loses_its_log)
    assert [event async for event in made.journal.follow()][-1].payload == Done(RunStatus.COMPLETED)
    reachable = MemoryLog()
    reachable.events = desk.log.events
    other = await Run.begin(await Journal.open(KEY, reachable, desk.now), RunStarted(RunMode.QA, "q"))
    desk.log.down = False
    assert made.task is not None
    assert await made.task is Ending.LOST  # type: ignore[comparison-overlap]
    assert (desk.store.finished, desk.tally.costs) == ([], {})
    await other.end(RunStatus.COMPLETED)  # nobody has fenced it off
    assert "LOG_LOST" not in [getattr(event.payload, "reason", "") for event in desk.log.events[KEY]]


async def test_process_that_stops_leaves_word_of_what_its_model_has_cost() -> None:
    asked = asyncio.Event()

    async def asks_a_model(journal: Journal) -> None:
        await journal.write(RunStarted(RunMode.QA, "q"))
        with journal.step("draft") as meter:
            await journal.write(Thinking("answer", "Let me see."))
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                meter.add(StepUsage("", 0.0, 100, 10, 0.5, "m"))

    desk = Desk()
    made = await desk.execution(asks_a_model)
    await asked.wait()
    assert made.task is not None
    made.task.cancel()
    await asyncio.gather(made.task, return_exceptions=True)
    assert made.task.cancelled(), "it is handed over"
    resumed = await Journal.open(KEY, desk.log, desk.now)
    assert resumed.progress.done is None
    assert (resumed.spent()["draft"].tokens, resumed.spent()["draft"].cost_usd) == (110, 0.5)
    written = len(desk.log.events[KEY])
    await resumed.note_spent()
    assert len(desk.log.events[KEY]) == written, "all of it is known"
