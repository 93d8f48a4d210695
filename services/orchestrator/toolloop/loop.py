"""The tool-calling loop: the model is asked, the planner decides about the calls that it requests, they are made and their results
shown to it, until it answers or a budget is spent. What a completion said and what was decided about it are one step of the log,
and each call is another, so that a run that is continued asks no model and no tool twice."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from kit.llm import LanguageModel, Restart
from services.orchestrator.answering.drafting import Drafter, restarted
from services.orchestrator.answering.generation import Listener
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import Degradation, Thinking
from services.orchestrator.log.screen import LONGEST_PIECE_CHARS, Screen
from services.orchestrator.ports import Tools
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.completion import Completer
from services.orchestrator.toolloop.forced_answer import Findings, ForcedAnswers, degradation
from services.orchestrator.toolloop.rounds import Round, Rounds
from services.orchestrator.toolloop.task import (
    LoopEnd,
    LoopLimits,
    LoopResult,
    LoopTask,
    NoFirstWord,
    Note,
    ToolsNotSupported,
)

__all__ = ["LoopEnd", "LoopLimits", "LoopResult", "LoopTask", "NoFirstWord", "Note", "ToolLoop", "ToolsNotSupported"]


class ToolLoop:
    """Answers questions with tools."""

    def __init__(
        self,
        model: LanguageModel,
        tools: Tools,
        drafter: Drafter,
        limits: LoopLimits = LoopLimits(),  # noqa: B008 - frozen
        *,
        held: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`drafter` quotes from the evidence where no model can answer. Within `held()` the model stays the same one."""
        self._model = model
        self._tools = tools
        self._limits = limits
        self._held = held
        self._clock = clock
        self._forced = ForcedAnswers(model, drafter, held)

    async def run(self, run: Run, task: LoopTask, screen: Screen) -> LoopResult:
        """The answer; there always is one, unless nothing has been called yet and the model fails.

        Raises ToolsNotSupported or NoFirstWord in that case, Parked when a call waits for a person, FencedOff.
        """
        completer = Completer(self._model, screen, _listener(run, task), self._clock)
        rounds = Rounds(run, task, self._model, self._tools, completer, self._limits, self._held)
        reason, attempt = "", 1
        degraded: Degradation | None = None
        while not (reason := rounds.spent()):
            try:
                said = await rounds.next()
            except BudgetSpent as error:
                reason = str(error.metadata["budget"])
                break
            if said.failure is not None:
                if not rounds.has_called:
                    _give_up(said)
                reason, attempt = said.failure.reason, said.failure.next_attempt
                degraded = degradation(reason, said.failure)
                break
            if handed := rounds.handed_over(said):
                return replace(rounds.result(said.text, LoopEnd.HANDED_OVER), function_calls=handed)
            if not said.calls:
                if said.text:
                    return rounds.result(said.text, LoopEnd.ANSWERED)
                reason = "empty"
                break
        findings = Findings(rounds.conversation, rounds.book.all, rounds.said)
        why = degraded or degradation(reason)
        forced = await self._forced.write(run, task, screen, completer, findings, why, attempt)
        end = LoopEnd.FORCED if forced.draft is None else LoopEnd.FALLBACK
        return replace(
            rounds.result(forced.text, end), reason=reason, degraded=tuple(forced.degraded), draft=forced.draft
        )


def _give_up(said: Round) -> None:
    """Raises why there is nothing to go on from."""
    assert said.failure is not None
    if said.failure.refuses_tools:
        raise ToolsNotSupported(said.failure.message)
    raise NoFirstWord(said.failure.message, reason=said.failure.reason)


def _listener(run: Run, task: LoopTask) -> Listener:
    async def thought(text: str) -> None:
        for start in range(0, len(text) if task.shows_thinking else 0, LONGEST_PIECE_CHARS):
            await run.say(Thinking("reason", text[start : start + LONGEST_PIECE_CHARS]))

    async def tell_of_restart(restart: Restart) -> None:
        await run.say(restarted(restart))

    return Listener(thought, tell_of_restart)
