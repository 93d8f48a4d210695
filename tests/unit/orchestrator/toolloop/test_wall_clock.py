"""The loop leaves time for an answer. The run's clock is the tests': calls and completions take as long as they say."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kit import deadline
from kit.llm import Delta, Request
from services.orchestrator.log.events import Budgets, ToolCall
from services.orchestrator.log.journal import Journal
from services.orchestrator.steps.effects import ToolOutcome
from services.orchestrator.toolloop.loop import LoopEnd, LoopLimits, LoopResult
from tests.unit.orchestrator.cutting import KEY, Cut, DyingLog, now, worked
from tests.unit.orchestrator.fakes import EVIDENCE, FakeTools
from tests.unit.orchestrator.toolloop.scripting import SEARCH, Scene, ScriptedReplies, call, calls, found

TWO = calls(call("search", '{"query": "a"}'), call("search", '{"query": "b"}', 1))
BUDGETS = Budgets(wall_clock_s=120.0, parallel_calls=1)
LIMITS = LoopLimits(reserve_s=20.0)


@dataclass
class Clock:
    at_s: float = 0.0

    def __call__(self) -> float:
        return self.at_s


@dataclass
class SlowTools(FakeTools):
    """Tools whose calls take `seconds` of the run."""

    clock: Clock = field(default_factory=Clock)
    seconds: float = 0.0
    allowed_s: list[float | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__([SEARCH])

    async def outcome(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        self.made.append((name, arguments))
        self.allowed_s.append(deadline.remaining_s())
        self.clock.at_s += self.seconds
        return found(*EVIDENCE)


async def run(scene: Scene, clock: Clock) -> LoopResult:
    await scene.work(await Journal.open(KEY, scene.log, now, clock=clock))
    assert scene.result is not None
    return scene.result


async def test_nothing_is_begun_in_the_time_that_is_kept_for_the_answer() -> None:
    clock = Clock()
    tools = SlowTools(clock=clock, seconds=101.0)
    model = ScriptedReplies([TWO, "never asked"], forced=("It was built in 1889 [1].",))
    result = await run(Scene(model, tools, BUDGETS, LIMITS), clock)
    assert tools.made == [("search", {"query": "a"})]
    assert "OUT_OF_TIME" in model.requests[-1].messages[-1].content
    assert (result.text, result.end, result.reason) == ("It was built in 1889 [1].", LoopEnd.FORCED, "wall_clock")


async def test_calls_get_no_more_time_than_is_left_for_them() -> None:
    clock = Clock()
    tools = SlowTools(clock=clock, seconds=40.0)
    await run(Scene(ScriptedReplies([TWO, "Done."]), tools, BUDGETS, LIMITS), clock)
    first, second = tools.allowed_s
    assert first is not None
    assert second is not None
    assert first <= 100.0
    assert second <= 60.0


async def test_a_run_with_little_time_may_still_call_something() -> None:
    clock = Clock()
    tools = SlowTools(clock=clock)
    scene = Scene(ScriptedReplies([TWO, "Done."]), tools, Budgets(wall_clock_s=30.0), LoopLimits(reserve_s=60.0))
    assert (await run(scene, clock)).end is LoopEnd.ANSWERED
    assert len(tools.made) == 2


class Hanging(ScriptedReplies):
    """Never says a word once it has called."""

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        if len(self.requests) == 1:
            self.requests.append(request)
            await asyncio.Event().wait()
        async for delta in super().complete(request):
            yield delta


async def test_model_that_hangs_is_given_up_in_time_for_another_attempt() -> None:
    clock = Clock()
    tools = SlowTools(clock=clock, seconds=49.95)
    model = Hanging([TWO], forced=("It was built in 1889 [1].",))
    result = await run(Scene(model, tools, BUDGETS, LIMITS), clock)
    assert (result.text, result.end, result.reason) == ("It was built in 1889 [1].", LoopEnd.FORCED, "LLM_TIMEOUT")
    assert len(model.requests) == 3


async def test_out_of_time_altogether_there_is_still_an_answer() -> None:
    clock = Clock()
    tools = SlowTools(clock=clock, seconds=130.0)
    model = ScriptedReplies([TWO])
    scene = Scene(model, tools, BUDGETS, LIMITS)
    result = await run(scene, clock)
    assert result.end is LoopEnd.FALLBACK
    assert "The tower was built in 1889" in result.text
    assert result.text == scene.shown
    assert len(model.requests) == 1


async def test_call_that_has_begun_is_asked_for_even_in_the_time_that_is_kept_for_the_answer() -> None:
    clock, log = Clock(), DyingLog()
    tools = SlowTools(clock=clock)
    scene = Scene(ScriptedReplies([TWO], forced=("It was built in 1889 [1].",)), tools, BUDGETS, LIMITS, log=log)
    whole = await worked(DyingLog(), scene.work)
    begun = next(event.seq for event in whole if isinstance(event.payload, ToolCall))
    tools.made.clear()
    await worked(log, scene.work, Cut(begun, stored=True))
    assert tools.made == []

    journal = await Journal.open(KEY, log, now, clock=clock)
    clock.at_s += 101.0
    await scene.work(journal)

    assert tools.made == [("search", {"query": "a"})], "and no other is begun"
    allowed_s = tools.allowed_s[-1]
    assert allowed_s is not None
    assert allowed_s > 0.0
    assert scene.result is not None
    assert len(scene.result.evidence) == 2
