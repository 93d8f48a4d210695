"""The rounds of one run of the loop: a completion with tools, what the planner makes of its calls, the calls, what they said."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kit import deadline
from kit.llm import (
    ChatMessage,
    LanguageModel,
    ModelRejected,
    ModelUnavailable,
    Operation,
    PromptTooLong,
    Request,
    ToolCall,
)
from services.orchestrator.answering.drafting import finished_text
from services.orchestrator.errors import QuestionTooLong
from services.orchestrator.guard.policy import flag_results
from services.orchestrator.log.events import (
    Degradation,
    EffectClass,
    Evidence,
    FunctionCall,
    Payload,
    Retrieval,
    Thinking,
)
from services.orchestrator.log.screen import LONGEST_PIECE_CHARS
from services.orchestrator.metrics import REQUESTED_CALLS
from services.orchestrator.ports import Tools
from services.orchestrator.prompts.fitting import fit
from services.orchestrator.steps.run import Run, resolved
from services.orchestrator.toolloop.calls import observations
from services.orchestrator.toolloop.calls.calling import Called, Calling
from services.orchestrator.toolloop.calls.needs import Needs
from services.orchestrator.toolloop.calls.planner import Allowance, Drop, History, RoundPlan, plan
from services.orchestrator.toolloop.calls.requests import Offer, requested_calls
from services.orchestrator.toolloop.calls.taint import Taint
from services.orchestrator.toolloop.completion import Completer, Completion
from services.orchestrator.toolloop.conversation import Conversation, spec_of
from services.orchestrator.toolloop.evidence import EvidenceBook
from services.orchestrator.toolloop.failure import Failure
from services.orchestrator.toolloop.task import LoopEnd, LoopLimits, LoopResult, LoopTask, time_to_act_s
from services.orchestrator.toolloop.tool_choice import tools_left_out

_STEPS_OF_A_ROUND = 3
"""A completion, a call, and the completion that answers: with fewer left, tools are not worth offering."""
_STEPS_OF_A_FORCED_ANSWER = ("forced1/model", "forced2/model", "fallback")
_SHARES_OF_CONTEXT = (1.0, 0.6, 0.3)
"""Tried one after the other with a server that finds the prompt too long by its own count."""


@dataclass(frozen=True)
class Round:
    """What a completion said and what was decided about it, as it is recorded."""

    text: str = ""
    calls: Sequence[ToolCall] = ()
    """As they are shown to the model again: with ids of their own and arguments that are JSON."""
    arguments: Sequence[Mapping[str, Any]] = ()
    """Of each call, as it is made."""
    plan: RoundPlan = field(default_factory=RoundPlan)
    invented_citations: int = 0
    failure: Failure | None = None


class Rounds:
    """The state of a run of the loop. The process that continues the run builds it anew from the log."""

    def __init__(
        self,
        run: Run,
        task: LoopTask,
        model: LanguageModel,
        tools: Tools,
        completer: Completer,
        limits: LoopLimits,
        held: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._run = run
        self._task = task
        self._model = model
        self._completer = completer
        self._limits = limits
        self._held = held
        self._offer = Offer(task.offered, task.withheld)
        own, answers = _written_by(task.messages)
        self._taint = Taint([task.question, *own], [*answers, *(source.text for source in task.evidence)])
        self._calling = Calling(run, task, tools, limits, self._taint, Needs(run, model, limits))
        self._history = History()
        self._number = 0
        self.conversation = Conversation(task.messages)
        self.book = EvidenceBook(task.evidence)
        self.said: list[str] = []
        """What each call came to, for a person."""
        self._results: list[str] = []
        """What the calls of the last round said that found no passages."""

    @property
    def has_called(self) -> bool:
        """Whether anything has been called: then there is something to answer from."""
        return bool(self.said or self._task.evidence)

    def spent(self) -> str:
        """The budget that allows no further round; empty while none does. A round that is in the log is gone through again whatever
        is left by now."""
        budgets = self._run.budgets.budgets
        if self._number >= (budgets.reasoning_steps or self._limits.reasoning_steps):
            return "reasoning_steps"
        if self._run.is_recorded(self._key(self._number + 1)):
            return ""
        return self._spent_by_now()

    def _spent_by_now(self) -> str:
        ledger = self._run.budgets
        if ledger.calls_left == 0:
            return "tool_calls"
        # What a worker that died has begun since then is no reason to say something else than it did.
        begun = sum(ledger.has_begun(key) for key in (self._key(self._number + 1), *_STEPS_OF_A_FORCED_ANSWER))
        if ledger.steps_left is not None and ledger.steps_left + begun < _STEPS_OF_A_ROUND:
            return "steps"
        if self._time_s() == 0.0:
            return "wall_clock"
        return ""

    async def next(self) -> Round:
        """The next round, with its calls made. Raises BudgetSpent, Parked and FencedOff."""
        self._number += 1
        key = self._key(self._number)
        if not self._run.is_recorded(key):
            self._run.budgets.require_model()
        said = await self._run.once(key, self._asked, Round, show=_describe_round)
        if said.calls and not self.handed_over(said):
            known = self.book.all
            self._take_in(said, await self._calling.outcomes(self._number, said.calls, said.arguments, said.plan))
            await flag_results(self._results)
            await self._show([source for source in self.book.all if source not in known])
        return said

    def handed_over(self, said: Round) -> Sequence[FunctionCall]:
        """The calls of the round that are the run's caller's to make. Then none of its others is made: the model asks again."""
        tools = [self._offer.named(call.name) for call in said.calls]
        return [
            FunctionCall(call.call_id, call.name, call.arguments)
            for call, tool, decision in zip(said.calls, tools, said.plan.decisions, strict=False)
            if tool is not None and tool.is_callers and decision.dropped is None
        ]

    async def _show(self, found: Sequence[Evidence]) -> None:
        """Shows the passages that the round has brought, under the numbers that the answer cites."""
        if found:
            key = f"round{self._number}/evidence"
            await self._run.once(key, partial(resolved, Retrieval(tuple(found))), Retrieval, of_steps=True)

    def result(self, text: str, end: LoopEnd) -> LoopResult:
        return LoopResult(text, self.book.all, end)

    def _key(self, number: int) -> str:
        return f"round{number}/model"

    def _time_s(self) -> float | None:
        return time_to_act_s(self._run.budgets, self._limits)

    async def _asked(self) -> Round:
        try:
            async with self._task.listening(self.book.all):
                completion = await self._completion()
        except (ModelUnavailable, ModelRejected, QuestionTooLong) as error:
            await self._completer.screen.settle("")
            return Round(failure=Failure.of(error))
        except TimeoutError:
            await self._completer.screen.settle("")
            return Round(failure=Failure.late())
        if completion.quoted_calls:
            text = f"{completion.quoted_calls} call(s) that the model repeated from what tools said were not made."
            await self._run.say(Thinking("verify", text, Degradation("llm", "QUOTED_CALL", text)))
        if not completion.calls:
            return await self._answer(completion)
        return await self._planned(completion)

    async def _completion(self) -> Completion:
        time_s = self._time_s()
        names = [tool.name for tool in self._task.offered]
        with self._held(), deadline.within(time_s):
            async with asyncio.timeout(time_s):
                shares, is_learnt = list(_SHARES_OF_CONTEXT), False
                while True:
                    context_tokens = self._context_tokens
                    try:
                        request = await self._request(shares[0])
                        return await self._completer.complete(request, self.book.numbers, names)
                    except PromptTooLong:
                        if not is_learnt and self._context_tokens < context_tokens:
                            is_learnt = True  # the refusal said how long the context is
                            continue
                        if len(shares) == 1:
                            raise
                        shares.pop(0)

    @property
    def _context_tokens(self) -> int:
        return self._model.info(Operation.ANSWER).context_tokens

    async def _request(self, share: float) -> Request:
        tokens = self._run.budgets.affordable_tokens(self._task.answer_tokens)
        left_out = await self._left_out(share)
        specs = [spec_of(tool) for tool in self._task.offered if tool.name not in left_out]
        fitted = await fit(self.conversation.messages, self._model, tokens, tools=specs, share=share)
        choice = self._task.tool_choice if self._number == 1 else "auto"
        return Request(fitted.messages, fitted.max_tokens, tools=specs, tool_choice=choice)

    async def _left_out(self, share: float) -> Collection[str]:
        """Names of tools that the model is not shown, since its context has turned out to be smaller than it was thought."""
        places = {name: place for place, name in enumerate(self._task.ranking)}
        ranked = sorted(self._task.offered, key=lambda tool: places.get(tool.name, len(places)))
        return await tools_left_out(ranked, self._task.needed, self._model, self._task.answer_tokens, share)

    async def _answer(self, completion: Completion) -> Round:
        if completion.invented_citations:
            text = f"{completion.invented_citations} citation(s) of sources that do not exist were removed."
            await self._run.say(Thinking("verify", text, Degradation("llm", "INVENTED_CITATION", text)))
        text = await finished_text(completion.text, completion.reason, self._run.journal)
        await self._completer.screen.settle(text)
        return Round(text, invented_citations=completion.invented_citations)

    async def _planned(self, completion: Completion) -> Round:
        if text := completion.text[:LONGEST_PIECE_CHARS]:
            await self._run.say(Thinking("reason", text))
        calls = requested_calls(completion, self._offer, self._number, self.conversation.call_ids)
        decided = plan([call.requested for call in calls], self._history, self._allowance())
        for decision in decided.decisions:
            REQUESTED_CALLS.labels(decision.dropped.value if decision.dropped else "made").inc()
        return Round(text, [call.shown for call in calls], [call.requested.arguments for call in calls], decided)

    def _allowance(self) -> Allowance:
        """What the round may call. One step is kept for the answer."""
        ledger = self._run.budgets
        steps = None if ledger.steps_left is None else max(0, ledger.steps_left - 1)
        calls = [each for each in (steps, ledger.calls_left) if each is not None]
        parallel = ledger.budgets.parallel_calls or self._limits.parallel_calls
        return Allowance(min(calls) if calls else None, parallel)

    def _take_in(self, said: Round, called: Sequence[Called | None]) -> None:
        """Notes what came of the round's calls: None for one that the planner dropped."""
        observed: list[str] = []
        found: list[str] = []
        self._results = []
        for call, decision, each in zip(said.calls, said.plan.decisions, called, strict=True):
            if each is None:
                budget = self._run.budgets.budgets.tool_calls
                observed.append(observations.of_dropped(decision, call.name, self._offer.names, budget))
                continue
            self._note(call.name, decision.fingerprint, each)
            observed.append(observations.of_outcome(each.outcome, self.book, self._limits.observation_chars))
            if each.was_made and not self._is_self_contained(call.name):
                self._taint.add(observed[-1])
            found += observations.findings(each.outcome)
            if not each.outcome.evidence:
                self._results.append(observations.as_text(each.outcome))
        self._history.note_findings(self._number, found)
        self.conversation.add_round(said.text, said.calls, observed)

    def _is_self_contained(self, name: str) -> bool:
        tool = self._offer.named(name)
        return tool is not None and tool.self_contained

    def _note(self, name: str, print_: str, called: Called) -> None:
        outcome = called.outcome
        self.said.append(f"{name}: {outcome.summary or ('done' if outcome.ok else outcome.error_reason)}")
        if called.was_denied:
            self._history.note_denial(self._number, print_)
        if called.was_made:
            tool = self._offer.named(name)
            is_once = tool is not None and tool.effect is EffectClass.ONCE
            self._history.note_call(self._number, print_, is_effect=is_once and (outcome.ok or outcome.is_in_doubt))


def _written_by(messages: Sequence[ChatMessage]) -> tuple[Sequence[str], Sequence[str]]:
    """The user's messages before the question, and the answers to them. The last message may show passages beside the question."""
    asked = max((place for place, each in enumerate(messages) if each.role == "user"), default=len(messages))
    before = messages[:asked]
    own = [each.content for each in before if each.role == "user"]
    return own, [each.content for each in messages if each.role in ("assistant", "tool")]


def _describe_round(said: Round) -> Payload:
    if said.failure is not None:
        return Thinking("answer", "The model failed.", Degradation("llm", said.failure.reason, said.failure.message))
    if not said.calls:
        return Thinking("answer", "Answered without calling more tools." if said.text else "The model said nothing.")
    made: list[str] = []
    dropped: list[str] = []
    for call, decision in zip(said.calls, said.plan.decisions, strict=True):
        if decision.dropped is None:
            made.append(call.name)
        else:
            dropped.append(f"{call.name} ({_WHY[decision.dropped]})")
    parts = [f"Calling {', '.join(made)}." if made else "", f"Not calling {', '.join(dropped)}." if dropped else ""]
    return Thinking("plan", " ".join(part for part in parts if part))


_WHY = {
    Drop.REPEATED: "nothing new was found since it was called",
    Drop.TWICE: "requested twice",
    Drop.DONE: "done already",
    Drop.DENIED: "not allowed",
    Drop.OVER_BUDGET: "no calls left",
    Drop.UNKNOWN: "no such tool",
    Drop.WITHHELD: "not for this run",
    Drop.UNREADABLE: "its arguments do not fit",
}
