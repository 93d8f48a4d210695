"""What a run cost, told on every way out of it; and the model port that counts."""

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing

from kit.llm import (
    Delta,
    Finish,
    FinishReason,
    LanguageModel,
    ModelInfo,
    Operation,
    ReasoningDelta,
    Request,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from services.orchestrator.log.events import StepUsage, Usage
from services.orchestrator.log.journal import Journal, current_step

Price = Callable[[Finish], float]
"""Dollars that a completion cost."""
_BYTES_PER_TOKEN = 4


def free(_: Finish) -> float:
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


def _bytes_of(delta: Delta) -> int:
    match delta:
        case TextDelta(text) | ReasoningDelta(text):
            return len(text.encode("utf-8", "surrogatepass"))
        case ToolCallDelta(arguments=arguments):
            return len(arguments.encode("utf-8", "surrogatepass"))
        case _:
            return 0


class Metered:
    """A language model whose use is entered into the books of the step that asks it: whole, broken off, or failed."""

    def __init__(self, model: LanguageModel, price: Price = free) -> None:
        self._model = model
        self._price = price

    async def complete(self, request: Request) -> AsyncIterator[Delta]:
        written_bytes = 0
        counted = False
        try:
            async with aclosing(self._model.complete(request)) as deltas:  # type: ignore[type-var] # a generator in fact
                async for delta in deltas:
                    if isinstance(delta, Finish):
                        self._enter(delta)
                        counted = True
                    else:
                        written_bytes += _bytes_of(delta)
                    yield delta
        finally:
            # Without its last word the endpoint has not said what it counted, and what it wrote is charged all the same.
            if not counted and written_bytes:
                self._enter(self._estimated(request, written_bytes))

    def info(self, operation: Operation) -> ModelInfo:
        return self._model.info(operation)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return await self._model.count_tokens(texts, operation)

    def _enter(self, finish: Finish) -> None:
        meter = current_step()
        if meter is not None:
            tokens = finish.usage
            meter.add(tokens.prompt_tokens, tokens.completion_tokens, self._price(finish), finish.model)

    def _estimated(self, request: Request, written_bytes: int) -> Finish:
        read_bytes = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in request.messages)
        tokens = TokenUsage(math.ceil(read_bytes / _BYTES_PER_TOKEN), math.ceil(written_bytes / _BYTES_PER_TOKEN))
        info = self._model.info(request.operation)
        return Finish(FinishReason.INCOMPLETE, tokens, info.provider, info.model)
