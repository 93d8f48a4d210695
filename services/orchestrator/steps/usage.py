"""What a run cost, recorded on every way out of it; and the model port that counts."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from kit.llm import (
    Delta,
    LanguageModel,
    Meter,
    ModelInfo,
    Operation,
    ReasoningDelta,
    Request,
    Spent,
    TextDelta,
    TokenUsage,
    estimate_tokens,
)
from services.orchestrator.log.events import StepUsage, Usage
from services.orchestrator.log.journal import Journal, current_step
from services.orchestrator.log.meter import Meter as StepMeter
from services.orchestrator.metrics import MODEL_COST, MODEL_TOKENS, model_label

Price = Callable[[Spent], float]
"""Dollars that an attempt at a completion cost."""


def free(_: Spent) -> float:
    """The price where nobody is charged."""
    return 0.0


def usage_of(journal: Journal) -> Usage:
    """What the run has cost up to now."""
    steps = list(journal.spent().values())
    progress = journal.progress
    began_at = progress.began_at or journal.now()
    return Usage(
        prompt_tokens=sum(step.prompt_tokens for step in steps),
        completion_tokens=sum(step.completion_tokens for step in steps),
        seconds=round((journal.now() - began_at).total_seconds(), 4),
        cost_usd=sum(step.cost_usd for step in steps),
        step_seconds={step.step: step.seconds for step in steps},
        model=_model_of_the_answer(journal, steps),
        steps=tuple(steps),
        worked_seconds=round(journal.worked_s, 4),
        tool_calls=len(progress.intents),
    )


def _model_of_the_answer(journal: Journal, steps: Sequence[StepUsage]) -> str:
    answer = journal.progress.answer
    if answer is None or answer.method != "model":
        return ""
    return next((step.model for step in reversed(steps) if step.model), "")


class Metered:
    """A language model whose use is entered into the books of the step that asks it: whole, broken off, failed, and while it goes
    on by estimate."""

    def __init__(self, model: LanguageModel, price: Price = free) -> None:
        self._model = model
        self._price = price

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        meter, step, use = Meter(), current_step(), object()
        read = sum(estimate_tokens(message.content) for message in request.messages)
        written = 0
        try:
            async with aclosing(self._model.complete(replace(request, meter=meter))) as deltas:
                async for delta in deltas:
                    if step is not None and isinstance(delta, TextDelta | ReasoningDelta):
                        written += estimate_tokens(delta.text)
                        step.reckon(use, self._usage(step, self._estimated(request, TokenUsage(read, written))))
                    yield delta
        finally:
            if step is not None:
                step.settle(use)
            for spent in meter.spent:
                self._measure(request.operation, spent)
                if step is not None:
                    step.add(self._usage(step, spent))
                if request.meter is not None:
                    request.meter.add(spent)

    def info(self, operation: Operation) -> ModelInfo:
        return self._model.info(operation)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return await self._model.count_tokens(texts, operation)

    def _measure(self, operation: Operation, spent: Spent) -> None:
        labels = (spent.provider, model_label(spent.provider, spent.model), operation.value)
        MODEL_TOKENS.labels(*labels, "prompt").inc(spent.usage.prompt_tokens)
        MODEL_TOKENS.labels(*labels, "completion").inc(spent.usage.completion_tokens)
        MODEL_COST.labels(*labels).inc(self._price(spent))

    def _estimated(self, request: Request, tokens: TokenUsage) -> Spent:
        info = self._model.info(request.operation)
        return Spent(info.provider, info.model, tokens)

    def _usage(self, step: StepMeter, spent: Spent) -> StepUsage:
        tokens = spent.usage
        return StepUsage(
            step.step,
            prompt_tokens=tokens.prompt_tokens,
            completion_tokens=tokens.completion_tokens,
            cost_usd=self._price(spent),
            model=spent.model,
        )
