"""Research's own time besides model and search: effort, plan, rounds and coverage over a search that answers at once, each step in
the durable log before the next begins."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, cast

from bench.report import Figure, Part
from bench.runs.steps import SYNCED
from evals.samples import Samples
from evals.tables import Table
from kit.jetstream import connect
from kit.llm import ModelInfo, Operation
from kit.stores.forgetting import Source
from kit.testing.nats import nats_server
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.log.events import Budgets, Evidence, Retrieval, RunMode, RunStarted, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Dependent, ResearchOptions, RunKey, RunRecord, RunRequest, SearchQuery
from services.orchestrator.research.steps import ResearchServices, ResearchSteps
from services.orchestrator.steps.run import Run
from services.orchestrator.verification.checks import Checks

WARM_UP_RUNS, RUNS = 5, 40
TARGET_MS = 5.0
QUESTION = "Where was the director of The Iron Harbour born, and who is older, Tom Barrow or Edda Lindqvist?"
EFFORTS = ("low", "medium", "high")
_TEXTS = {
    "The Iron Harbour": "The Iron Harbour is a 1931 drama film directed by Edda Lindqvist. It stars Paul Marsh and Ida Crane.",
    "Edda Lindqvist": "Edda Lindqvist was a Swedish film director.",
    "Tom Barrow": "Tom Barrow was a British director of comedies.",
    **{f"Harbour {number}": f"Harbour {number} of iron was built in a town by a founder." for number in range(5)},
}


def measure() -> Part:
    """Each effort in turn."""
    times = {effort: asyncio.run(_step_times(effort)) for effort in EFFORTS}
    samples = {effort: Samples.of(each) for effort, each in times.items()}
    worst = max(samples.values(), key=lambda each: each.median)
    rows = [
        (effort, f"{each.median:.2f}", f"{each.p95:.2f}", f"{each.largest:.2f}") for effort, each in samples.items()
    ]
    return Part(
        title="Research",
        about=(
            f"{RUNS} runs of each effort without a model, up to their evidence. The search answers at once with eight passages, in "
            "process: what is left is planning, following names, fusing, measuring the coverage, and the log, synced to the disk "
            f"(`GROUNDWORK_NATS_SYNC={SYNCED}`). The time of a step is the time of its run divided by the number of recorded steps."
        ),
        figures=(
            Figure(
                "own time of a research step incl. the durable log, ms",
                f"p50 {worst.median:.2f}, p95 {worst.p95:.2f}",
                f"p50 < {TARGET_MS:g}",
                worst.median < TARGET_MS,
            ),
        ),
        tables=(Table(("effort", "a step p50, ms", "p95, ms", "max, ms"), rows),),
    )


async def _step_times(effort: str) -> list[float]:
    """Milliseconds a step, of each run."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(nats_server(f"jetstream {{ sync_interval: {SYNCED} }}"))
        nats = await stack.enter_async_context(connect(server.url, name="bench"))
        log = await JetStreamEventLog.open(nats, retention_days=1)
        return [await _step_time(log, effort, number) for number in range(WARM_UP_RUNS + RUNS)][WARM_UP_RUNS:]


async def _step_time(log: JetStreamEventLog, effort: str, number: int) -> float:
    key = RunKey("bench", f"{number:032x}")
    request = RunRequest(RunMode.AGENT, QUESTION, ("default",), research=ResearchOptions(effort))
    record = RunRecord(key, "bench", request, RunStatus.RUNNING, datetime.now(UTC))
    began = time.perf_counter()
    journal = await Journal.open(key, log, lambda: datetime.now(UTC))
    run = await Run.begin(journal, RunStarted(RunMode.AGENT, QUESTION, budgets=Budgets(wall_clock_s=60.0)))
    steps = ResearchSteps(_services(), run, record)
    await steps.search_in_rounds(await steps.task(QUESTION, ()))
    took_ms = 1000 * (time.perf_counter() - began)
    await run.end(RunStatus.COMPLETED)
    return took_ms / len(journal.progress.results)


def _services() -> ResearchServices:
    """Without a model; what no step up to the evidence asks is not there."""
    nothing = cast("Any", None)
    return ResearchServices(
        _Search(), cast("Any", _Sources()), nothing, nothing, _NoModel(), Checks(), nothing, nothing
    )


class _Search:
    """Finds the same passages, whatever is asked."""

    async def search(self, query: SearchQuery) -> Retrieval:
        found = tuple(
            Evidence(number, f"c{number}", f"d{number}", f"{title}.md", text, heading_path=(title,), score=1.0 / number)
            for number, (title, text) in enumerate(_TEXTS.items(), start=1)
        )
        return Retrieval(found[: query.top_k], strategy="hybrid")


class _Sources:
    """Nothing was deleted."""

    async def depend(self, _: Dependent, __: Sequence[Source]) -> frozenset[Source]:
        return frozenset()


class _NoModel:
    """Nobody plans but the rules."""

    def info(self, _: Operation) -> ModelInfo:
        return ModelInfo("", "", 4096)

    async def count_tokens(self, *_: object) -> Sequence[int]:
        raise AssertionError("there is no model")

    def complete(self, *_: object) -> Any:
        raise AssertionError("there is no model")
