"""A run is a fold over its log. `Run` is all that a mode sees of durability: what it does under a key is done once, in whichever
works on the run; what it does outside of one is done again by the next worker. Keys are structural ("plan", "round2/search1"), so
the same program comes to the same keys again."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast

import structlog
from pydantic import TypeAdapter, ValidationError

from kit.errors import Unavailable
from kit.records import set_aside
from services.orchestrator.answering.refusals import is_refusal
from services.orchestrator.errors import Parked, ReadOnlyRun, StepDiverged, signal_in
from services.orchestrator.guard.policy import flag_passages
from services.orchestrator.log.events import (
    Answer,
    ApprovalDecision,
    Asked,
    Budgets,
    Degradation,
    Done,
    EffectClass,
    InputRequest,
    InputState,
    Payload,
    Retrieval,
    RunError,
    RunStarted,
    RunStatus,
    StepPhase,
    StepState,
    SupportStatus,
    Thinking,
    ToolCall,
    ToolResult,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.state import RESUMED, TIME_UP, Recorded, approval_id
from services.orchestrator.models import Wait
from services.orchestrator.state import RUNS
from services.orchestrator.steps import calls
from services.orchestrator.steps.approvals import ApprovalRequest, Decision
from services.orchestrator.steps.budgets import Ledger, in_force
from services.orchestrator.steps.calls import arguments_hash
from services.orchestrator.steps.effects import Call, ToolOutcome
from services.orchestrator.steps.usage import usage_of

T = TypeVar("T")
_log = structlog.get_logger()
_KEY = re.compile(r"[a-z0-9][a-z0-9_.-]*(/[a-z0-9][a-z0-9_.-]*)*")
_MAX_FRUITLESS_RESUMES = 30
"""A run whose workers died so often in a row without writing a word would go on killing them. Others that were at work in the same
processes did not die of themselves, so the number is generous: a few minutes of take-overs."""
_KEEPS_BREAKING = RunError(
    "INTERNAL",
    "RUN_KEEPS_BREAKING",
    "the run was given up: it broke each of the processes that worked on it",
    retryable=False,
)
_LOG_LOST = RunError(
    "UNAVAILABLE",
    "LOG_LOST",
    "the run went on live while its log could not be written; its answer was not kept",
    retryable=True,
)


class Run:
    """One run, at work in this process. Made by `begin`."""

    def __init__(self, journal: Journal, started: RunStarted) -> None:
        self.journal = journal
        journal.takes_in_decisions = True  # people decide while other steps of the run are at work
        self.budgets = Ledger(started.budgets, journal)
        self._claimed: set[str] = set()

    @classmethod
    async def begin(cls, journal: Journal, started: RunStarted) -> "Run":
        """Says that the run begins, or that it goes on with another worker: an earlier one can write nothing from then on. One that
        goes on keeps the budgets that it began with, as far as they may still be given."""
        if journal.progress.started:
            started = replace(started, budgets=in_force(journal.progress.budgets, started.budgets))
            await journal.record("", Thinking(RESUMED, "Going on where this answer had stopped."), StepState())
        else:
            await journal.write(started)
        return cls(journal, started)

    async def once(
        self,
        key: str,
        do: Callable[[], Awaitable[T]],
        result: type[T],
        *,
        show: Callable[[T], Payload] | None = None,
        of_steps: bool = False,
        is_last_resort: bool = False,
    ) -> T:
        """What `do` returns: done now and recorded under `key`, or as it was recorded.

        The event that records it is the result itself, or what `show` makes of a result that is no payload; such a result must be a
        dataclass that JSON can hold. With `of_steps` it consists of other steps and is not counted itself. The last resort is also
        taken when the budgets of steps and of time are spent: it is what then answers.
        Raises BudgetSpent, and whatever `do` raises; then nothing is recorded.
        """
        self._claim(key)
        recorded = self.journal.progress.results.get(key)
        if recorded is not None:
            found = _result(key, recorded, result, in_payload=show is None)
            if found is not None:
                await _flag_orders(found)
                return found
        if not of_steps and not is_last_resort:
            self.budgets.enter_step(key)
        with self.journal.step(key, counted=not of_steps):
            value = await do()
            noted = _adapter(result).dump_json(value) if show else b""
            payload = show(value) if show else cast("Payload", value)
            await self.journal.record(key, payload, StepState(StepPhase.RESULT, noted))
        await _flag_orders(value)
        return value

    def narrow(self, budgets: Budgets) -> None:
        """Has the run spend no more than these budgets either, from now on."""
        self.budgets = Ledger(in_force(budgets, self.budgets.budgets), self.journal)

    def widen(self) -> None:
        """Has the run spend what it began with again: what follows an answer is not bound by what its agent got."""
        self.budgets = Ledger(self.journal.progress.budgets, self.journal)

    def is_recorded(self, key: str) -> bool:
        """Whether the step was done, or is an effect that has begun: to come to it again costs nothing, or must be done."""
        return key in self.journal.progress.results or key in self.journal.progress.intents

    async def effect(self, key: str, call: Call) -> ToolOutcome:
        """The outcome of a call that is made once. One that failed, was refused or is in doubt is an outcome too.

        Raises BudgetSpent, and StepDiverged when the log has another call under this key.
        """
        self._claim(key)
        progress = self.journal.progress
        intent = progress.intents.get(key)
        if intent is not None and intent.state.arguments_hash != arguments_hash(call.arguments):
            raise StepDiverged(f"step {key} has begun with other arguments; the run cannot go on")
        if (recorded := progress.results.get(key)) is not None:
            return _outcome(key, recorded)
        if intent is None:
            self.budgets.enter_step(key)
            self.budgets.enter_call(key)
        if progress.is_time_up and intent is not None:
            return await self._break_off(key, intent)
        async with self.budgets.call_slot():
            with self.journal.step(key) as meter:
                outcome = await self._outcome_of(key, call, begun=intent is not None)
                took = meter.usage()
                outcome = replace(outcome, duration_s=took.seconds if took else 0.0)
                state = StepState(StepPhase.RESULT, _adapter(ToolOutcome).dump_json(outcome))
                await self.journal.record(key, outcome.event(self._call_id(key)), state)
        return outcome

    async def _break_off(self, key: str, intent: Recorded) -> ToolOutcome:
        """The outcome of a call that was under way when the run's time was over: nobody waits for it."""
        event = _broken_off(intent)
        outcome = ToolOutcome(
            False, {"error": event.error_reason, "message": event.summary}, event.summary, event.error_reason
        )
        await self.journal.record(key, event, StepState(StepPhase.RESULT, _adapter(ToolOutcome).dump_json(outcome)))
        return outcome

    async def _outcome_of(self, key: str, call: Call, *, begun: bool) -> ToolOutcome:
        call_id = self._call_id(key)
        if not begun:
            intent = StepState(StepPhase.INTENT, effect=call.effect, arguments_hash=arguments_hash(call.arguments))
            await self.journal.record(key, ToolCall(call_id, call.name, call.arguments), intent)
        if not self.journal.durable and call.effect is not EffectClass.NONE:
            said = f"{call.name} was not called: the run's log cannot be written, so it could not be known later."
            return ToolOutcome(False, {"error": ReadOnlyRun.reason, "message": said}, said, ReadOnlyRun.reason)
        # An entry that cannot be read may have been this intent.
        if begun or self.journal.progress.damaged:
            return await calls.settle(call, call_id)
        return await calls.make(call, call_id)

    async def ask(self, key: str, approval: ApprovalRequest) -> Decision:
        """The decision. Until there is one the run is parked, by raising Parked.

        Raises ReadOnlyRun when the question cannot be logged, and StepDiverged when it was asked about other arguments.
        """
        self._claim(key)
        progress = self.journal.progress
        asked = progress.approvals.get(key)
        if asked is None:
            asked = approval.question(approval_id(self.journal.key.run_id, key))
            await self._note(key, asked)
        if asked.arguments_hash != arguments_hash(approval.arguments):
            raise StepDiverged(f"step {key} has asked about other arguments; the run cannot go on")
        if asked.decision is not ApprovalDecision.PENDING:
            return Decision.of(asked)
        if not Wait(progress.asked_at[key], asked.expires_at).is_over(self.journal.now()):
            raise Parked(key, asked.expires_at)
        expired = replace(asked, decision=ApprovalDecision.EXPIRED)
        await self._note(key, expired)
        return Decision.of(expired)

    async def ask_user(self, key: str, question: str, expires_at: datetime) -> str:
        """What the user of the run answers; empty when nothing came in time. Until then the run is parked, by raising Parked.

        `expires_at` counts at the first asking. Raises ReadOnlyRun when the question cannot be logged.
        """
        self._claim(key)
        progress = self.journal.progress
        asked = progress.inputs.get(key)
        if asked is None:
            asked = InputRequest(question, InputState.PENDING, "", expires_at)
            await self._note(key, asked)
        if asked.state is not InputState.PENDING:
            return asked.text
        if not Wait(progress.asked_at[key], asked.expires_at).is_over(self.journal.now()):
            raise Parked(key, asked.expires_at)
        await self._note(key, replace(asked, state=InputState.EXPIRED))
        return ""

    async def _note(self, key: str, asked: Asked) -> None:
        await self.journal.record(key, asked, StepState())
        if not self.journal.durable:
            raise ReadOnlyRun("the run's log cannot be written: nobody could be asked")

    async def say(self, payload: Payload) -> None:
        """A visible event, nothing more. One that an earlier worker said in the same step is not said again."""
        await self.journal.write(payload)

    async def tell_progress(self, text: str) -> None:
        """What a tool is doing, for the person."""
        await self.say(Thinking("tool", text))

    async def all(self, *steps: Awaitable[T]) -> list[T]:
        """The results of steps that are done at the same time. One that fails or waits does not stop the others: what they have
        begun ends. Then the first failure is raised, a signal before all others."""
        ended = await asyncio.gather(*steps, return_exceptions=True)
        errors = [each for each in ended if isinstance(each, BaseException)]
        if errors:
            raise signal_in(BaseExceptionGroup("steps", errors)) or errors[0]
        return cast("list[T]", ended)

    async def end(self, status: RunStatus) -> RunStatus:
        return await end(self.journal, status)

    async def tell_usage(self) -> None:
        await tell_usage(self.journal)

    def _claim(self, key: str) -> None:
        if not _KEY.fullmatch(key) or key in self._claimed:
            raise ValueError(f"step key {key!r} is used twice, or is none: lower-case words joined by slashes")
        self._claimed.add(key)

    def _call_id(self, key: str) -> str:
        return f"{self.journal.key.run_id}/{key}"


def check_not_breaking(journal: Journal) -> RunError | None:
    """What to end the run with when it has broken too many workers."""
    return _KEEPS_BREAKING if journal.progress.fruitless_resumes >= _MAX_FRUITLESS_RESUMES else None


async def _flag_orders(result: object) -> None:
    """Says which passages that a step has found give orders. What an earlier worker has said is not said again."""
    if isinstance(result, Retrieval):
        await flag_passages(result.evidence)


async def resolved(value: T) -> T:
    """A step whose result is known already."""
    return value


def status_of(answer: Answer) -> RunStatus:
    """How a run with this answer ends: as refused when it says nothing but that it does not know."""
    says_nothing = answer.support_status is SupportStatus.UNAVAILABLE or is_refusal(answer.text)
    return RunStatus.REFUSED if says_nothing and not answer.citations else RunStatus.COMPLETED


async def tell_time_is_up(journal: Journal) -> None:
    """Says that the run's time is over: from then on no step begins and no call is made, and what is known is the answer."""
    if not journal.progress.is_time_up:
        limit_s = journal.progress.budgets.wall_clock_s
        message = f"The time of this run ({limit_s:g} s) is over." if limit_s else "The time of this run is over."
        note = Degradation("run", "RUN_TIMEOUT", message)
        said = Thinking(TIME_UP, f"{message} Answering with what was found by then.", note)
        await journal.record(TIME_UP, said, StepState(StepPhase.RESULT))


async def tell_usage(journal: Journal) -> None:
    """Says what the run cost, once."""
    if journal.progress.usage is None:
        await journal.record("", usage_of(journal), StepState())


async def end(journal: Journal, status: RunStatus, error: RunError | None = None) -> RunStatus:
    """Writes the end of a run, whichever way it ends, and returns how it ended: calls that were broken off, what broke, what it
    cost, and `done`."""
    if journal.progress.done is not None:
        return journal.progress.done.status
    for key, intent in journal.progress.intents.items():
        if key not in journal.progress.results and isinstance(intent.payload, ToolCall):
            await journal.record(key, _broken_off(intent), StepState(StepPhase.RESULT))
    if error is not None:
        await journal.record("", error, StepState())
    await tell_usage(journal)
    await journal.record("", Done(status), StepState())
    return status


async def end_lost(journal: Journal, status: RunStatus) -> None:
    """Ends the log of a run that went on live without it, so that nobody does the run again. `journal` is the log as it is now.
    Raises Unavailable while it cannot be written."""
    await end(journal, status, _LOG_LOST)
    if not journal.durable:
        raise Unavailable("the end of the run could not be written")


def _broken_off(intent: Recorded) -> ToolResult:
    call = cast("ToolCall", intent.payload)
    if intent.state.effect in (EffectClass.NONE, EffectClass.IDEMPOTENT):
        said = "The run ended before the call did."
        return ToolResult(call.call_id, False, said, error_reason="CANCELLED", error_message=said)
    return calls.in_doubt(call.name).event(call.call_id)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    return _adapters(kind)


@cache
def _adapters(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _result(key: str, recorded: Recorded, kind: type[T], *, in_payload: bool) -> T | None:
    """The recorded result; None, said so, when this version cannot read it: doing a step again does no harm."""
    if in_payload:
        return recorded.payload if isinstance(recorded.payload, kind) else None
    try:
        return cast("T", _adapter(kind).validate_json(recorded.state.result))
    except ValidationError as error:
        set_aside(RUNS.name, key, error)
        return None


def _outcome(key: str, recorded: Recorded) -> ToolOutcome:
    """The recorded outcome; from what was shown of it, when this version cannot read the rest."""
    try:
        return cast("ToolOutcome", _adapter(ToolOutcome).validate_json(recorded.state.result))
    except ValidationError as error:
        set_aside(RUNS.name, key, error)
        shown = recorded.payload
        if isinstance(shown, ToolResult):
            return ToolOutcome(shown.ok, shown.summary, shown.summary, shown.error_reason, shown.duration_s)
        return calls.in_doubt(key)
