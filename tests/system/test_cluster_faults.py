"""Nodes of a real NATS cluster are killed, frozen and cut off under load: nothing acknowledged is lost or doubled, each name has
one owner, and everybody goes on by himself. What fails for lack of an answer may have happened, but no more than once."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from kit.access.principal import Principal, use_principal
from kit.errors import Aborted, AlreadyExists, GroundworkError, Unavailable
from kit.jetstream import Job, KeyValue, Nats, ObjectStore, WorkQueue, connect
from kit.jetstream.objects import PIECE_BYTES
from kit.state import Queue
from kit.testing.harness import make_signer, make_verifier
from kit.testing.nats_cluster import ClusterNode, NatsCluster, nats_cluster
from services.orchestrator.adapters.jetstream.event_log import JetStreamEventLog
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import RunEvent, Token
from services.orchestrator.models import RunKey
from services.orchestrator.state import RUNS

QUEUE = Queue("WORK", "work", backoff_s=(0.01,))
ANN = Principal("acme", "ann")
PROGRESS = 5
"""Acknowledged acts of each writer before, during and after a fault."""
PAUSE_S = 0.01
"""Between two acts: the load is steady, and leaves the processor to the servers."""


class Writer(Protocol):
    """Acts again and again, and knows what was acknowledged."""

    done: int

    async def act(self, number: int) -> None: ...

    async def check(self, nats: Nats) -> None: ...


@dataclass
class RunWriter:
    """One of the two who write the same run: each takes over where the log ends."""

    log: JetStreamEventLog
    key: RunKey
    name: str
    done: int = 0
    written: list[str] = field(default_factory=list)
    place: tuple[int, int] | None = None
    """Count of events and position of the last one, as far as known."""

    async def act(self, number: int) -> None:
        if self.place is None:
            events, position = await self.log.read(self.key)
            self.place = len(events), position
        seq, position = self.place
        self.place = None
        event = RunEvent(self.key.run_id, seq + 1, datetime.now(UTC), Token(f"{self.name}{number}", seq))
        with suppress(FencedOff):
            self.place = seq + 1, await self.log.append(self.key, event, position)
            self.written.append(f"{self.name}{number}")
            self.done += 1

    async def check(self, nats: Nats) -> None:
        events, _ = await JetStreamEventLog(nats).read(self.key)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        texts = [event.payload.text for event in events if isinstance(event.payload, Token)]
        assert len(set(texts)) == len(texts)
        own = [text for text in texts if text.startswith(self.name)]
        assert [text for text in own if text in set(self.written)] == self.written


@dataclass
class Counting:
    """One of those who count a number up by compare-and-set."""

    bucket: KeyValue
    name: str
    done: int = 0
    acknowledged: set[str] = field(default_factory=set)

    async def act(self, number: int) -> None:
        entry = await self.bucket.get("shared")
        mark = f"{self.name}{number}"
        with suppress(Aborted, AlreadyExists):
            if entry is None:
                await self.bucket.create("shared", mark.encode())
            else:
                await self.bucket.update("shared", b"%b %b" % (entry.value, mark.encode()), entry.revision)
            self.acknowledged.add(mark)
            self.done += 1

    async def check(self, nats: Nats) -> None:
        entry = await KeyValue(nats, "COUNTS").get("shared")
        assert entry is not None
        marks = (entry.value or b"").decode().split()
        assert len(set(marks)) == len(marks)
        assert self.acknowledged <= set(marks)


@dataclass
class Claiming:
    """One of those who want the same names."""

    bucket: KeyValue
    name: str
    done: int = 0
    outcomes: dict[str, str] = field(default_factory=dict)
    """By name: whose it is, as we were told."""

    async def act(self, number: int) -> None:
        key = f"names.{number}"
        try:
            await self.bucket.create(key, self.name.encode())
            self.outcomes[key] = self.name
        except AlreadyExists:
            entry = await self.bucket.get(key)
            if entry is not None:  # else the other's claim was not stored after all
                self.outcomes[key] = (entry.value or b"").decode()
        self.done += 1

    async def check(self, nats: Nats) -> None:
        stored = {entry.key: (entry.value or b"").decode() async for entry in KeyValue(nats, "CLAIMS").entries(">")}
        assert self.outcomes.items() <= stored.items()


@dataclass
class Uploading:
    """Stores files of several pieces, and reads each over another server as soon as it is told that it is stored."""

    store: ObjectStore
    elsewhere: ObjectStore
    folder: Path
    done: int = 0
    digests: dict[str, str] = field(default_factory=dict)

    async def act(self, number: int) -> None:
        pieces = [bytes([number % 256]) * PIECE_BYTES, b"the end"]

        async def given() -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        await self.store.put(f"file {number}", given())
        self.digests[f"file {number}"] = digest = hashlib.sha256(b"".join(pieces)).hexdigest()
        assert await self.elsewhere.get_to_file(f"file {number}", self.folder / "read") == digest
        self.done += 1

    async def check(self, nats: Nats) -> None:
        store = ObjectStore(nats, "FILES")
        assert {entry.name async for entry in store.entries()} >= self.digests.keys()
        for name, digest in self.digests.items():
            assert await store.get_to_file(name, self.folder / "read") == digest


@dataclass
class Queueing:
    """Queues jobs, which a worker on another server does."""

    queue: WorkQueue
    handled: set[str]
    done: int = 0
    queued: set[str] = field(default_factory=set)

    async def act(self, number: int) -> None:
        with use_principal(ANN):
            await self.queue.publish(f"acme.{number}", b"job", job_id=f"j{number}")
        self.queued.add(f"j{number}")
        self.done += 1

    async def check(self, nats: Nats) -> None:
        queue = WorkQueue(nats, QUEUE, make_signer(), make_verifier())
        while await queue.pending():
            await asyncio.sleep(PAUSE_S)
        assert self.queued <= self.handled


class Load:
    """Everybody who works while nodes fail, each connected to a server of his own choice."""

    def __init__(self, cluster: NatsCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._progress = asyncio.Event()
        self.writers: list[Writer] = []
        self.handled: set[str] = set()
        self.seen: dict[str, bytes] = {}
        """What a follower of the claims has seen."""

    async def __aenter__(self) -> "Load":
        first, second, third = [await self._connected(node) for node in self._cluster.nodes]
        logs = [await JetStreamEventLog.open(nats, retention_days=1.0) for nats in (first, second)]
        counts = [await KeyValue.open(nats, "COUNTS") for nats in (first, second, third)]
        claims = [await KeyValue.open(nats, "CLAIMS") for nats in (second, third)]
        files = [await ObjectStore.open(nats, "FILES") for nats in (third, first)]
        queues = [await WorkQueue.open(nats, QUEUE, make_signer(), make_verifier()) for nats in (first, third)]
        self.writers = [
            *(RunWriter(log, RunKey("acme", "r1"), name) for log, name in zip(logs, "ab", strict=True)),
            *(Counting(bucket, name) for bucket, name in zip(counts, "abc", strict=True)),
            *(Claiming(bucket, name) for bucket, name in zip(claims, "ab", strict=True)),
            Uploading(files[0], files[1], self._folder),
            Queueing(queues[0], self.handled),
        ]
        loops = [self._write(writer) for writer in self.writers]
        self._tasks = [
            asyncio.create_task(each)
            for each in (*loops, self._follow(claims[0]), queues[1].consume(self._handle, concurrency=2))
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end(self._tasks)
        await self._stack.aclose()

    async def progress(self) -> None:
        """Returns when every writer has been acknowledged some more."""
        wanted = [writer.done + PROGRESS for writer in self.writers]
        while any(writer.done < done for writer, done in zip(self.writers, wanted, strict=True)):
            self._progress.clear()
            await self._progress.wait()
            for task in self._tasks:
                if task.done():
                    task.result()

    async def check(self) -> None:
        """Everybody stops; what was acknowledged is there, once."""
        await self._end(self._tasks[: len(self.writers)])
        async with connect(self._cluster.url, name="check", replicas=3) as nats:
            for writer in self.writers:
                await writer.check(nats)
            stored = {entry.key: entry.value async for entry in KeyValue(nats, "CLAIMS").entries(">")}
            while self.seen != stored:
                self._progress.clear()
                await self._progress.wait()

    async def _connected(self, node: ClusterNode) -> Nats:
        # The server tells the client of the others.
        return await self._stack.enter_async_context(connect(node.url, name=node.name, replicas=3))

    async def _write(self, writer: Writer) -> None:
        for number in count():
            with suppress(Unavailable):  # it may or may not have happened
                await writer.act(number)
            self._progress.set()
            await asyncio.sleep(PAUSE_S)

    async def _follow(self, claims: KeyValue) -> None:
        async with aclosing(claims.watch()) as entries:
            async for entry in entries:
                if entry is not None:
                    self.seen[entry.key] = entry.value or b""
                    self._progress.set()

    async def _handle(self, job: Job) -> None:
        self.handled.add(job.job_id)

    async def _end(self, tasks: Sequence["asyncio.Task[None]"]) -> None:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception) and not isinstance(result, GroundworkError):
                raise result


Act = Callable[[NatsCluster, ClusterNode], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    name: str
    begin: Act
    end: Act


async def kill(_: NatsCluster, node: ClusterNode) -> None:
    await node.stop(kill=True)


async def stop(_: NatsCluster, node: ClusterNode) -> None:
    await node.stop()


async def start(_: NatsCluster, node: ClusterNode) -> None:
    await node.start()


async def freeze(_: NatsCluster, node: ClusterNode) -> None:
    node.freeze()


async def thaw(_: NatsCluster, node: ClusterNode) -> None:
    node.thaw()


async def cut_off(cluster: NatsCluster, node: ClusterNode) -> None:
    cluster.cut_off(node)


async def mend(cluster: NatsCluster, _: ClusterNode) -> None:
    cluster.mend()


FAULTS = (
    Fault("stopped", stop, start),
    Fault("killed", kill, start),
    Fault("frozen", freeze, thaw),
    Fault("cut off", cut_off, mend),
)


@pytest.fixture
async def cluster() -> AsyncIterator[NatsCluster]:
    async with nats_cluster() as running:
        yield running


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_leader_fails_under_load_and_nothing_acknowledged_is_lost_or_doubled(
    cluster: NatsCluster, fault: Fault, tmp_path: Path
) -> None:
    async with Load(cluster, tmp_path) as load:
        await load.progress()
        leader = await cluster.stream_leader(RUNS.stream)
        await fault.begin(cluster, leader)
        await load.progress()
        await fault.end(cluster, leader)
        await cluster.until_whole()
        await load.progress()
        await load.check()


async def test_each_node_is_killed_in_turn_under_load(cluster: NatsCluster, tmp_path: Path) -> None:
    async with Load(cluster, tmp_path) as load:
        await load.progress()
        for node in cluster.nodes:
            await node.stop(kill=True)
            await load.progress()
            await node.start()
            await cluster.until_whole()
        await load.check()
