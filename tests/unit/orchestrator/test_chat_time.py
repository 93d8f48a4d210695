"""The clock of a chat: what it does while little time is left, and when there is none."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.llm import Delta, ModelUnavailable, Request
from services.orchestrator.log.events import (
    Budgets,
    Done,
    Payload,
    RunError,
    RunMode,
    RunStarted,
    RunStatus,
    Thinking,
    ToolResult,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunLimits
from services.orchestrator.modes.tool_answers import ChatLimits
from services.orchestrator.runs.execution import Execution
from services.orchestrator.steps.effects import ToolOutcome
from tests.unit.orchestrator.chatting import (
    QUESTION,
    TOOLS,
    Chatting,
    RepeatedReplies,
    answer_of,
    answered,
    reasons,
    status_of,
)
from tests.unit.orchestrator.cutting import KEY, now
from tests.unit.orchestrator.fakes import FakeTools
from tests.unit.orchestrator.test_execution import Counted, Store, run_services
from tests.unit.orchestrator.toolloop.scripting import Reply, call, calls

FIND = calls(call("search", '{"queries": ["tower"]}'))
SUM = calls(call("math_eval", '{"expression": "6*7"}'))
GOOD = "The tower was built in 1889 by Gustave Eiffel. [1]"


class HangingTools(FakeTools):
    """Tools of which math_eval never comes to an end."""

    def __init__(self) -> None:
        super().__init__(TOOLS, answered)
        self.hanging = asyncio.Event()

    async def outcome(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        if name == "math_eval":
            self.hanging.set()
            await asyncio.Event().wait()
        return await super().outcome(call_id, name, arguments)


@asynccontextmanager
async def executed(chat: Chatting) -> AsyncIterator[Execution]:
    """The run, at work until the block ends, and then to its end."""
    journal = await Journal.open(KEY, chat.log, now)
    made = Execution(chat.record, journal, run_services(Store(), Counted(), chat.modes, RunLimits(), now))
    made.task = asyncio.create_task(made.run())  # type: ignore[assignment]
    yield made
    async with asyncio.timeout(60):
        await made.task  # type: ignore[misc]


async def test_time_that_runs_out_in_a_call_ends_in_an_answer_from_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks: list[asyncio.Timeout] = []
    real = asyncio.timeout

    def noted(delay: float | None) -> asyncio.Timeout:
        clocks.append(real(delay))
        return clocks[-1]

    tools = HangingTools()
    chat = Chatting(RepeatedReplies([FIND, SUM, "Never said."]), tools, thread_id="t1")
    chat.memory.down = True  # which is said, once
    monkeypatch.setattr(asyncio, "timeout", noted)
    async with executed(chat):
        await tools.hanging.wait()
        monkeypatch.setattr(asyncio, "timeout", real)
        clocks[0].reschedule(asyncio.get_running_loop().time())
    payloads = chat.payloads
    answer = answer_of(payloads)
    assert (answer.text, answer.method) == (GOOD, "extractive")
    assert [citation.document_name for citation in answer.citations] == ["tower.txt"]
    (said,) = [each for each in payloads if isinstance(each, Thinking) and each.phase == "timeout"]
    assert said.degraded is not None
    assert said.degraded.reason == "RUN_TIMEOUT"
    assert not [each for each in payloads if isinstance(each, RunError)], "there is an answer"
    assert [each.error_reason for each in payloads if isinstance(each, ToolResult)] == ["", "CANCELLED"]
    assert [type(each) for each in payloads if not isinstance(each, Thinking)][-2:] == [Usage, Done]
    assert status_of(payloads) is RunStatus.TIMEOUT
    assert len(chat.model.requests) == 2, "no model is asked any more"
    assert len(payloads) == len({repr(each) for each in payloads}), "nothing is said twice"


async def test_chat_whose_worker_died_out_of_time_is_still_answered() -> None:
    """Nothing is left of its own time; for the answer there is a moment."""
    spent = iter([0.0, *[1000.0] * 10])
    chat = Chatting(RepeatedReplies([FIND, "Never said."]))
    journal = await Journal.open(KEY, chat.log, now, clock=lambda: next(spent))
    await journal.write(RunStarted(RunMode.CHAT, QUESTION, budgets=chat.limits.budgets))
    async with executed(chat):
        pass
    assert answer_of(chat.payloads).text.startswith("I could not answer this. The time of this run is nearly over.")
    assert status_of(chat.payloads) is RunStatus.TIMEOUT


async def test_chat_that_is_cancelled_in_the_middle_of_a_call_ends_at_once() -> None:
    tools = HangingTools()
    chat = Chatting(RepeatedReplies([SUM, "Never said."]), tools)
    async with executed(chat) as made:
        await tools.hanging.wait()
        made.cancel()
    assert [type(each) for each in chat.payloads[-3:]] == [ToolResult, Usage, Done]
    assert status_of(chat.payloads) is RunStatus.CANCELLED


class Clock:
    """Seconds of work. It stands still, unless it is moved."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


async def late(last: Reply) -> list[Payload]:
    """A chat of 100 seconds whose search has taken 90."""
    clock = Clock()

    def slowly(name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        clock.at_s = 90.0
        return answered(name, arguments)

    limits = ChatLimits(budgets=Budgets(wall_clock_s=100.0, answer_tokens=600))
    chat = Chatting(RepeatedReplies([FIND, last]), FakeTools(TOOLS, slowly), limits=limits)
    await chat.work(await Journal.open(KEY, chat.log, now, clock=clock))
    return chat.payloads


async def test_short_chat_finds_time_to_act_as_well() -> None:
    chat = Chatting(RepeatedReplies([FIND, GOOD]), budgets=Budgets(wall_clock_s=4.0))
    await chat.work(await Journal.open(KEY, chat.log, now, clock=Clock()))
    assert [name for name, _ in chat.tools.made] == ["search"]


async def test_little_time_is_left_for_an_answer_without_tools_and_that_is_said() -> None:
    payloads = await late(GOOD)
    assert (answer_of(payloads).text, answer_of(payloads).method) == (GOOD, "model")
    assert "BUDGET_WALL_CLOCK" in reasons(payloads)
    assert status_of(payloads) is RunStatus.COMPLETED


async def test_little_time_and_no_model_is_a_timeout_with_what_was_found() -> None:
    payloads = await late(ModelUnavailable("down"))
    assert (answer_of(payloads).text, answer_of(payloads).method) == (GOOD, "extractive")
    assert "RUN_TIMEOUT" in reasons(payloads)
    assert status_of(payloads) is RunStatus.TIMEOUT


@pytest.mark.parametrize(("took_s", "status"), [(64.0, RunStatus.TIMEOUT), (30.0, RunStatus.COMPLETED)])
async def test_model_that_takes_the_runs_time_before_its_first_word_leaves_a_timeout_and_what_is_found(
    took_s: float, status: RunStatus
) -> None:
    clock = Clock()

    class Slow(RepeatedReplies):
        async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
            if not self.requests:
                clock.at_s = took_s
            async for delta in super().complete(request):
                yield delta

    limits = ChatLimits(budgets=Budgets(wall_clock_s=100.0, answer_tokens=600))
    silent = ModelUnavailable("it fell silent", reason="LLM_TIMEOUT")
    chat = Chatting(Slow([silent, silent, silent]), limits=limits)
    await chat.work(await Journal.open(KEY, chat.log, now, clock=clock))
    assert (answer_of(chat.payloads).text, status_of(chat.payloads)) == (GOOD, status)
