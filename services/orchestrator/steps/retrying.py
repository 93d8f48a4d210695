"""Calls that are tried once more: a service that was away for a moment must not cost a run its answer."""

from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import EffectClass
from services.orchestrator.steps.effects import Call, ToolOutcome
from services.orchestrator.steps.run import Run

_MOMENTARY = frozenset({"TOOLS_BUSY", "RESOURCE_EXHAUSTED", "ABORTED"})
"""Besides every reason that says that something is unavailable."""
_LEFT_ALONE = "TOOL_UNAVAILABLE"
"""The tool has failed so often that it is not even tried for a while."""


async def effect_with_retry(run: Run, key: str, call: Call) -> ToolOutcome:
    """The outcome of `Run.effect`; of a second call, under a key of its own, when the first found a service away or busy. Only what
    changes nothing is called twice. Raises what `Run.effect` raises for the first."""
    outcome = await run.effect(key, call)
    if call.effect is not EffectClass.NONE or not is_momentary(outcome):
        return outcome
    if not run.is_recorded(f"{key}/again") and not _may_call(run):
        return outcome
    try:
        return await run.effect(f"{key}/again", call)
    except BudgetSpent:  # there is no time for it
        return outcome


def _may_call(run: Run) -> bool:
    """Whether the budgets allow one more call, and a step after it for the answer."""
    calls, steps = run.budgets.calls_left, run.budgets.steps_left
    return (calls is None or calls > 0) and (steps is None or steps > 1)


def is_momentary(outcome: ToolOutcome) -> bool:
    """Whether the call failed of something that may be over by now."""
    reason = outcome.error_reason
    return not outcome.ok and reason != _LEFT_ALONE and (reason.endswith("UNAVAILABLE") or reason in _MOMENTARY)
