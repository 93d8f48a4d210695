"""The run engine's own time: a step that does nothing, until its result is in the durable log and the next step may begin."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial

from bench.report import Figure, Part
from evals.samples import Samples
from evals.tables import Table
from kit.jetstream import connect
from kit.testing.nats import nats_server
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.log.events import Plan, RunMode, RunStarted
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunKey
from services.orchestrator.steps.run import Run, resolved

_REFERENCE = b"x" * 110
"""As many bytes as the event of such a step has."""
STEPS = 500
WARM_UP_STEPS = 50
TARGET_MS = 2.0
SYNCED = "always"
"""`GROUNDWORK_NATS_SYNC` as it is by default."""
POLICIES = {SYNCED: f"jetstream {{ sync_interval: {SYNCED} }}", "10s": "jetstream { sync_interval: 10s }"}


def measure() -> Part:
    """The same steps and the same bare publishes, by policy of syncing to the disk."""
    times = {policy: asyncio.run(_measure(configuration)) for policy, configuration in POLICIES.items()}
    step, publish = (Samples.of(each) for each in times[SYNCED])
    return Part(
        title="Steps of a run",
        about=(
            f"{STEPS} steps that do nothing, one after the other, each recorded in a JetStream log before the next begins; by how "
            "often the message store syncs to the disk (`GROUNDWORK_NATS_SYNC`). The reference is a bare publish of a message "
            "of the same size, acknowledged, on the same connection, in turn with the steps."
        ),
        figures=(
            Figure(
                "own time of a step incl. the durable log, ms",
                f"p50 {step.median:.2f}, p95 {step.p95:.2f}; {step.median / publish.median:.2f} of a bare publish",
                f"p50 ≤ {TARGET_MS:g}",
                step.median <= TARGET_MS,
            ),
        ),
        tables=(_table(times),),
    )


async def _measure(configuration: str) -> tuple[list[float], list[float]]:
    """Milliseconds of each step, and of each publish."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(nats_server(configuration))
        nats = await stack.enter_async_context(connect(server.url, name="bench"))
        log = await JetStreamEventLog.open(nats, retention_days=1)
        run = await _begun(log, "a" * 32)
        steps, publishes = [], []
        for number in range(WARM_UP_STEPS + STEPS):
            step = partial(resolved, Plan("hybrid", (f"query {number}",)))
            steps.append(await _timed(partial(run.once, f"step{number}", step, Plan)))
            publishes.append(await _timed(partial(nats.js.publish, "runs.bench.reference", _REFERENCE)))
    return steps[WARM_UP_STEPS:], publishes[WARM_UP_STEPS:]


async def _begun(log: JetStreamEventLog, run_id: str) -> Run:
    journal = await Journal.open(RunKey("bench", run_id), log, lambda: datetime.now(UTC))
    return await Run.begin(journal, RunStarted(RunMode.QA, "?"))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return 1000 * (time.perf_counter() - began)


def _table(times: dict[str, tuple[list[float], list[float]]]) -> Table:
    rows = []
    for policy, (step, publish) in times.items():
        for what, values in (("a step", step), ("a bare publish", publish)):
            each = Samples.of(values)
            rows.append((policy, what, f"{each.median:.2f}", f"{each.p95:.2f}", f"{each.largest:.2f}"))
    return Table(("synced", "what", "p50, ms", "p95, ms", "max, ms"), rows)
