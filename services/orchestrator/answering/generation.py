"""The answer written by a language model, from the evidence and nothing else."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass

from kit.llm import (
    ChatMessage,
    Finish,
    FinishReason,
    LanguageModel,
    Meter,
    Operation,
    PromptTooLong,
    ReasoningDelta,
    Request,
    Restart,
    Retraction,
    TextDelta,
)
from services.orchestrator.answering.citations import cited_sentences
from services.orchestrator.answering.coalescing import coalesced
from services.orchestrator.answering.marks import MarkFilter
from services.orchestrator.answering.refusals import REFUSAL
from services.orchestrator.log.events import Evidence
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import Turn
from services.orchestrator.prompts import rules
from services.orchestrator.prompts.messages import compose

LONGEST_ANSWER_CHARS = 60_000
"""An answer is one event, and so are the verdicts on its sentences: each must fit a message of 1 MB, in any script."""


async def _not_heeded(_: object) -> None:
    pass


@dataclass(frozen=True)
class Listener:
    """Receives what goes on besides the answer."""

    thought: Callable[[str], Awaitable[None]] = _not_heeded
    """A piece of what the model thinks."""

    restarted: Callable[[Restart], Awaitable[None]] = _not_heeded
    """A model failed and another begins."""


@dataclass(frozen=True)
class Generated:
    """What the model wrote: marks normalised, invented ones removed and counted."""

    text: str
    invented_citations: int
    reason: FinishReason
    """Why it ended. Unless that `is_whole`, the last sentence may be half."""

    @property
    def is_refusal(self) -> bool:
        return self.text.strip().rstrip(".").lower() == REFUSAL.rstrip(".").lower()


class Generator:
    """Streams a model's answer to the screen."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Within `held()` the model stays the same one, whatever is switched meanwhile."""
        self.model = model
        self.held = held
        self._clock = clock

    async def write(
        self,
        question: str,
        history: Sequence[Turn],
        evidence: Sequence[Evidence],
        screen: Screen,
        *,
        max_tokens: int,
        meter: Meter | None = None,
        listener: Listener = Listener(),
        prompt: str = "",
    ) -> Generated:
        """What it costs is noted in `meter`, however this ends. Raises QuestionTooLong; ModelUnavailable or ModelRejected when
        the model fails, possibly after some of the answer was shown."""

        async def write() -> Generated:
            composed = await compose(
                question,
                history,
                evidence,
                self.model,
                answer_tokens=max_tokens,
                system=rules.with_prompt(rules.ANSWER, prompt),
            )
            request = Request(composed.messages, composed.max_tokens, meter=meter)
            return await self._written(request, Writing({source.number for source in evidence}, screen), listener)

        with self.held():  # who is asked is who the prompt was made for
            context_tokens = self._context_tokens
            try:
                return await write()
            except PromptTooLong:
                if self._context_tokens >= context_tokens:
                    raise
                return await write()  # the refusal said how long the context is

    @property
    def _context_tokens(self) -> int:
        return self.model.info(Operation.ANSWER).context_tokens

    async def say(
        self, messages: Sequence[ChatMessage], screen: Screen, *, max_tokens: int, listener: Listener = Listener()
    ) -> Generated:
        """An answer to messages without sources: it cites nothing. Raises ModelUnavailable or ModelRejected."""
        with self.held():
            return await self._written(Request(messages, max_tokens), Writing(set(), screen), listener)

    async def _written(self, request: Request, writing: "Writing", listener: Listener) -> Generated:
        async with aclosing(coalesced(self.model.complete(request), self._clock)) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta(text):
                        await writing.add(text)
                    case Retraction():
                        await writing.begin_anew()
                    case Restart():
                        await listener.restarted(delta)
                        await writing.begin_anew()
                    case ReasoningDelta(text):
                        await listener.thought(text)
                    case Finish(reason):
                        return writing.finished(reason)
                    case _:
                        pass
                if writing.stopped is not None:
                    return writing.stopped
        return writing.finished(FinishReason.INCOMPLETE)


class Writing:
    """The answer so far."""

    def __init__(self, numbers: set[int], screen: Screen) -> None:
        self._numbers = numbers
        self._screen = screen
        self._marks = MarkFilter(numbers)
        self._text = ""
        self.stopped: Generated | None = None
        """The answer, once there is a reason to read no further."""

    async def add(self, piece: str) -> None:
        if not (ready := self._marks.feed(piece)):
            return
        self._text = (self._text + ready).lstrip()
        if len(self._text) > LONGEST_ANSWER_CHARS:
            self.stopped = self._generated(self._text[:LONGEST_ANSWER_CHARS], FinishReason.CUT_OFF)
        elif (loop := loop_start(self._text)) is not None:
            self.stopped = self._generated(self._text[:loop], FinishReason.STOP)
        else:
            await self._screen.show(self._text)

    async def begin_anew(self) -> None:
        self._marks, self._text = MarkFilter(self._numbers), ""
        await self._screen.settle("")

    def finished(self, reason: FinishReason) -> Generated:
        held = self._marks.finish()
        return self._generated(self._text + (held if reason.is_whole else ""), reason)

    def _generated(self, text: str, reason: FinishReason) -> Generated:
        return Generated(text.strip(), self._marks.invented, reason)


def loop_start(text: str) -> int | None:
    """Where the text begins to say the same sentence for the third time in a row: the second time. None when it does not. Small
    models get caught in such loops and would go on to their last token."""
    sentences = list(cited_sentences(text))[:-1]  # the last one may not be finished
    for first, second, third in zip(sentences, sentences[1:], sentences[2:], strict=False):
        if first.text == second.text == third.text:
            return second.start
    return None
