"""Answers that a model gives with tools."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from kit.llm import Operation
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL, Draft
from services.orchestrator.answering.drafting import Question
from services.orchestrator.log.events import (
    Answer,
    Budgets,
    Evidence,
    SupportStatus,
)
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import RunRecord, RunRequest, Turn
from services.orchestrator.modes.drafts import answer_of, answer_tokens, checked, speaks_of_actions
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.modes.proactive import ChatTurn
from services.orchestrator.modes.threads import forgotten_sources
from services.orchestrator.modes.toolboxes import Toolbox, Toolboxes
from services.orchestrator.prompts.messages import tool_messages
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.budgets import most_budgets
from services.orchestrator.steps.run import Run, tell_time_is_up
from services.orchestrator.toolloop.loop import (
    LoopEnd,
    LoopLimits,
    LoopResult,
    LoopTask,
    ToolLoop,
)
from services.orchestrator.verification.checking import Checking
from services.orchestrator.without_model.intents import Route, read_intent

_OUT_OF_TIME = ("wall_clock", "LLM_TIMEOUT")
"""Why a loop ends that has no time left."""
_NEARLY_OVER = 0.4
"""Share of the run's time. A quarter is kept back for the answer, and a completion is broken off at 85 % of the rest, which leaves
0.36."""


@dataclass(frozen=True)
class ChatLimits:
    """Numbers of the mode; see settings.py for their reasons."""

    budgets: Budgets = Budgets(wall_clock_s=120.0, answer_tokens=600)
    """The most that a request gets."""

    usual: Budgets = Budgets(reasoning_steps=3, tool_calls=6, parallel_calls=3)
    """What a request gets that does not say."""

    tool_calling: bool = True
    agentic_runs_max: int = 64
    tool_choice: Literal["auto", "required"] = "auto"
    """Of the first completion, unless the message is small talk."""

    loop: LoopLimits = field(default_factory=LoopLimits)
    brought_model_life_s: float = 3600.0
    """How long the key of a model that a user brought is kept: a run that waits for a person longer could not go on with it."""

    @classmethod
    def of(cls, settings: OrchestratorSettings) -> "ChatLimits":
        return cls(
            budgets=most_budgets(settings),
            usual=Budgets(
                reasoning_steps=settings.chat_reasoning_steps,
                tool_calls=settings.chat_tool_calls,
                parallel_calls=settings.chat_parallel_calls,
            ),
            tool_calling=settings.chat_tool_calling,
            agentic_runs_max=settings.agentic_runs_max,
            tool_choice=settings.chat_tool_choice,
            loop=LoopLimits(approval_timeout_s=settings.approval_life_s),
            brought_model_life_s=settings.model_credentials_life_s,
        )


class _LiveCheck:
    """The check of what the loop writes, which begins while it is written. It begins anew when tools have brought passages."""

    def __init__(self, begin: Callable[[Sequence[Evidence]], Checking]) -> None:
        self._begin = begin
        self._evidence: Sequence[Evidence] = ()
        self._checking = begin(())

    def of(self, evidence: Sequence[Evidence]) -> Checking:
        """The check against these passages."""
        if list(evidence) != list(self._evidence):
            self._evidence, self._checking = evidence, self._begin(evidence)
        return self._checking

    def hear(self, text: str) -> None:
        """The answer reads `text` so far."""
        self._checking.hear(text)

    def listening(self, evidence: Sequence[Evidence]) -> AbstractAsyncContextManager[None]:
        """Within it the finished sentences of what is heard are judged."""
        return self.of(evidence).listening()


class ToolAnswers:
    """Answers questions by the tool loop."""

    def __init__(self, services: ModeServices, limits: ChatLimits) -> None:
        self._model = services.model
        self._tools = services.tools
        self._sources = services.sources
        self._drafter = services.drafter
        self._checks = services.checks
        self._limits = limits
        self._held = services.held
        self._toolboxes = Toolboxes(services.tools, services.model, services.scorer)

    @property
    def calls_tools(self) -> bool:
        """Whether there is a model now that may call tools."""
        return self._limits.tool_calling and bool(self._model.info(Operation.ANSWER).model)

    async def toolbox(self, run: Run, request: RunRequest, history: Sequence[Turn], *, by_model: bool) -> Toolbox:
        """The tools of the run, as they were when it began."""
        return await run.once(
            "tools",
            partial(self._toolboxes.listed, run, request, history, for_model=by_model),
            Toolbox,
            show=Toolbox.event,
            is_last_resort=True,
        )

    async def answer(self, asked: ChatTurn, toolbox: Toolbox, prompt: str = "") -> Answer:
        """The answer of the model with the tools of the box; `prompt` is what an agent tells it.

        Raises ToolsNotSupported, NoFirstWord; Parked when a call waits for a person.
        """
        run, record = asked.run, asked.record
        check = _LiveCheck(partial(self._checking, asked))
        task = LoopTask(
            question=asked.question,
            messages=tool_messages(asked.question, asked.history, prompt),
            offered=toolbox.shown,
            ranking=toolbox.ranking,
            needed=toolbox.needed,
            answer_tokens=answer_tokens(run),
            collection_ids=record.request.collection_ids,
            withheld=[*toolbox.withheld, *toolbox.left_out],
            tool_choice=self._first_choice(asked.question),
            note=partial(forgotten_sources, run, record, self._sources),
            listening=check.listening,
        )
        loop = ToolLoop(self._model, self._tools, self._drafter, self._loop_limits(run, record), held=self._held)
        result = await loop.run(run, task, Screen(run.journal, check.hear))
        if result.end is LoopEnd.FALLBACK:
            return await self._fallen_back(run, result)
        if not result.evidence and not speaks_of_actions(result.text):
            return Answer(result.text, (), None, MODEL)
        question = Question(asked.question, (), result.evidence, task.answer_tokens)
        judge = partial(self._drafter.judge, result.text, question, run.journal, check.of(result.evidence))
        draft = await run.once("verify", judge, Draft, show=checked, is_last_resort=True)
        return answer_of(draft, result.evidence)

    def _checking(self, asked: ChatTurn, evidence: Sequence[Evidence]) -> Checking:
        check = self._checks.of(asked.run, asked.record, evidence)
        return Checking(check, asked.question, evidence, asked.run.journal)

    def _loop_limits(self, run: Run, record: RunRecord) -> LoopLimits:
        limits = self._limits.loop
        if record.request.model_credentials is None:
            return limits
        age_s = (run.journal.now() - record.created_at).total_seconds()
        keeps_s = max(0.0, self._limits.brought_model_life_s - age_s - self._limits.budgets.wall_clock_s)
        return replace(limits, approval_timeout_s=min(limits.approval_timeout_s, keeps_s))

    def _first_choice(self, question: str) -> str:
        return "auto" if read_intent(question).route is Route.TALK else self._limits.tool_choice

    def took_all_time(self, run: Run, reason: str) -> bool:
        """Whether it was the run's time, and not the model's own, that was over."""
        left_s = run.budgets.remaining_s
        return (
            reason in _OUT_OF_TIME and left_s is not None and left_s <= _NEARLY_OVER * run.budgets.budgets.wall_clock_s
        )

    async def _fallen_back(self, run: Run, result: LoopResult) -> Answer:
        """What was found, quoted; when it was time that ran out, the run ends so."""
        if self.took_all_time(run, result.reason):
            await tell_time_is_up(run.journal)
        draft = result.draft or Draft(result.text, EXTRACTIVE, None, SupportStatus.UNAVAILABLE)
        return answer_of(draft, result.evidence)
