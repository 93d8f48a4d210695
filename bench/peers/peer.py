"""Side by side with a peer library of this field: the same documents, queries, model weights and machine."""

import asyncio
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.corpus import make_documents
from bench.peers.peer_environment import ask_peer
from bench.report import Figure, Part
from bench.uploading import ingest
from cli.client.gateway import Gateway
from evals.datasets.files import as_text, write_files
from evals.datasets.loading import load_collection
from evals.datasets.models import Mode, Query, TestCollection
from evals.retrieval.evaluation import Evaluation, Plan, evaluate
from evals.retrieval.indexing import index
from evals.samples import Samples
from evals.significance import compare
from evals.system import RunningSystem, running_system
from evals.tables import Table
from kit.ranking.metrics import ndcg
from services.reranker.model_files import MINILM_INT8

TOP_K = 20
"""Passages asked for; ten documents are among them."""
CANDIDATES = 5 * TOP_K
"""What our retriever asks of each engine at this top_k; the peer's retrievers are asked for as many."""
WARM_UP_DOCUMENTS, WARM_UP_WORDS = 8, 6_000
ROUNDS, ROUND_DOCUMENTS = 6, 450
OVERLAP_TOKENS = 62
"""A quarter of the window, as our chunker has."""
PEER, DEFAULT, ALIKE = "LlamaIndex", "Groundwork, default", "Groundwork, RRF, no rerank"
_MODES = (Mode(DEFAULT), Mode(ALIKE, {"strategy": "hybrid", "fusion": "rrf", "rerank": "off"}))
_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class _Side:
    """What one system reached. `ndcg` is in the order of the collection's queries."""

    chunks: int
    ingestion_s: float
    latency_ms: Samples
    inside_ms: Samples
    """The search alone: of the peer the call, of Groundwork what its retriever says."""
    ndcg: Sequence[float]


def measure(collection_path: Path) -> Part:
    """The peer first, alone; then the system, which is stopped afterwards. Both have all cores."""
    collection = load_collection(collection_path)
    answer = _ask_peer(collection, collection.queries, tuned=False)
    tuned = _ask_peer(collection, (), tuned=True)
    sides = {PEER: _peer_side(answer, collection), **_own_sides(collection)}
    ours, alike, peer = sides[DEFAULT], sides[ALIKE], sides[PEER]
    speed = _ingestion_in_turn(collection)
    quality = compare(ours.ndcg, peer.ndcg)
    return Part(
        title="Beside a peer library",
        about=_about(collection, answer["versions"]),
        figures=(
            Figure(f"ingestion, documents/s, of {PEER}'s, in turn", speed.spread(2), "> 1", speed.median > 1),
            Figure(
                f"ingestion, documents/s, of {PEER}'s with our batching of its embedder",
                f"{tuned['ingestion_s'] / ours.ingestion_s:.2f}",
            ),
            _ratio(
                f"query p50, default through HTTP, of {PEER}'s in-process call",
                ours.latency_ms.median / peer.latency_ms.median,
                lambda value: value < 1,
            ),
            _ratio(
                f"query p50, same algorithm, search alone, of {PEER}'s",
                alike.inside_ms.median / peer.inside_ms.median,
                lambda value: value < 1,
            ),
            Figure(
                f"nDCG@10 on {collection.name}, difference from {PEER}'s",
                f"{quality.difference:+.4f} (95 % interval {quality.low:+.4f} to {quality.high:+.4f}, p {quality.p_value:.4f})",
                "> 0",
                quality.difference > 0,
            ),
        ),
        tables=(_table(sides, len(collection.documents)),),
    )


def _ingestion_in_turn(collection: TestCollection) -> Samples:
    """Our documents/s divided by the peer's, round by round: a machine that others use as well is another one ten minutes later."""
    documents = collection.documents[: ROUNDS * ROUND_DOCUMENTS]
    ratios: list[float] = []
    with running_system() as system:
        asyncio.run(_warm_up(system))
        for number in range(ROUNDS):
            part = replace(collection, documents=documents[number::ROUNDS])
            peer_s = _ask_peer(part, (), tuned=False)["ingestion_s"]
            ratios.append(peer_s / asyncio.run(_ingested_s(system, part, f"round-{number}")))
    return Samples.of(ratios)


async def _ingested_s(system: RunningSystem, collection: TestCollection, collection_id: str) -> float:
    with tempfile.TemporaryDirectory(prefix="groundwork-peer-") as folder:
        async with Gateway.open(system.url) as gateway:
            return (await index(gateway, collection_id, write_files(collection.documents, Path(folder), "md"))).seconds


def _ratio(name: str, value: float, reached: Callable[[float], bool]) -> Figure:
    return Figure(name, f"{value:.2f}", "> 1" if reached(2.0) else "< 1", reached(value))


def _about(collection: TestCollection, versions: Mapping[str, str]) -> str:
    return (
        f"{collection.name}: {len(collection.documents)} documents, {len(collection.queries)} queries, top {TOP_K} passages, "
        "documents ranked by their best passage. Peer: "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + ", its SentenceSplitter at the model's window and our overlap, its in-memory vector store, its BM25 with Snowball "
        f"stemming, fused by reciprocal rank, {CANDIDATES} candidates a retriever, no reranking, all in one process. It embeds "
        "with the same int8 weights on OpenVINO, 10 texts a call, as it does unless it is told otherwise. What it could do with "
        "an embedder that batches as our model server does (512 texts a call, sorted by length, one stream a core) is a figure of "
        "its own. Groundwork does the same work as ten processes over HTTP and gRPC, with both indexes and every document durable "
        "on disk; its latencies are those of an HTTP client. Ingestion is "
        f"compared in {ROUNDS} rounds of up to {ROUND_DOCUMENTS} documents, the peer and Groundwork in turn; the table is of one "
        "run over all. Default is what a client gets who asks for nothing else, reranking by "
        "policy."
    )


def _table(sides: Mapping[str, _Side], documents: int) -> Table:
    return Table(
        (
            "system",
            "chunks",
            "ingestion, s",
            "documents/s",
            "query p50, ms",
            "p95, ms",
            "search alone p50, ms",
            "nDCG@10",
        ),
        [
            (
                name,
                str(side.chunks),
                f"{side.ingestion_s:.1f}",
                f"{documents / side.ingestion_s:.1f}",
                f"{side.latency_ms.median:.1f}",
                f"{side.latency_ms.p95:.1f}",
                f"{side.inside_ms.median:.1f}",
                f"{statistics.fmean(side.ndcg):.4f}",
            )
            for name, side in sides.items()
        ],
    )


def _ask_peer(collection: TestCollection, queries: Sequence[Query], *, tuned: bool) -> dict[str, Any]:
    models, tokenizer = Path(os.environ["GROUNDWORK_MODELS_DIR"]), MINILM_INT8.tokenizer
    assert tokenizer is not None
    job = {
        "documents": [{"id": each.document_id, "text": as_text(each)} for each in collection.documents],
        "queries": [{"id": each.query_id, "text": each.text} for each in queries],
        "tuned": tuned,
        "weights": str(models / MINILM_INT8.weights.path),
        "tokenizer": str(models / tokenizer.path),
        "window_tokens": MINILM_INT8.window_tokens,
        "overlap_tokens": OVERLAP_TOKENS,
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "depth": CANDIDATES,
        "top_k": TOP_K,
    }
    return ask_peer("peer_llamaindex", job, _TIMEOUT_S)


def _peer_side(answer: Mapping[str, Any], collection: TestCollection) -> _Side:
    latencies = Samples.of(list(answer["latencies_ms"].values()))
    scores = [
        ndcg(answer["answers"][query.query_id], collection.qrels[query.query_id], 10) for query in collection.queries
    ]
    return _Side(answer["chunks"], answer["ingestion_s"], latencies, latencies, scores)


def _own_sides(collection: TestCollection) -> dict[str, _Side]:
    with running_system() as system:
        evaluation = asyncio.run(_evaluate(system, collection))
    sides: dict[str, _Side] = {}
    for result, scores in zip(evaluation.results, evaluation.scores, strict=True):
        inside = Samples.of([each.server_ms for each in result.run.values() if each.server_ms is not None])
        sides[result.mode.name] = _Side(
            evaluation.indexed.chunks,
            evaluation.indexed.seconds,
            scores.latency_ms,
            inside,
            scores.values["ndcg@10"],
        )
    return sides


async def _evaluate(system: RunningSystem, collection: TestCollection) -> Evaluation:
    await _warm_up(system)
    async with Gateway.open(system.url) as gateway:
        plan = Plan(collection, _MODES, TOP_K, file_format="md", deep=False)
        return await evaluate(gateway, plan, "peer", lambda _: None)


async def _warm_up(system: RunningSystem) -> None:
    """As the peer's embedder, ours is warm: the parser has started, the kernels are compiled. Other texts: nothing is known."""
    async with system.http() as client:
        await ingest(client, "warm-up", make_documents(96, WARM_UP_DOCUMENTS, WARM_UP_WORDS))
