"""Questions and answers: runs, search, tools."""

from scripts.dashboards.panels import (
    DEGRADED_RUNS,
    RUNS,
    SEARCHES,
    Dashboard,
    Panel,
    Row,
    counts,
    gauge,
    largest,
    quantile,
    quantiles,
    rate,
    share,
    total,
)

ANSWERS = Dashboard(
    "answers",
    "Questions and answers",
    "Runs, the search behind them, the tools they call, and what they had to do without.",
    [
        Row(
            "Runs",
            [
                counts("By mode and how they ended", "groundwork_runs_total", "mode, status"),
                quantiles(
                    "Time", "groundwork_run_seconds", "mode", about="From the question on, waiting for people included."
                ),
                gauge("Steps, p95", quantile(0.95, "groundwork_run_step_seconds", "step"), "{{step}}", "s"),
                gauge("In hand, by orchestrator", total("groundwork_runs_in_hand", "instance"), "{{instance}}"),
                Panel(
                    "Waiting",
                    [
                        (largest("groundwork_runs_waiting"), "for a person"),
                        (largest("groundwork_runs_orphaned"), "for an orchestrator"),
                    ],
                ),
                Panel(
                    "Taken up again",
                    [
                        (rate("groundwork_resumed_runs_total", "why"), "{{why}}"),
                        (rate("groundwork_lost_runs_total"), "lost"),
                    ],
                    "ops",
                ),
            ],
        ),
        Row(
            "Degraded",
            [
                gauge("Share of answers", share(DEGRADED_RUNS, RUNS), "degraded", "percentunit"),
                counts("Answers, by what was missing", "groundwork_degraded_runs_total", "part"),
                counts("Searches, by what was missing", "groundwork_retriever_degraded_total", "part"),
                counts("Answers that the model did not give", "groundwork_forced_answers_total", "stage"),
                Panel(
                    "Chats without tools, since too many ran", [(rate("groundwork_shed_chats_total"), "shed")], "ops"
                ),
            ],
        ),
        Row(
            "Search",
            [
                counts("Searches", "groundwork_retriever_searches_total", "strategy"),
                gauge("Stages, p95", quantile(0.95, "groundwork_retriever_stage_seconds", "stage"), "{{stage}}", "s"),
                gauge(
                    "Answered from memory",
                    share(rate("groundwork_retriever_cache_total", where='outcome=~"hit|semantic"'), SEARCHES),
                    "remembered",
                    "percentunit",
                ),
                gauge(
                    "Engines, p95",
                    quantile(0.95, "groundwork_retriever_engine_seconds", "engine, operation"),
                    "{{engine}} {{operation}}",
                    "s",
                ),
                counts("Calls of engines that failed", "groundwork_retriever_engine_errors_total", "engine, operation"),
                Panel(
                    "Engines",
                    [
                        (largest("groundwork_retriever_engine_up", "engine"), "{{engine}} answers"),
                        (largest("groundwork_retriever_missing_revisions", "engine"), "{{engine}} lacks documents"),
                    ],
                ),
            ],
        ),
        Row(
            "Tools",
            [
                counts("Calls", "groundwork_tool_calls_total", "tool, outcome"),
                gauge("Time, p95", quantile(0.95, "groundwork_tool_seconds", "tool"), "{{tool}}", "s"),
                counts("What models requested", "groundwork_requested_tool_calls_total", "decision"),
            ],
        ),
    ],
)
