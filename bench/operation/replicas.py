"""More than one of a service: whether two orchestrators do twice the runs of one. Counted in processor time for each run, so that a
machine with two cores can tell: what a second process costs the first beside its own runs is what does not scale."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import psutil
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2_grpc as rpc
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from grpc_health.v1 import health_pb2

from bench.report import Figure, Part
from evals.samples import Samples
from evals.tables import Table
from kit.rpc.calls import health_stub
from kit.rpc.channel import Channel
from kit.testing.harness import (
    free_port,
    open_test_channel,
    public_keys_text,
    running_servicer,
    signing_key_text,
)
from kit.testing.nats import nats_server

SIZES = (1, 2)
RUNS, AT_ONCE, ROUNDS = 60, 8, 7
"""Runs of a round, and how many of them are asked for at once of each orchestrator."""
TARGET = 1.8
_READY_TIMEOUT_S = 60.0
_QUESTION = pb.StartRunRequest(mode=pb.RUN_MODE_QA, question="When was the tower built?", collection_ids=["default"])
_IN_TURN, _TOGETHER, _FOLLOWED = _WAYS = ("one by one", "together", "followed on the next")
_Way = tuple[int, str]
"""How many orchestrators, and what is done with their runs."""
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
    cpu = {way: Samples.of([each.cpu_ms for each in rounds[way]]) for way in rounds}
    wall = {way: Samples.of([each.wall_ms for each in rounds[way]]) for way in rounds}
    ratio = Samples.of([2 * one.cpu_ms / two.cpu_ms for one, two in _pairs(rounds, _IN_TURN)])
    premium = Samples.of([two.cpu_ms / one.cpu_ms for one, two in _pairs(rounds, _FOLLOWED)])
    by_clock = Samples.of([one.wall_ms / two.wall_ms for one, two in _pairs(rounds, _TOGETHER)])
    return Part(
        title="More than one orchestrator",
        about=(
            f"{ROUNDS} rounds of {RUNS} runs for each orchestrator, {AT_ONCE} at a time, asked of one and of two in turn. "
            "Retriever and model server are stand-ins, so that the time is the orchestrators' own. Two processes have two "
            "seconds of a processor in which one has one, if there are the cores: what they do in them is compared, round by "
            "round. Of the two first one is asked and then the other, since processes that work at the same time on few cores slow "
            "one another down; by the clock both are asked together. The client of a run that is followed lets go after the first "
            "event and goes on at the next orchestrator."
        ),
        figures=(
            Figure(
                "runs of two orchestrators / of one, by processor time for each run",
                ratio.spread(2),
                f"≥ {TARGET}",
                ratio.median >= TARGET,
            ),
            Figure(
                f"the same by the clock, on {os.cpu_count()} cores shared with store, stand-ins and client",
                by_clock.spread(2),
            ),
            Figure(
                "processor time of a run that is followed on another orchestrator / on its own",
                premium.spread(2),
            ),
        ),
        tables=(_table(cpu, wall),),
    )


def _pairs(rounds: "dict[_Way, list[_Round]]", how: str) -> "zip[tuple[_Round, _Round]]":
    """Rounds of one orchestrator and of two that followed one another: what else the machine did met both."""
    return zip(rounds[1, how], rounds[2, how], strict=True)


def _table(cpu: dict[_Way, Samples], wall: dict[_Way, Samples]) -> Table:
    rows = [(str(size), how, cpu[size, how].spread(), wall[size, how].spread()) for size, how in cpu]
    return Table(("orchestrators", "asked", "processor time of a run, ms", "time of the clock for each run, ms"), rows)


async def _measure() -> dict[_Way, list[_Round]]:
    rounds: dict[_Way, list[_Round]] = {(size, how): [] for how in _WAYS for size in SIZES}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        passages, scores = _Passages(), _Scores()  # type: ignore[abstract] # they are asked for nothing else
        retriever = await enter(running_servicer(retriever_pb2_grpc.add_RetrieverServiceServicer_to_server, passages))
        reranker = await enter(running_servicer(reranker_pb2_grpc.add_RerankerServiceServicer_to_server, scores))
        systems = {size: await enter(_running(size, retriever, reranker)) for size in SIZES}
        for system in systems.values():
            await _round(system, _FOLLOWED)  # warms up
        for _ in range(ROUNDS):
            for (size, how), measured in rounds.items():
                measured.append(await _round(systems[size], how))
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
    stub = health_stub(channel)
    async with asyncio.timeout(_READY_TIMEOUT_S):
        while True:
            try:
                answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
            except Exception:  # it is starting
                await asyncio.sleep(0.1)
            else:
                if answer.status == health_pb2.HealthCheckResponse.SERVING:
                    return


async def _round(system: _Orchestrators, how: str) -> _Round:
    """`RUNS` for each orchestrator."""
    cpu_s, began = system.cpu_s(), time.perf_counter()
    count = len(system.channels)
    if how == _IN_TURN:
        for channel in system.channels:
            await _many([channel], _asked, RUNS)
    else:
        await _many(system.channels, _asked if how == _TOGETHER else _followed, RUNS * count)
    runs = RUNS * count
    return _Round(1000 * (system.cpu_s() - cpu_s) / runs, 1000 * (time.perf_counter() - began) / runs)


async def _many(
    channels: Sequence[Channel], ask: Callable[[Sequence[Channel], int], Awaitable[None]], runs: int
) -> None:
    slots = asyncio.Semaphore(AT_ONCE * len(channels))

    async def one(number: int) -> None:
        async with slots:
            await ask(channels, number)

    async with asyncio.TaskGroup() as group:
        for number in range(runs):
            group.create_task(one(number))


async def _asked(channels: Sequence[Channel], number: int) -> None:
    """A run, from its first event to its last."""
    stub = rpc.OrchestratorServiceStub(channels[number % len(channels)])
    async for answer in stub.StartRun(_QUESTION, timeout=_READY_TIMEOUT_S):
        last = answer.event
    _check_ended(last)


async def _followed(channels: Sequence[Channel], number: int) -> None:
    """A run whose client goes on at the next orchestrator after the first event, as after a lost connection."""
    starts, follows = (rpc.OrchestratorServiceStub(channels[(number + step) % len(channels)]) for step in (0, 1))
    async for first in starts.StartRun(_QUESTION, timeout=_READY_TIMEOUT_S):
        run_id = first.event.run_id
        break
    events = follows.AttachRun(pb.AttachRunRequest(run_id=run_id, after_seq=1), timeout=_READY_TIMEOUT_S)
    async for answer in events:
        last = answer.event
    _check_ended(last)


def _check_ended(last: pb.RunEvent) -> None:
    if last.WhichOneof("payload") != "done":
        raise RuntimeError(f"run {last.run_id} ended with {last}")
