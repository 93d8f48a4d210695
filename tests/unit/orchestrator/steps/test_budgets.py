"""What a run may spend: sums are folded from the log, and spending more than a budget is said by its name."""

import asyncio
from functools import partial

import pytest

from kit.errors import ResourceExhausted
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import (
    Budgets,
    Done,
    EffectClass,
    Plan,
    RunMode,
    RunStarted,
    RunStatus,
    StepUsage,
    Thinking,
    Usage,
)
from services.orchestrator.log.journal import Journal, current_step
from services.orchestrator.steps.budgets import in_force
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.steps.run import Run, check_not_breaking, end, resolved
from tests.unit.orchestrator.cutting import KEY, now
from tests.unit.orchestrator.fakes import MemoryLog
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def begun(log: MemoryLog, clock: Clock, **budgets: float) -> Run:
    """A worker that begins the run, or goes on with it."""
    journal = await Journal.open(KEY, log, now, clock=clock)
    return await Run.begin(journal, RunStarted(RunMode.CHAT, "?", budgets=Budgets(**budgets)))  # type: ignore[arg-type]


async def step(
    run: Run, key: str, clock: Clock, *, seconds: float = 0.0, tokens: int = 0, cost_usd: float = 0.0
) -> None:
    async def work() -> Plan:
        clock.now_s += seconds
        meter = current_step()
        assert meter is not None
        meter.add(StepUsage("", 0.0, tokens, 0, cost_usd, "m"))
        return Plan("hybrid", (key,))

    await run.once(key, work, Plan)


async def test_resumed_run_has_spent_what_it_had_spent() -> None:
    log, clock = MemoryLog(), Clock()
    run = await begun(log, clock, wall_clock_s=10)
    await step(run, "a", clock, seconds=2, tokens=10, cost_usd=0.5)
    clock.now_s += 3
    await run.say(Thinking("route", "the last word of this worker"))
    clock.now_s += 1000  # nobody works
    other = await begun(log, clock, wall_clock_s=10)
    assert (other.budgets.tokens, other.budgets.cost_usd, other.budgets.remaining_s) == (10, 0.5, 5.0)
    await step(other, "a", clock, seconds=2, tokens=10)
    assert (other.budgets.tokens, other.budgets.remaining_s) == (10, 5.0), "a recorded step costs nothing"
    await step(other, "b", clock, seconds=1, tokens=7)
    assert (other.budgets.tokens, other.budgets.remaining_s) == (17, 4.0)


async def test_step_that_was_broken_off_is_paid_for_up_to_its_last_event_and_again() -> None:
    log, clock = MemoryLog(), Clock()
    run = await begun(log, clock)

    async def torn(key: str) -> Plan:
        meter = current_step()
        assert meter is not None
        meter.add(StepUsage("", 0.0, 5, 1, 0.0, "m"))
        await run.say(Thinking("answer", "half way"))
        meter.add(StepUsage("", 0.0, 100, 0, 0.0, "m"))  # not known to the log
        raise ValueError(key)

    with pytest.raises(ValueError, match="a"):
        await run.once("a", partial(torn, "a"), Plan)
    assert run.budgets.tokens == 106
    other = await begun(log, clock)
    assert other.budgets.tokens == 6
    await step(other, "a", clock, tokens=10)
    assert other.budgets.tokens == 16


async def model_step(run: Run, clock: Clock) -> None:
    run.budgets.require_model()
    await step(run, "b", clock)


@pytest.mark.parametrize("budget", ["steps", "wall_clock", "tokens", "cost_usd"])
async def test_budget_that_is_spent_is_named(budget: str) -> None:
    log, clock = MemoryLog(), Clock()
    limit = {"steps": 1, "wall_clock_s": 2, "tokens": 10, "cost_usd": 0.5}
    run = await begun(log, clock, **{name: value for name, value in limit.items() if name.startswith(budget)})
    await step(run, "a", clock, seconds=2, tokens=10, cost_usd=0.5)
    with pytest.raises(BudgetSpent) as caught:
        await model_step(run, clock)
    assert caught.value.metadata["budget"] == budget
    assert not isinstance(caught.value, ResourceExhausted), "a fallback for an overloaded service would catch it"
    other = await begun(log, clock, **{name: value for name, value in limit.items() if name.startswith(budget)})
    with pytest.raises(BudgetSpent):
        await model_step(other, clock)


async def test_calls_over_their_budget_are_refused_and_those_that_were_made_are_known() -> None:
    log, clock, bank = MemoryLog(), Clock(), Bank()
    run = await begun(log, clock, tool_calls=2)
    for key in ("a", "b"):
        await run.effect(key, Transfer(bank, EffectClass.ONCE))
    other = await begun(log, clock, tool_calls=2)
    await other.effect("a", Transfer(bank, EffectClass.ONCE))
    with pytest.raises(BudgetSpent, match="tool_calls"):
        await other.effect("c", Transfer(bank, EffectClass.ONCE))
    assert len(bank.made) == 2


async def test_last_resort_is_taken_when_steps_and_time_are_spent() -> None:
    log, clock = MemoryLog(), Clock()
    run = await begun(log, clock, steps=1, wall_clock_s=2)
    await step(run, "a", clock, seconds=2)
    with pytest.raises(BudgetSpent):
        await run.once("b", partial(resolved, Thinking("b", "no")), Thinking)
    said = await run.once("c", partial(resolved, Thinking("c", "yes")), Thinking, is_last_resort=True)
    assert said.text == "yes"


async def test_what_is_left_is_known_to_who_continues_the_run() -> None:
    log, clock, bank = MemoryLog(), Clock(), Bank()
    run = await begun(log, clock, tool_calls=3, steps=5)
    assert (run.budgets.steps_left, run.budgets.calls_left) == (5, 3)
    await run.effect("a", Transfer(bank, EffectClass.ONCE))
    other = await begun(log, clock, tool_calls=3, steps=5)
    assert (other.budgets.steps_left, other.budgets.calls_left) == (4, 2)
    assert [(other.budgets.has_begun(key), other.is_recorded(key)) for key in ("a", "b")] == [(True,) * 2, (False,) * 2]
    unlimited = await begun(MemoryLog(), clock)
    assert (unlimited.budgets.steps_left, unlimited.budgets.calls_left) == (None, None)


async def test_calls_beyond_those_that_may_be_parallel_wait() -> None:
    run = await begun(MemoryLog(), Clock(), parallel_calls=2)
    under_way, most, gate = 0, 0, asyncio.Event()

    class Slow(Transfer):
        async def run(self, call_id: str) -> ToolOutcome:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            if under_way == 2:
                gate.set()
            await gate.wait()
            under_way -= 1
            return ToolOutcome(True)

    outcomes = await run.all(*(run.effect(f"call{n}", Slow(Bank(), EffectClass.NONE)) for n in range(5)))
    assert [each.ok for each in outcomes] == [True] * 5
    assert most == 2


async def test_usage_is_told_by_step_and_in_total_on_every_way_out() -> None:
    for status in (RunStatus.COMPLETED, RunStatus.CANCELLED, RunStatus.TIMEOUT, RunStatus.FAILED):
        log, clock = MemoryLog(), Clock()
        run = await begun(log, clock)
        await step(run, "a", clock, seconds=2, tokens=10, cost_usd=0.5)
        clock.now_s += 1
        await end(run.journal, status)
        *_, usage, done = [event.payload for event in log.events[KEY]]
        assert isinstance(usage, Usage)
        assert (usage.prompt_tokens, usage.cost_usd, usage.worked_seconds) == (10, 0.5, 3.0)
        assert [(each.step, each.seconds, each.tokens, each.model) for each in usage.steps] == [("a", 2.0, 10, "m")]
        assert done == Done(status)


async def test_run_keeps_the_budgets_that_it_began_with_as_far_as_they_may_still_be_given() -> None:
    log, clock = MemoryLog(), Clock()
    await begun(log, clock, tokens=100, steps=5)
    other = await begun(log, clock, tokens=50, steps=10, cost_usd=1.5)
    assert other.budgets.budgets == Budgets(tokens=50, steps=5, cost_usd=1.5)


async def test_run_that_breaks_its_workers_is_given_up() -> None:
    log, clock = MemoryLog(), Clock()
    run = await begun(log, clock)
    for _ in range(29):
        await begun(log, clock)
    assert check_not_breaking(await Journal.open(KEY, log, now)) is None
    await begun(log, clock)
    broken = check_not_breaking(await Journal.open(KEY, log, now))
    assert broken is not None
    assert broken.reason == "RUN_KEEPS_BREAKING"
    other = await begun(log, clock)
    await other.once("a", partial(resolved, Plan("hybrid", ("x",))), Plan)
    assert check_not_breaking(other.journal) is None, "something came of it"
    assert run is not other


def test_request_gets_what_it_asks_for_up_to_the_limit() -> None:
    limits = Budgets(wall_clock_s=100, answer_tokens=600, steps=10, tokens=1000)
    assert in_force(Budgets(), limits) == limits
    asked = Budgets(wall_clock_s=5, answer_tokens=900, steps=99, tokens=10, cost_usd=1.5)
    assert in_force(asked, limits) == Budgets(wall_clock_s=5, answer_tokens=900, steps=10, tokens=10, cost_usd=1.5)


@pytest.mark.parametrize("key", ["", "A", "a b", "a//b", "/a", "a/"])
async def test_key_that_is_none_is_refused(key: str) -> None:
    run = await begun(MemoryLog(), Clock())
    with pytest.raises(ValueError, match="step key"):
        await run.once(key, partial(resolved, Plan("hybrid", ())), Plan)


async def test_key_that_is_used_twice_is_refused() -> None:
    run = await begun(MemoryLog(), Clock())
    await run.once("a", partial(resolved, Plan("hybrid", ())), Plan)
    with pytest.raises(ValueError, match="used twice"):
        await run.once("a", partial(resolved, Plan("hybrid", ())), Plan)
