"""The longest stall: how late the services answer while documents are being ingested. Index building, merges, commits and parsing
must not hold up anybody for long."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
from grpc_health.v1 import health_pb2

from bench.corpus import make_documents, make_queries
from bench.filling import COLLECTION, fill
from bench.report import Figure, Part
from bench.uploading import ingest
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table
from kit.rpc.calls import health_stub
from kit.rpc.channel import Channel

CHUNKS = 10_000
"""In the store before: merges and commits have something to do."""
DOCUMENTS, WORDS = 60, 90_000
IDLE_S = 4.0
TARGET_MS = 200.0
_PROBE_EVERY_S, _SEARCH_EVERY_S, _OWN_EVERY_S = 0.02, 0.05, 0.01
_TIMEOUT_S = 20.0
_WORKING, _RESTING = ("retriever", "reranker", "ingest", "ingest-worker"), ("orchestrator", "memory")
_OWN, _SEARCH, _GATEWAY = "this process (reference)", "search through HTTP", "gateway"

Probe = Callable[[], Awaitable[object]]
Times = dict[str, list[float]]


def measure() -> Part:
    """The same probes while nothing else happens and while documents are ingested."""
    with running_system() as system:
        idle, busy = asyncio.run(_measure(system))
    longest = {name: max(values) for name, values in busy.items()}
    worst = max((*_WORKING, _GATEWAY), key=lambda name: longest[name])
    resting = max(longest[name] for name in _RESTING)
    search = Samples.of(busy[_SEARCH])
    return Part(
        title="Stalls while ingesting",
        about=(
            f"{DOCUMENTS} documents ({WORDS} words) are ingested into a store of {CHUNKS} chunks. Meanwhile each service is "
            f"asked for its health every {1000 * _PROBE_EVERY_S:.0f} ms, the gateway for `/livez` (the event loop answers, so one "
            f"that stands still answers late), and a client searches every {1000 * _SEARCH_EVERY_S:.0f} ms, no rerank. "
            "References are services that have no part in it (orchestrator, memory) and a timer of this process: what the machine "
            f"does to a loop that nothing blocks. Idle is the same for {IDLE_S:.0f} s before."
        ),
        figures=(
            Figure(
                "longest stall of a service while ingesting, ms",
                f"{longest[worst]:.0f} ({worst}; services with nothing to do: {resting:.0f})",
                f"< {TARGET_MS:.0f}",
                longest[worst] < TARGET_MS,
            ),
            Figure(
                "search through HTTP while ingesting, ms",
                f"p50 {search.median:.0f}, p95 {search.p95:.0f}, worst {search.largest:.0f}",
            ),
        ),
        tables=(_table(idle, busy),),
    )


async def _measure(system: RunningSystem) -> tuple[Times, Times]:
    async with AsyncExitStack() as stack:
        channels = {name: await stack.enter_async_context(system.channel(name)) for name in (*_WORKING, *_RESTING)}
        client = await stack.enter_async_context(system.http())
        await fill(channels["retriever"], channels["reranker"], CHUNKS)
        # The first documents start the parser; that is not what is measured.
        await ingest(client, "warm-up", make_documents(98, 4, 4_000))
        probes = {name: _health(channel) for name, channel in channels.items()}
        probes |= {_GATEWAY: lambda: client.get("/livez"), _SEARCH: _searching(client)}
        async with _probing(probes) as idle:
            await asyncio.sleep(IDLE_S)
        documents = make_documents(3, DOCUMENTS, WORDS)
        async with _probing(probes) as busy:
            await ingest(client, "stalls", documents)
    return idle, busy


def _health(channel: Channel) -> Probe:
    stub = health_stub(channel)
    return lambda: stub.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S)


def _searching(client: httpx.AsyncClient) -> Probe:
    queries = iter(make_queries(4, 5_000))

    async def search() -> None:
        body = {"query": next(queries), "collection_ids": [COLLECTION], "rerank": "off"}
        (await client.post("/v1/search", json=body)).raise_for_status()

    return search


@asynccontextmanager
async def _probing(probes: Mapping[str, Probe]) -> AsyncIterator[Times]:
    """Milliseconds of each probe, gathered until the block ends."""
    times: Times = {name: [] for name in (_OWN, *probes)}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_own_lag(times[_OWN]))]
        for name, probe in probes.items():
            every_s = _SEARCH_EVERY_S if name == _SEARCH else _PROBE_EVERY_S
            tasks.append(group.create_task(_repeat(probe, every_s, times[name])))
        try:
            yield times
        finally:
            for task in tasks:
                task.cancel()


async def _repeat(probe: Probe, every_s: float, times_ms: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await probe()
        times_ms.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(every_s)


async def _own_lag(times_ms: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(_OWN_EVERY_S)
        times_ms.append(1000 * (time.perf_counter() - began - _OWN_EVERY_S))


def _table(idle: Times, busy: Times) -> Table:
    def columns(times_ms: list[float]) -> list[str]:
        each = Samples.of(times_ms)
        return [f"{value:.1f}" for value in (each.median, each.p95, each.largest)]

    return Table(
        ("what", "idle p50, ms", "p95, ms", "max, ms", "ingesting p50, ms", "p95, ms", "max, ms", "samples"),
        [(name, *columns(idle[name]), *columns(busy[name]), str(len(busy[name]))) for name in busy],
    )
