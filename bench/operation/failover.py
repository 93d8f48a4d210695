"""The loss of a NATS server of three: how long a write waits when the leader of its stream is told to stop, or is killed."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from structlog.testing import capture_logs

from bench.report import Figure, Part
from evals.tables import Table
from kit.access.principal import Principal, use_principal
from kit.errors import GroundworkError
from kit.jetstream import KeyValue, Nats, WorkQueue, connect
from kit.state import Queue
from kit.testing.harness import make_signer, make_verifier
from kit.testing.nats_cluster import NatsCluster, nats_cluster
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.log.events import RunEvent, Token
from services.orchestrator.models import RunKey
from services.orchestrator.state import RUNS

ROUNDS = 3
LONGEST_TARGET_S = 3.0
PAUSE_S = 0.01
ACTS = 200
"""Of each writer, at least, before a fault and after it: two seconds."""
_QUEUE = Queue("WORK", "work")
_BUCKET = "THINGS"
_WHO = Principal("bench", "bench")

Act = Callable[[int], Awaitable[object]]


@dataclass
class Writer:
    """Writes again and again, and notes how long each write took."""

    name: str
    stream: str
    act: Act
    waits_s: list[float] = field(default_factory=list)
    failed: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        number = 0
        while True:
            began = time.perf_counter()
            try:
                await self.act(number)
            except GroundworkError:
                self.failed += 1
            self.waits_s.append(time.perf_counter() - began)
            number += 1
            self.news.set()
            await asyncio.sleep(PAUSE_S)

    async def has_done(self, more: int) -> None:
        goal = len(self.waits_s) + more
        while len(self.waits_s) < goal:
            self.news.clear()
            await self.news.wait()


@dataclass(frozen=True)
class Loss:
    """What a fault of the server that leads a writer's stream cost the writer."""

    longest_s: float
    p99_s: float
    failed: int
    writes: int


def measure() -> Part:
    """Each stream's leader in turn, told to stop and killed."""
    with capture_logs():  # every question that is asked again
        losses = asyncio.run(_measure())
    rows = [
        (name, fault, f"{loss.longest_s:.1f}", f"{loss.p99_s:.2f}", f"{loss.failed} of {loss.writes}")
        for (name, fault), loss in losses.items()
    ]
    killed = max(loss.longest_s for (_, fault), loss in losses.items() if fault == "killed")
    failed = sum(loss.failed for loss in losses.values())
    stopped = max(loss.longest_s for (_, fault), loss in losses.items() if fault == "stopped")
    return Part(
        title="Loss of a NATS server",
        about=(
            f"Three NATS servers on this machine, everything kept on all of them; three writers, {1 / PAUSE_S:.0f} writes a second "
            f"each at most. The server that leads a writer's stream is told to stop (SIGTERM) or killed (SIGKILL), {ROUNDS} times. "
            "A NATS cluster takes 4 to 9 s to notice that a leader was killed; that is fixed in the server."
        ),
        figures=(
            _figure("longest wait of a write, NATS server told to stop, s", stopped, LONGEST_TARGET_S),
            _figure("longest wait of a write, NATS server killed, s", killed, LONGEST_TARGET_S),
            _figure("failed writes when a NATS server is lost", failed, 0),
        ),
        tables=(Table(("write", "its leader is", "longest, s", "p99, s", "failed"), rows),),
    )


def _figure(name: str, measured: float, target: float) -> Figure:
    return Figure(name, f"{measured:.2g}", f"<= {target:g}", measured <= target)


async def _measure() -> dict[tuple[str, str], Loss]:
    found = {}
    async with nats_cluster() as cluster, _writing(cluster) as writers:
        for fault in ("stopped", "killed"):
            for writer in writers:
                found[writer.name, fault] = await _lost(cluster, writers, writer, kill=fault == "killed")
    return found


async def _lost(cluster: NatsCluster, writers: Sequence[Writer], writer: Writer, *, kill: bool) -> Loss:
    waits: list[float] = []
    failed = writer.failed
    for _ in range(ROUNDS):
        await _all_have_done(writers, ACTS)
        leader = await cluster.stream_leader(writer.stream)
        start = len(writer.waits_s)
        await leader.stop(kill=kill)
        await _all_have_done(writers, ACTS)
        waits += writer.waits_s[start:]
        await leader.start()
        await cluster.until_whole()
    waits.sort()
    return Loss(waits[-1], waits[int(len(waits) * 0.99)], writer.failed - failed, len(waits))


async def _all_have_done(writers: Sequence[Writer], more: int) -> None:
    await asyncio.gather(*(writer.has_done(more) for writer in writers))


@asynccontextmanager
async def _writing(cluster: NatsCluster) -> AsyncIterator[Sequence[Writer]]:
    async with AsyncExitStack() as stack:

        async def connected(number: int) -> Nats:
            return await stack.enter_async_context(
                connect(cluster.nodes[number].url, name=f"bench-{number}", replicas=len(cluster.nodes))
            )

        bucket = await KeyValue.open(await connected(0), _BUCKET)
        log = await JetStreamEventLog.open(await connected(1), retention_days=1.0)
        queue = await WorkQueue.open(await connected(2), _QUEUE, make_signer(), make_verifier())
        writers = (
            Writer("key-value entry", f"KV_{_BUCKET}", lambda number: bucket.put(f"a.{number % 100}", b"value")),
            Writer("event of a run", RUNS.stream, _Appending(log).append),
            Writer("job", _QUEUE.stream, lambda number: _queued(queue, number)),
        )
        tasks = [asyncio.create_task(writer.run()) for writer in writers]
        try:
            yield writers
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class _Appending:
    log: JetStreamEventLog
    position: int = 0

    async def append(self, number: int) -> None:
        event = RunEvent("r1", number + 1, datetime.now(UTC), Token("about twenty characters ", number))
        self.position = await self.log.append(RunKey("bench", "r1"), event, self.position)


async def _queued(queue: WorkQueue, number: int) -> None:
    with use_principal(_WHO):
        await queue.publish(f"bench.{number}", b"job", job_id=f"j{number}")
