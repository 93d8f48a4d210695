"""Instruments of the orchestrator. Labels are bounded: mode, status and kind of source."""

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
