"""The calls of a round, made as planned: batch after batch, a person asked first where a tool needs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kit import deadline
from kit.llm import ToolCall
from services.orchestrator.errors import BudgetSpent, ReadOnlyRun
from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool
from services.orchestrator.ports import Tools
from services.orchestrator.steps.approvals import ApprovalRequest, Decision
from services.orchestrator.steps.effects import ToolAnswer, ToolOutcome
from services.orchestrator.steps.retrying import effect_with_retry
from services.orchestrator.steps.run import Run
from services.orchestrator.toolloop.calls.needs import Needs
from services.orchestrator.toolloop.calls.planner import RoundPlan
from services.orchestrator.toolloop.calls.taint import Taint
from services.orchestrator.toolloop.evidence import NotedCall
from services.orchestrator.toolloop.task import LoopLimits, LoopTask, time_to_act_s

OUT_OF_TIME = "OUT_OF_TIME"
_SETTLING_S = 2.0
"""Of the time that is kept for the answer."""


@dataclass(frozen=True)
class Called:
    """What came of a planned call."""

    outcome: ToolOutcome
    was_made: bool = True
    was_denied: bool = False


class Calling:
    """Makes the calls of one run."""

    def __init__(self, run: Run, task: LoopTask, tools: Tools, limits: LoopLimits, taint: Taint, needs: Needs) -> None:
        """`needs` answers what tools ask in the middle of a call."""
        self._run = run
        self._task = task
        self._tools = tools
        self._limits = limits
        self._taint = taint
        self._needs = needs
        self._by_name = {tool.name: tool for tool in task.offered}

    async def outcomes(
        self, number: int, calls: Sequence[ToolCall], arguments: Sequence[Mapping[str, Any]], plan: RoundPlan
    ) -> Sequence[Called | None]:
        """By position; None for a call that the planner dropped. Raises Parked and FencedOff."""
        called: list[Called | None] = [None] * len(calls)
        for batch in plan.batches:
            steps = [self._called(f"round{number}/call{index + 1}", calls[index], arguments[index]) for index in batch]
            for index, outcome in zip(batch, await self._run.all(*steps), strict=True):
                called[index] = outcome
        return called

    async def _called(self, key: str, call: ToolCall, arguments: Mapping[str, Any]) -> Called:
        tool = self._by_name.get(call.name)
        if tool is None:  # taken away since the round was planned
            return _not_made("WITHHELD", f"{call.name} is not offered any more.")
        if not self._run.is_recorded(key) and time_to_act_s(self._run.budgets, self._limits) == 0.0:
            return _not_made(OUT_OF_TIME, f"{call.name} was not called: the run's time is nearly over.")
        try:
            if self._waits_for_a_person(tool, arguments):
                decision = await self._decision(key, tool, arguments)
                if not decision.allowed:
                    return _denied(tool, decision)

            def make(answers: Sequence[ToolAnswer]) -> NotedCall:
                made = self._tools.call(tool, arguments, self._task.collection_ids, self._run.tell_progress, answers)
                return NotedCall(made, self._task.note)

            with deadline.within(self._time_s()):
                outcome = await effect_with_retry(self._run, key, make(()))
            return Called(await self._needs.met(key, tool, outcome, make, self._time_s))
        except (BudgetSpent, ReadOnlyRun) as error:
            return _not_made(error.reason, f"{tool.name} was not called: {error.message}")

    def _waits_for_a_person(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        return (
            tool.needs_approval
            or (tool.effect is not EffectClass.NONE and self._taint.is_present)
            or (tool.outward and self._taint.may_carry_data(arguments))
        )

    async def _decision(self, key: str, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        expires_at = self._run.journal.now() + timedelta(seconds=self._limits.approval_timeout_s)
        tainted = self._taint.arguments(arguments)
        asked = ApprovalRequest(
            tool.name, arguments, expires_at, tainted_arguments=tainted, is_tainted=self._taint.is_present
        )
        return await self._run.ask(f"{key}/approval", asked)

    def _time_s(self) -> float | None:
        """For a call; None for no limit. One that has begun is asked for by its id: what came of it must be known, whatever the
        time."""
        time_s = time_to_act_s(self._run.budgets, self._limits)
        return _SETTLING_S if time_s == 0.0 else time_s


def _not_made(reason: str, said: str) -> Called:
    return Called(ToolOutcome(False, {"error": reason, "message": said}, said, reason), was_made=False)


def _denied(tool: Tool, decision: Decision) -> Called:
    if decision.expired:
        said = f"Nobody allowed {tool.name} in time, so it was not called."
        reason = "APPROVAL_EXPIRED"
    else:
        said = f"A person refused the call of {tool.name}. It was not made; do not try it again."
        reason = "APPROVAL_DENIED"
    outcome = ToolOutcome(False, {"error": reason, "message": said}, said, reason)
    return Called(outcome, was_made=False, was_denied=True)
