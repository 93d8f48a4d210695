"""The answer when the model may call no more tools: asked once, asked again in a short and harsh way, and at last without a
model. An answer always comes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from kit import deadline
from kit.llm import ChatMessage, LanguageModel, ModelRejected, ModelUnavailable, Request
from services.orchestrator.answering.draft import EXTRACTIVE, Draft
from services.orchestrator.answering.drafting import Drafter, Question, finished_text
from services.orchestrator.errors import BudgetSpent, QuestionTooLong
from services.orchestrator.log.events import Degradation, Evidence, Payload, SupportStatus, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.metrics import FORCED_ANSWERS
from services.orchestrator.prompts.fitting import fit
from services.orchestrator.prompts.rules import ANSWER_IN_WORDS, ANSWER_NOW
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.completion import Completer, Completion
from services.orchestrator.toolloop.conversation import Conversation
from services.orchestrator.toolloop.failure import Failure
from services.orchestrator.toolloop.task import LoopTask

_SHARE_OF_TIME = 0.6
"""Of what the run has left, what each attempt may take: behind the last there is still an answer to be put together."""
_SHORT_SHARE = 0.5
"""Share of the context that the second attempt uses: the first may have failed of its length."""
_MAX_QUOTED_CHARS = 2_000
_SPENT = {
    "reasoning_steps": "The steps of this run are used up",
    "tool_calls": "The tool calls of this run are used up",
    "steps": "The steps of this run are used up",
    "tokens": "The tokens of this run are used up",
    "cost_usd": "What this run may cost is used up",
    "wall_clock": "The time of this run is nearly over",
    "empty": "The model said nothing",
}


@dataclass(frozen=True)
class Findings:
    """What there is to answer from."""

    conversation: Conversation
    evidence: Sequence[Evidence]
    said: Sequence[str]
    """What each call came to, for a person: "search: 3 passages found"."""


@dataclass(frozen=True)
class ForcedAnswer:
    """`draft` is None when the model wrote the answer."""

    text: str
    draft: Draft | None
    degraded: Sequence[Degradation]


@dataclass(frozen=True)
class Attempt:
    """What came of asking the model once more."""

    completion: Completion | None = None
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """The answer; empty when it is none."""
        return self.completion.text if self.completion and not self.completion.calls else ""


def degradation(reason: str, failure: Failure | None = None) -> Degradation:
    """Why the model did not answer by itself."""
    if failure is not None:
        return Degradation("llm", failure.reason, _sentence(failure.message))
    said = _SPENT.get(reason, reason)
    return Degradation("planner", f"BUDGET_{reason.upper()}" if reason != "empty" else "LLM_EMPTY", f"{said}.")


def _sentence(message: str) -> str:
    """An error's message as a sentence, which others may follow."""
    return message if message.endswith((".", "!", "?")) else f"{message[:1].upper()}{message[1:]}."


class ForcedAnswers:
    """Forces answers."""

    def __init__(
        self, model: LanguageModel, drafter: Drafter, held: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._model = model
        self._drafter = drafter
        self._held = held

    async def write(
        self,
        run: Run,
        task: LoopTask,
        screen: Screen,
        completer: Completer,
        found: Findings,
        why: Degradation,
        first: int,
    ) -> ForcedAnswer:
        """The answer, begun with attempt number `first` of three."""
        degraded = [why]
        for number in range(first, 3):
            attempt = await self._attempt(run, task, completer, found, number, why)
            if attempt is None:
                break
            if attempt.text:
                FORCED_ANSWERS.labels(str(number)).inc()
                return ForcedAnswer(attempt.text, None, degraded)
            if attempt.failure is not None:
                degraded.append(degradation("", attempt.failure))
                if attempt.failure.next_attempt > number + 1:
                    break
        draft = await run.once(
            "fallback",
            partial(self._fallback, run, task, screen, found, degraded[-1]),
            Draft,
            show=_shown,
            is_last_resort=True,
        )
        FORCED_ANSWERS.labels("fallback").inc()
        return ForcedAnswer(draft.text, draft, degraded)

    async def _attempt(
        self, run: Run, task: LoopTask, completer: Completer, found: Findings, number: int, why: Degradation
    ) -> Attempt | None:
        """None when no budget allows it."""
        key = f"forced{number}/model"
        try:
            if not run.is_recorded(key):
                run.budgets.require_model()
            return await run.once(
                key, partial(self._asked, run, task, completer, found, number, why), Attempt, show=_describe_attempt
            )
        except BudgetSpent:
            return None

    async def _asked(
        self, run: Run, task: LoopTask, completer: Completer, found: Findings, number: int, why: Degradation
    ) -> Attempt:
        said = f"{why.message} Answering with what was found." if number == 1 else "Asking once more, without tools."
        await run.say(Thinking("answer", said, why))
        left_s = run.budgets.remaining_s
        time_s = None if left_s is None else left_s * _SHARE_OF_TIME
        numbers = range(1, len(found.evidence) + 1)
        try:
            async with task.listening(found.evidence):
                with self._held(), deadline.within(time_s):
                    async with asyncio.timeout(time_s):
                        request = await self._request(run, task, found, number)
                        completion = await completer.complete(request, numbers, [tool.name for tool in task.offered])
        except (ModelUnavailable, ModelRejected, QuestionTooLong) as error:
            await completer.screen.settle("")
            return Attempt(failure=Failure.of(error))
        except TimeoutError:
            await completer.screen.settle("")
            return Attempt(failure=Failure.late())
        if completion.calls:
            return Attempt(completion)
        text = await finished_text(completion.text, completion.reason, run.journal)
        await completer.screen.settle(text)
        return Attempt(replace(completion, text=text))

    async def _request(self, run: Run, task: LoopTask, found: Findings, number: int) -> Request:
        tokens = run.budgets.affordable_tokens(task.answer_tokens)
        if number == 1:
            fitted = await fit(found.conversation.ordered(ANSWER_NOW), self._model, tokens)
        else:
            fitted = await fit(_short(task, found), self._model, tokens, share=_SHORT_SHARE)
            fitted = replace(fitted, messages=_plain(fitted.messages))
        return Request(fitted.messages, fitted.max_tokens)

    async def _fallback(self, run: Run, task: LoopTask, screen: Screen, found: Findings, why: Degradation) -> Draft:
        await run.say(Thinking("answer", f"{why.message} Saying what was found instead.", why))
        if found.evidence:
            question = Question(task.question, (), found.evidence, task.answer_tokens)
            draft = await self._drafter.without_model().write(question, run.journal)
            if not draft.is_refusal:
                return draft
        text = _honest(found.said, why)
        await screen.settle(text)
        return Draft(text, EXTRACTIVE, None, SupportStatus.UNAVAILABLE)


def _short(task: LoopTask, found: Findings) -> Sequence[ChatMessage]:
    """The system prompt, what the tools said, and the question. What they said is what gives way when it does not fit."""
    system = [message for message in task.messages[:1] if message.role == "system"]
    observations = [ChatMessage("tool", each) for each in found.conversation.observations]
    return [*system, *observations, ChatMessage("user", f"Question: {task.question}\n\n{ANSWER_IN_WORDS}")]


def _plain(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The same without a tool's role, which a server may refuse where no tools are offered: its text is the user's."""
    said = "\n\n".join(message.content for message in messages if message.role == "tool")
    others = [message for message in messages if message.role != "tool"]
    preface = f"What the tools said:\n\n{said}\n\n" if said else ""
    return [*others[:-1], replace(others[-1], content=preface + others[-1].content)]


def _honest(said: Sequence[str], why: Degradation) -> str:
    if not said:
        return f"I could not answer this. {why.message}"
    lines = "\n".join(f"- {each}" for each in said)
    return f"I could not finish this answer. {why.message}\n\nThis is what the tools said:\n{lines}"[:_MAX_QUOTED_CHARS]


def _describe_attempt(attempt: Attempt) -> Payload:
    if attempt.failure is not None:
        note = Degradation("llm", attempt.failure.reason, attempt.failure.message)
        return Thinking("answer", "The model could not be made to answer.", note)
    if not attempt.text:
        note = Degradation("llm", "LLM_NO_ANSWER", "The model went on calling tools, or said nothing.")
        return Thinking("answer", note.message, note)
    return Thinking("answer", "Answered without calling more tools.")


def _shown(draft: Draft) -> Payload:
    return draft.verification or Thinking("answer", "Nothing that was found answers the question by itself.")
