"""More than one of a service: whether two orchestrators do twice the runs of one. Counted in processor time for each run, so that a
machine with two cores can tell: what a second process costs the first beside its own runs is what does not scale."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psutil
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.report import Figure, Part
from evals.samples import Samples
from evals.tables import Table
from kit.channel import Channel
from kit.testing.harness import (
    free_port,
    open_test_channel,
    public_keys_text,
    running_servicer,
    signing_key_text,
)
from kit.testing.nats import nats_server

SIZES = (1, 2)
RUNS, AT_ONCE, ROUNDS = 150, 8, 5
"""Runs of a round, and how many of them are asked for at once of each orchestrator."""
TARGET = 1.8
_READY_TIMEOUT_S = 60.0
_PASSAGE = (
    "The tower was built in 1889 by the company of Gustave Eiffel. It stands in Paris, and is 330 metres high. Nobody expected it "
    "to stay for longer than twenty years."
)


class _Passages(retriever_pb2_grpc.RetrieverServiceServicer):
    """Finds the same passages for every question."""

    async def Search(self, *_: object) -> retriever_pb2.SearchResponse:  # noqa: N802 - the contract's name
        return retriever_pb2.SearchResponse(
            strategy=retriever_pb2.STRATEGY_HYBRID, hits=[_hit(number) for number in range(1, 6)]
        )


class _Scores(reranker_pb2_grpc.RerankerServiceServicer):
    """Likes every sentence a little less than the one before."""

    async def Rerank(  # noqa: N802 - the contract's name
        self, request: reranker_pb2.RerankRequest, _: object
    ) -> reranker_pb2.RerankResponse:
        return reranker_pb2.RerankResponse(scores=[0.9 / (1 + place) for place in range(len(request.passages))])


def _hit(number: int) -> retriever_pb2.Hit:
    chunk = retriever_pb2.Chunk(
        chunk_id=f"c{number}", document_id=f"d{number}", document_name=f"tower-{number}.txt", text=_PASSAGE
    )
    return retriever_pb2.Hit(chunk=chunk, score=1 / number, dense_score=0.8 / number)


@dataclass(frozen=True)
class _Orchestrators:
    """Several processes over a message store of their own, and a channel to each."""

    processes: Sequence[psutil.Process]
    channels: Sequence[Channel]

    def cpu_s(self) -> float:
        """User and system time of all of them together."""
        return sum(times.user + times.system for times in (each.cpu_times() for each in self.processes))


@dataclass(frozen=True)
class _Round:
    """Of one run."""

    cpu_ms: float
    wall_ms: float


def measure() -> Part:
    """One orchestrator and two, in turn; the two have a message store of their own."""
    rounds = asyncio.run(_measure())
    cpu = {size: Samples.of([each.cpu_ms for each in rounds[size]]) for size in SIZES}
    wall = {size: Samples.of([each.wall_ms for each in rounds[size]]) for size in SIZES}
    ratio = 2 * cpu[1].median / cpu[2].median
    return Part(
        title="More than one orchestrator",
        about=(
            f"{ROUNDS} rounds of {RUNS} runs for each orchestrator, {AT_ONCE} at a time, asked of one and of two in turn. "
            "Retriever and model server are stand-ins, so that the time is the orchestrators' own. Each run is started at one and "
            "followed at the next, as behind a gateway that shares calls out. A processor's second does so many runs; two "
            "processes have two of them, if there are the cores."
        ),
        figures=(
            Figure(
                "runs of two orchestrators / of one, by processor time for each run",
                f"{ratio:.2f}",
                f"≥ {TARGET}",
                ratio >= TARGET,
            ),
            Figure(
                f"the same by the clock, on {os.cpu_count()} cores shared with store, stand-ins and client",
                f"{wall[1].median / wall[2].median:.2f}",
            ),
        ),
        tables=(_table(cpu, wall),),
    )


def _table(cpu: dict[int, Samples], wall: dict[int, Samples]) -> Table:
    rows = [(str(size), cpu[size].spread(), wall[size].spread()) for size in SIZES]
    return Table(("orchestrators", "processor time of a run, ms", "time of the clock for each run, ms"), rows)


async def _measure() -> dict[int, list[_Round]]:
    rounds: dict[int, list[_Round]] = {size: [] for size in SIZES}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        passages, scores = _Passages(), _Scores()  # type: ignore[abstract] # they are asked for nothing else
        retriever = await enter(running_servicer(retriever_pb2_grpc.add_RetrieverServiceServicer_to_server, passages))
        reranker = await enter(running_servicer(reranker_pb2_grpc.add_RerankerServiceServicer_to_server, scores))
        systems = {size: await enter(_running(size, retriever, reranker)) for size in SIZES}
        for system in systems.values():
            await _round(system)  # warms up
        for _ in range(ROUNDS):
            for size, system in systems.items():
                rounds[size].append(await _round(system))
    return rounds


@asynccontextmanager
async def _running(size: int, retriever: str, reranker: str) -> AsyncIterator[_Orchestrators]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(nats_server())
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(size)]
        processes = [
            await stack.enter_async_context(_process(address, server.url, retriever, reranker)) for address in addresses
        ]
        channels = [await stack.enter_async_context(open_test_channel(address)) for address in addresses]
        for channel in channels:
            await _until_serving(channel)
        yield _Orchestrators(processes, channels)


@asynccontextmanager
async def _process(address: str, nats_url: str, retriever: str, reranker: str) -> AsyncIterator[psutil.Process]:
    settings = {
        "GROUNDWORK_GRPC_ADDRESS": address,
        "GROUNDWORK_NATS_URL": nats_url,
        "GROUNDWORK_RETRIEVER_ADDRESS": retriever,
        "GROUNDWORK_RERANKER_ADDRESS": reranker,
        "GROUNDWORK_AUTH_SIGNING_KEY": signing_key_text(),
        "GROUNDWORK_AUTH_PUBLIC_KEYS": public_keys_text(),
        "GROUNDWORK_LOG_LEVEL": "ERROR",
    }
    command = (sys.executable, "-m", "services.orchestrator")
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **settings})
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.wait()


async def _until_serving(channel: Channel) -> None:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    async with asyncio.timeout(_READY_TIMEOUT_S):
        while True:
            try:
                answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
            except Exception:  # it is starting
                await asyncio.sleep(0.1)
            else:
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return


async def _round(system: _Orchestrators) -> _Round:
    """`RUNS` for each orchestrator."""
    runs = RUNS * len(system.channels)
    slots = asyncio.Semaphore(AT_ONCE * len(system.channels))

    async def one(number: int) -> None:
        async with slots:
            await _ask(system.channels, number)

    cpu_s, began = system.cpu_s(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(runs):
            group.create_task(one(number))
    return _Round(1000 * (system.cpu_s() - cpu_s) / runs, 1000 * (time.perf_counter() - began) / runs)


async def _ask(channels: Sequence[Channel], number: int) -> None:
    """A run, started at one orchestrator; its client goes on at the next after the first event, as after a lost connection."""
    starts, follows = (rpc.OrchestratorServiceStub(channels[(number + step) % len(channels)]) for step in (0, 1))
    request = pb.StartRunRequest(mode=pb.RUN_MODE_QA, question="When was the tower built?", collection_ids=["default"])
    async for first in starts.StartRun(request, timeout=_READY_TIMEOUT_S):
        run_id = first.event.run_id
        break
    events = follows.AttachRun(pb.AttachRunRequest(run_id=run_id, after_seq=1), timeout=_READY_TIMEOUT_S)
    async for answer in events:
        last = answer.event
    if last.WhichOneof("payload") != "done":
        raise RuntimeError(f"run {run_id} ended with {last}")
