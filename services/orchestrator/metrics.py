"""Instruments of the orchestrator. Labels are bounded: mode, status, kind of source, decision, stage, part, and models of the
catalog."""

from prometheus_client import Counter, Gauge, Histogram

from kit.jetstream.queues.backlog import BacklogGauges
from kit.llm.brought import BROUGHT

RUNS = Counter(
    "groundwork_runs",
    "Runs that ended; degraded is yes when something had to be done in a lesser way, which the answer says.",
    ["mode", "status", "degraded"],
)
DEGRADED_RUNS = Counter(
    "groundwork_degraded_runs",
    "Runs that ended and had to do without a part, by part: a run may count for several.",
    ["part"],
)
RUN_SECONDS = Histogram(
    "groundwork_run_seconds",
    "Seconds from start to end of a run, waiting for people included.",
    ["mode"],
    buckets=(0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60, 120),
)
STEP_SECONDS = Histogram(
    "groundwork_run_step_seconds",
    "Seconds of a step of a run, by kind of step.",
    ["step"],
    buckets=(0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
)
CITATIONS = Histogram(
    "groundwork_citation_share",
    "Of checked answers: precision is the share of citations that carry their claim, recall of claims that their own "
    "citations carry, coverage of claims that any passage carries.",
    ["mode", "share"],
    buckets=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0),
)
SAFETY = Counter(
    "groundwork_safety",
    "What was seen that is not safe: where, of what kind, and what became of it (flagged, blocked, removed, ended).",
    ["place", "kind", "action"],
)
RUNS_IN_HAND = Gauge("groundwork_runs_in_hand", "Runs that this process works on.")
RUNS_WAITING = Gauge(
    "groundwork_runs_waiting",
    "Runs that wait for a person's decision, of the whole system; every orchestrator tells them: use max.",
)
RUNS_ORPHANED = Gauge(
    "groundwork_runs_orphaned",
    "Runs that nobody works on, as the last round of this orchestrator found them, before it took some; use max.",
)
RESUMED_RUNS = Counter(
    "groundwork_resumed_runs",
    "Runs that this process went on with: orphaned (their orchestrator died or stopped), or waited (for a person).",
    ["why"],
)
LOST_RUNS = Counter(
    "groundwork_lost_runs", "Runs that this process worked on and another orchestrator took: its lease had run out."
)
MODEL_TOKENS = Counter(
    "groundwork_llm_tokens",
    "Tokens of language models, as they counted them or as estimated; kind is prompt or completion.",
    ["provider", "model", "operation", "kind"],
)
MODEL_COST = Counter(
    "groundwork_llm_cost_usd",
    "Dollars that language models have cost, by the prices of the settings.",
    ["provider", "model", "operation"],
)
SHED_CHATS = Counter(
    "groundwork_shed_chats", "Chats that got one search and one answer, since too many were served with tools."
)
FORGOTTEN_RUNS = Counter(
    "groundwork_forgotten_runs",
    "Runs whose events were erased, by what was deleted: document, thread or run.",
    ["source"],
)
REQUESTED_CALLS = Counter(
    "groundwork_requested_tool_calls",
    "Calls that models requested, by what the planner decided: made, or why not.",
    ["decision"],
)
FORCED_ANSWERS = Counter(
    "groundwork_forced_answers",
    "Answers that the model did not give by itself, by what did: attempt 1, attempt 2, or the fallback without a model.",
    ["stage"],
)
FORGET_QUEUE = BacklogGauges(
    "groundwork_forget_queue", "texts to erase from runs and threads; reported by every orchestrator: use max"
)
_PARTS = frozenset(
    {
        "dense",
        "lexical",
        "rerank",
        "cosines",
        "diversity",
        "neighbours",
        "search",
        "llm",
        "planner",
        "tools",
        "memory",
        "durability",
    }
    | {"run"}
)


def part_label(part: str) -> str:
    """What is said of a part by a tool may be any word."""
    return part if part in _PARTS else "other"


def model_label(provider: str, model: str) -> str:
    """Models of the catalog are few; a user's may be called anything."""
    return BROUGHT if provider == BROUGHT else model
