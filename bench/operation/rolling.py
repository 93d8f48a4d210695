"""A rolling restart under traffic: what it costs those who use the system meanwhile. No request may fail."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.operation.traffic import Tally, lost_uploads, traffic
from bench.report import Figure, Part
from evals.samples import Samples
from evals.system import RunningSystem, running_system, system_environment
from evals.tables import Table

REPLICAS = "orchestrator=3,gateway=2,ingest-worker=3,ingest=2,memory=2,tools=2,reranker=2"
REQUESTS = 2_000
COLLECTION = "rolling"
_FAILURES_SHOWN = 10


def measure() -> Part:
    """All services restarted in turn, again and again, until enough requests were made; and as many requests without that."""
    with running_system(settings={"GROUNDWORK_REPLICAS": REPLICAS}) as system:
        tally, lost, rounds = asyncio.run(_restarting(system))
        memory_mib = sum(process.memory_info().rss for _, process in system.processes()) / 2**20
        calm, _ = asyncio.run(used(system.url, "calm", lambda tally: _until(tally, REQUESTS // 4)))
    restarted, still = Samples.of(tally.seconds), Samples.of(calm.seconds)
    return Part(
        title="Rolling restart",
        about=(
            f"`groundwork up --replicas {REPLICAS}`. Two ask (answers in one piece and event streams in turn) and two upload, each "
            "one request after the other, one of the two over a connection that is kept, one over a fresh one each time; nobody "
            f"tries anything again. Meanwhile `groundwork restart` restarts every process but NATS, one after the other, {rounds} "
            "times. The reference is the same traffic on the same system afterwards, when nothing is restarted."
        ),
        figures=(
            Figure(
                f"failed of {tally.requests} requests while every service is restarted in turn",
                str(len(tally.failures)),
                "0",
                not tally.failures and tally.requests >= REQUESTS,
            ),
            Figure(f"lost of {len(tally.uploads)} acknowledged uploads", str(len(lost)), "0", not lost),
            Figure("answers without a part of the system", f"{tally.degraded} of {tally.answers}"),
            Figure(
                "request, median while restarting / without",
                f"{restarted.median / still.median:.2f} (p95 {restarted.p95 / still.p95:.2f})",
            ),
            Figure("longest request, s", f"{restarted.largest:.1f} (without: {still.largest:.1f})"),
            Figure("resident memory of all processes, MiB", f"{memory_mib:.0f}"),
        ),
        tables=_failures([*tally.failures, *lost]),
    )


async def _restarting(system: RunningSystem) -> tuple[Tally, list[str], int]:
    rounds = 0

    async def meanwhile(tally: Tally) -> None:
        nonlocal rounds
        while not rounds or tally.requests < REQUESTS:
            await run_command(system.url, system.data_dir, "restart")
            rounds += 1

    tally, lost = await used(system.url, COLLECTION, meanwhile)
    return tally, lost, rounds


async def used(url: str, collection_id: str, meanwhile: Callable[[Tally], Awaitable[None]]) -> tuple[Tally, list[str]]:
    """Traffic while something is done; what became of it, and the uploads that were lost."""
    async with traffic(url, collection_id) as tally:
        await meanwhile(tally)
    return tally, await lost_uploads(url, collection_id, tally)


async def run_command(url: str, data_dir: Path, *arguments: str) -> str:
    """What `groundwork …` printed. Raises RuntimeError with it when that failed."""
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("groundwork"),
        *arguments,
        env=system_environment(data_dir, int(url.rpartition(":")[2])),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(said.decode())
    return said.decode()


async def _until(tally: Tally, requests: int) -> None:
    while tally.requests < requests:  # noqa: ASYNC110 - the tally offers no event, and is not timed by this
        await asyncio.sleep(0.1)


def _failures(failures: list[str]) -> tuple[Table, ...]:
    if not failures:
        return ()
    return (Table(("what failed",), [(each[:300],) for each in failures[:_FAILURES_SHOWN]]),)
