"""Tokens and dollars are counted whatever becomes of a completion."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

import pytest

from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    ModelInfo,
    ModelUnavailable,
    Operation,
    Request,
    Spent,
    TextDelta,
    TokenUsage,
)
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.log.events import (
    Answer,
    Budgets,
    Plan,
    RunMode,
    RunStarted,
    RunStatus,
    StepState,
    StepUsage,
    Thinking,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest
from services.orchestrator.modes.documents import Limits
from services.orchestrator.steps.run import Run, end
from services.orchestrator.steps.usage import Metered
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import FakeModel, FakeScorer, MemoryLog
from tests.unit.orchestrator.serving import document_modes, mode_services

REQUEST = Request([ChatMessage("user", "x" * 400)], 100)


class Scripted:
    """Says the deltas, then hangs or raises."""

    def __init__(self, deltas: Sequence[Delta], error: Exception | None = None) -> None:
        self.deltas = deltas
        self.error = error
        self.said = asyncio.Event()

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        try:
            for delta in self.deltas:
                yield delta
            if self.error:
                raise self.error
            if not isinstance(self.deltas[-1], Finish):
                self.said.set()
                await asyncio.Event().wait()
        finally:
            assert request.meter is not None
            request.meter.add(Spent("home", "small", TokenUsage(7, 5)))

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("home", "small", 4096)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [len(text) for text in texts]


def price(spent: Spent) -> float:
    return spent.usage.completion_tokens / 10


async def asked(model: Scripted, journal: Journal) -> None:
    """A step that asks the model."""
    metered = Metered(model, price)

    async def work() -> Plan:
        async with aclosing(metered.complete(REQUEST)) as deltas:
            async for _ in deltas:
                pass
        return Plan("hybrid", ())

    run = await Run.begin(journal, RunStarted(RunMode.QA, "?"))
    await run.once("plan", work, Plan)


async def test_whole_completion_is_entered_as_the_endpoint_counted_it() -> None:
    journal = await Journal.open(KEY, MemoryLog(), now)
    finish = Finish(FinishReason.STOP, TokenUsage(7, 5), "home", "small")
    await asked(Scripted([TextDelta("ab"), finish]), journal)
    (usage,) = journal.spent().values()
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost_usd, usage.model) == (7, 5, 0.5, "small")


async def test_completion_that_breaks_off_is_entered() -> None:
    journal = await Journal.open(KEY, MemoryLog(), now)
    with pytest.raises(ModelUnavailable):
        await asked(Scripted([TextDelta("half")], ModelUnavailable("broke off")), journal)
    (usage,) = journal.spent().values()
    assert (usage.prompt_tokens, usage.completion_tokens, usage.model) == (7, 5, "small")


async def test_completion_that_is_cancelled_is_in_the_usage_of_the_run() -> None:
    log = MemoryLog()
    journal = await Journal.open(KEY, log, now)
    model = Scripted([TextDelta("half")])
    task = asyncio.create_task(asked(model, journal))
    await model.said.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await end(journal, RunStatus.CANCELLED)
    usage = log.events[KEY][-2].payload
    assert isinstance(usage, Usage)
    assert (usage.completion_tokens, usage.cost_usd) == (5, 0.5)


async def test_tokens_of_a_worker_that_is_killed_while_its_model_speaks_are_in_the_usage_of_the_run() -> None:
    log = MemoryLog()
    killed = await Journal.open(KEY, log, now)
    model = Scripted([TextDelta("half an answer")])

    async def work() -> Plan:
        async with aclosing(Metered(model, price).complete(REQUEST)) as deltas:
            async for _ in deltas:
                await killed.record("plan", Thinking("answer", "a piece"), StepState())
        raise AssertionError("it hangs")

    run = await Run.begin(killed, RunStarted(RunMode.QA, "?"))
    speaking = asyncio.create_task(run.once("plan", work, Plan))
    await model.said.wait()
    before = (await Journal.open(KEY, log, now)).spent()["plan"]
    assert before.prompt_tokens >= 100
    assert 0 < before.completion_tokens <= 10
    assert before.model == "small"
    speaking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await speaking
    after = killed.spent()["plan"]
    assert (after.prompt_tokens, after.completion_tokens) == (7, 5), "what it was in fact takes the estimate's place"


async def test_run_whose_tokens_are_spent_quotes_the_documents_and_says_so() -> None:
    """A worker that is killed in the middle of an answer has spent its tokens; the next one must not spend them again."""
    log, model = MemoryLog(), FakeModel(["The tower was built in 1889. [1]"])
    generator = Generator(model)
    limits = Limits(budgets=Budgets(wall_clock_s=120, answer_tokens=600, tokens=100))
    modes = document_modes(mode_services(Drafter(FakeScorer(), generator)), limits)
    record = RunRecord(
        KEY, "ann", RunRequest(RunMode.QA, "When was the tower built?", ("default",)), RunStatus.RUNNING, AT
    )
    journal = await Journal.open(KEY, log, now)
    journal.progress.spent["draft"] = StepUsage("draft", 1.0, 90, 10)
    await journal.record("draft", Thinking("answer", "half way"), StepState())
    await modes.run(record, journal)
    payloads = [event.payload for event in log.events[KEY]]
    (answer,) = [each for each in payloads if isinstance(each, Answer)]
    assert answer.method == "extractive"
    assert "BUDGET_SPENT" in [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded]
    assert model.prompts == []


async def test_answer_gets_no_more_tokens_than_the_run_has_left() -> None:
    class Watched(Drafter):
        asked_for = 0

        async def write(self, question, journal):  # type: ignore[no-untyped-def]
            self.asked_for = question.answer_tokens
            return await super().write(question, journal)

    for tokens, expected in ((50, 50), (0, 600)):
        drafter = Watched(FakeScorer(), None)
        limits = Limits(budgets=Budgets(answer_tokens=600, tokens=tokens))
        modes = document_modes(mode_services(drafter), limits)
        request = RunRequest(RunMode.QA, "When was the tower built?", ("default",))
        journal = await Journal.open(KEY, MemoryLog(), now)
        await partial(modes.run, RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT))(journal)
        assert drafter.asked_for == expected
