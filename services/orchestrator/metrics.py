"""Instruments of the orchestrator. Labels are bounded: mode, status, kind of source, decision, stage."""

from prometheus_client import Counter, Histogram

RUNS = Counter("groundwork_runs", "Runs that ended", ["mode", "status"])
RUN_SECONDS = Histogram(
    "groundwork_run_seconds",
    "Seconds from start to end of a run",
    ["mode"],
    buckets=(0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60, 120),
)
SHED_CHATS = Counter(
    "groundwork_shed_chats", "Chats that got one search and one answer, since too many were served with tools"
)
FORGOTTEN_RUNS = Counter(
    "groundwork_forgotten_runs",
    "Runs whose events were erased, by what was deleted: document, thread or run",
    ["source"],
)
REQUESTED_CALLS = Counter(
    "groundwork_requested_tool_calls",
    "Calls that models requested, by what the planner decided: made, or why not",
    ["decision"],
)
FORCED_ANSWERS = Counter(
    "groundwork_forced_answers",
    "Answers that the model did not give by itself, by what did: attempt 1, attempt 2, or the fallback without a model",
    ["stage"],
)
