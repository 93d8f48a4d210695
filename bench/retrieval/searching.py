"""Search latency at 10 000 and 100 000 chunks, beside what a gRPC round trip and the query's embedding cost by themselves."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc
from grpc_health.v1 import health_pb2

from bench.corpus import make_queries
from bench.filling import COLLECTION, fill
from bench.report import Figure, Part
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table
from kit.rpc.calls import health_stub
from kit.rpc.channel import Channel

WARM_UP_QUERIES = 20
TOP_K = 10
_TIMEOUT_S = 10.0
_STRATEGIES = {
    "dense": retriever_pb2.STRATEGY_DENSE,
    "lexical": retriever_pb2.STRATEGY_LEXICAL,
    "hybrid": retriever_pb2.STRATEGY_HYBRID,
}
ROUND_TRIP, EMBEDDING, OVER_HTTP = "empty gRPC round trip", "query embedding", "hybrid through HTTP"

Ask = Callable[[str], Awaitable[object]]


@dataclass(frozen=True)
class Size:
    """How large the store is, how many questions are asked of it, and how fast they should be answered."""

    chunks: int
    queries: int
    hybrid_p50_target_ms: float
    http_p95_target_ms: float | None = None


LAPTOP = Size(10_000, 150, 25.0, 60.0)
LARGE = Size(100_000, 60, 80.0)


def measure(size: Size) -> Part:
    """One query at a time, each query asked every way in random order, so that a busy moment meets all ways alike."""
    with running_system() as system:
        fill_s, times_ms = asyncio.run(_measure(system, size))
    return Part(
        title=f"Search at {size.chunks:,} chunks".replace(",", " "),
        about=(
            f"{size.queries} different questions, one at a time, top {TOP_K}, no rerank, query embedded by the model server each "
            f"time. The store was filled through `IndexChunks` in {fill_s:.1f} s ({size.chunks / fill_s:.0f} chunks/s, both "
            "indexes on disk)."
        ),
        figures=_figures(size, times_ms),
        tables=(_table(times_ms),),
    )


def _figures(size: Size, times_ms: dict[str, Samples]) -> tuple[Figure, ...]:
    hybrid, over_http = times_ms["hybrid"], times_ms[OVER_HTTP]
    at = f"at {size.chunks:,} chunks".replace(",", " ")
    p50, p95 = size.hybrid_p50_target_ms, size.http_p95_target_ms
    http_target = ("", None) if p95 is None else (f"p95 < {p95:.0f}", over_http.p95 < p95)
    return (
        Figure(f"dense search through gRPC {at}, ms", _latency(times_ms["dense"])),
        Figure(f"lexical search through gRPC {at}, ms", _latency(times_ms["lexical"])),
        Figure(f"hybrid search through gRPC {at}, ms", _latency(hybrid), f"p50 < {p50:.0f}", hybrid.median < p50),
        Figure(f"hybrid search through HTTP {at}, ms", _latency(over_http), *http_target),
    )


def _latency(times_ms: Samples) -> str:
    return f"p50 {times_ms.median:.1f}, p95 {times_ms.p95:.1f}"


async def _measure(system: RunningSystem, size: Size) -> tuple[float, dict[str, Samples]]:
    async with (
        system.channel("retriever") as retriever,
        system.channel("reranker") as reranker,
        system.http() as client,
    ):
        models = reranker_pb2_grpc.RerankerServiceStub(reranker)
        started_at = time.perf_counter()
        await fill(retriever, reranker, size.chunks)
        fill_s = time.perf_counter() - started_at
        ways = _ways(retriever, models, client)
        times_ms: dict[str, list[float]] = {name: [] for name in ways}
        for number, query in enumerate(make_queries(2, WARM_UP_QUERIES + size.queries)):
            for name in random.sample(list(ways), len(ways)):
                began = time.perf_counter()
                await ways[name](query)
                if number >= WARM_UP_QUERIES:
                    times_ms[name].append(1000 * (time.perf_counter() - began))
    return fill_s, {name: Samples.of(values) for name, values in times_ms.items()}


def _ways(
    retriever: Channel, models: reranker_pb2_grpc.RerankerServiceStub, client: httpx.AsyncClient
) -> dict[str, Ask]:
    health = health_stub(retriever)
    searcher = retriever_pb2_grpc.RetrieverServiceStub(retriever)

    def searching(strategy: retriever_pb2.Strategy.ValueType) -> Ask:
        async def search(query: str) -> None:
            request = retriever_pb2.SearchRequest(
                queries=[query],
                collection_ids=[COLLECTION],
                top_k=TOP_K,
                strategy=strategy,
                rerank=retriever_pb2.RERANK_MODE_OFF,
            )
            answer = await searcher.Search(request, timeout=_TIMEOUT_S)
            if answer.degraded or len(answer.hits) != TOP_K:
                raise RuntimeError(f"a search gave {len(answer.hits)} hits, degraded: {list(answer.degraded)}")

        return search

    async def over_http(query: str) -> None:
        body = {"query": query, "collection_ids": [COLLECTION], "top_k": TOP_K, "rerank": "off"}
        (await client.post("/v1/search", json=body)).raise_for_status()

    async def embed(query: str) -> None:
        await models.Embed(
            reranker_pb2.EmbedRequest(texts=[query], kind=reranker_pb2.EMBED_KIND_QUERY), timeout=_TIMEOUT_S
        )

    return {
        ROUND_TRIP: lambda _: health.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S),
        EMBEDDING: embed,
        **{name: searching(strategy) for name, strategy in _STRATEGIES.items()},
        OVER_HTTP: over_http,
    }


def _table(times_ms: dict[str, Samples]) -> Table:
    reference = times_ms[EMBEDDING].median
    return Table(
        ("what", "p50, ms", "p95, ms", "min, ms", "max, ms", "p50 of the query embedding's"),
        [
            (
                name,
                *(f"{value:.1f}" for value in (each.median, each.p95, each.smallest, each.largest)),
                f"{each.median / reference:.2f}",
            )
            for name, each in times_ms.items()
        ],
    )
