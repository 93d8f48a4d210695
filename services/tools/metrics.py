"""Instruments of the tools service. Labels are bounded: names of tools that are there, kinds of outcome."""

from collections.abc import Callable

from prometheus_client import Counter, Gauge, Histogram

from kit.breaker import BreakerState
from services.tools import errors
from services.tools.models import ToolOutcome

UNKNOWN_TOOL = "unknown"
CALLS = Counter(
    "groundwork_tool_calls",
    "Calls of tools by outcome: ok, cached, refused, failed, timeout, unavailable, left_alone, busy, in_doubt, abandoned",
    ["tool", "outcome"],
)
SECONDS = Histogram(
    "groundwork_tool_seconds",
    "Seconds that a call took, waiting included; not of cached results",
    ["tool"],
    buckets=(0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
_BREAKER = Gauge("groundwork_tool_breaker", "Breaker of a tool: 0 closed, 1 half open, 2 open", ["tool"])
_STATES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
_OUTCOMES = {
    errors.ToolError.reason: "failed",
    errors.OutputTooLarge.reason: "failed",
    errors.ToolTimedOut.reason: "timeout",
    errors.ServiceUnavailable.reason: "unavailable",
    errors.ToolUnavailable.reason: "left_alone",
    errors.ToolsBusy.reason: "busy",
    errors.CallInDoubt.reason: "in_doubt",
}
"""Of reasons. One that ends in UNAVAILABLE is a service that did not answer; any other is a refusal, in a tool's own words."""


def outcome_of(outcome: ToolOutcome) -> str:
    """The label for an outcome."""
    if outcome.ok:
        return "cached" if outcome.cached else "ok"
    if outcome.error_reason.endswith("_UNAVAILABLE"):
        return _OUTCOMES.get(outcome.error_reason, "unavailable")
    return _OUTCOMES.get(outcome.error_reason, "refused")


def show_breaker(tool: str, state: Callable[[], BreakerState]) -> None:
    """Shows the state whenever metrics are read."""
    _BREAKER.labels(tool=tool).set_function(lambda: _STATES[state()])
