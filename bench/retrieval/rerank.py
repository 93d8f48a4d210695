"""Reranking speed: pairs of a query and a passage a second, by the encoder alone and through the model server."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from bench.corpus import make_paragraphs, make_queries
from bench.report import Figure, Part
from bench.retrieval.raw_embedder import RawEmbedder
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table

REQUESTS = 12
PASSAGES = 30
"""As many as a search hands over."""
WORDS = 120
_WARM_UP = 2
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class _Times:
    """Seconds of each request, in order."""

    raw_s: Sequence[float]
    first_s: Sequence[float]
    """Passages that the server has not seen."""
    again_s: Sequence[float]
    """Another query about the passages just seen."""


def measure(raw: RawEmbedder) -> Part:
    """Raw and server in turn for each request, so that other work on the machine meets both alike."""
    with running_system() as system:
        times = asyncio.run(_measure(raw, system))
    raw_s, first_s, again_s = (sum(each) for each in (times.raw_s, times.first_s, times.again_s))
    pairs = REQUESTS * PASSAGES
    return Part(
        title="Reranking",
        about=(
            f"{REQUESTS} queries, {PASSAGES} passages of {WORDS} words each, one request at a time, `Rerank` of the model server "
            "through gRPC. Raw is its encoder in one process on the same texts, query included, without scoring. The second time "
            "the passages are the same and the query is another."
        ),
        figures=(
            Figure("rerank through gRPC, pairs/s", f"{pairs / first_s:.0f}"),
            Figure("rerank through gRPC / raw encoder, in pairs/s", f"{raw_s / first_s:.2f}"),
            Figure("rerank of passages just seen, pairs/s", f"{pairs / again_s:.0f}"),
        ),
        tables=(_table(times),),
    )


async def _measure(raw: RawEmbedder, system: RunningSystem) -> _Times:
    count = _WARM_UP + REQUESTS
    passages = make_paragraphs(11, count * PASSAGES, WORDS)
    queries = make_queries(12, 2 * count)
    raw_s: list[float] = []
    first_s: list[float] = []
    again_s: list[float] = []
    async with system.channel("reranker") as channel:
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        for number in range(count):
            part = passages[number * PASSAGES : (number + 1) * PASSAGES]
            raw_s.append(raw.run([queries[number], *part]).seconds)
            first_s.append(await _rerank(stub, queries[number], part))
            again_s.append(await _rerank(stub, queries[count + number], part))
    return _Times(raw_s[_WARM_UP:], first_s[_WARM_UP:], again_s[_WARM_UP:])


async def _rerank(stub: reranker_pb2_grpc.RerankerServiceStub, query: str, passages: Sequence[str]) -> float:
    began = time.perf_counter()
    answer = await stub.Rerank(reranker_pb2.RerankRequest(query_text=query, passages=passages), timeout=_TIMEOUT_S)
    if len(answer.scores) != len(passages):
        raise RuntimeError(f"{len(passages)} passages got {len(answer.scores)} scores")
    return time.perf_counter() - began


def _table(times: _Times) -> Table:
    rows = {
        "raw encoder (reference)": times.raw_s,
        "Rerank, new passages": times.first_s,
        "Rerank, passages just seen": times.again_s,
    }
    reference = Samples.of(times.raw_s).median
    return Table(
        ("what", "p50, ms", "p95, ms", "pairs/s", "p50 of the raw encoder's"),
        [
            (
                name,
                f"{1000 * Samples.of(seconds).median:.0f}",
                f"{1000 * Samples.of(seconds).p95:.0f}",
                f"{PASSAGES / Samples.of(seconds).median:.0f}",
                f"{Samples.of(seconds).median / reference:.2f}",
            )
            for name, seconds in rows.items()
        ],
    )
