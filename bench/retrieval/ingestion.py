"""Ingestion against the raw embedder: how much of what the model could do reaches the index."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc

from bench.corpus import SampleDocument, make_documents
from bench.operation.start import memory_table, resident_memory
from bench.report import Figure, Part
from bench.retrieval.raw_embedder import RawEmbedder, RawRun
from bench.uploading import UPLOADS_AT_ONCE, Ingested, ingest
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table

ROUNDS = 4
DOCUMENTS = 60
WORDS = 120_000
"""About 1 000 chunks."""
WARM_UP_SEED, WARM_UP_DOCUMENTS, WARM_UP_WORDS = 99, 8, 12_000
"""Starts the parser and lets the runtime compile its kernels."""
RATIO_TARGET = 0.85
_EMBED_TEXTS, _EMBED_CALLS = 64, 4


@dataclass(frozen=True)
class _Round:
    """One corpus, measured three ways within a minute."""

    raw: Sequence[RawRun]
    embed_texts_per_s: float
    ingested: Ingested
    cpu_seconds: dict[str, float]

    @property
    def raw_texts_per_s(self) -> float:
        return sum(run.texts for run in self.raw) / sum(run.seconds for run in self.raw)

    @property
    def chunks_per_s(self) -> float:
        return self.ingested.chunks / self.ingested.seconds

    @property
    def raw_cpu_share(self) -> float:
        """What the raw embedder spends of CPU for what all processes together spend."""
        raw = sum(run.cpu_seconds for run in self.raw) / len(self.raw)
        return raw / sum(self.cpu_seconds.values())

    @property
    def ratio(self) -> float:
        return self.chunks_per_s / self.raw_texts_per_s


def measure(raw: RawEmbedder) -> Part:
    """Raw, system, raw on each corpus, so that other work on the machine meets both alike."""
    with running_system() as system:
        asyncio.run(_ingest(system, make_documents(WARM_UP_SEED, WARM_UP_DOCUMENTS, WARM_UP_WORDS), "warm-up"))
        # A rented machine that has rested is a tenth faster for a quarter of a minute, which the first reference would get.
        raw.run(raw.chunks_of(make_documents(WARM_UP_SEED, DOCUMENTS, WORDS)))
        rounds = [_round(raw, system, seed) for seed in range(ROUNDS)]
        memory = resident_memory(system)
    ratios = Samples.of([each.ratio for each in rounds])
    cpu = Samples.of([each.raw_cpu_share for each in rounds])
    speeds = Samples.of([each.chunks_per_s for each in rounds])
    raws = Samples.of([run.texts_per_s for each in rounds for run in each.raw])
    return Part(
        title="Ingestion",
        about=(
            f"{DOCUMENTS} generated documents (Markdown and plain text, log-normal sizes), uploaded over HTTP, {UPLOADS_AT_ONCE} "
            "at a time, until a client has heard on `/v1/events` that the last is ready. Raw is the same encoder on the same "
            "chunks in one process, all texts known beforehand and sorted by length, measured before and after with the system "
            "idle; `Embed` is the model server alone through gRPC. On a busy machine the ratio of chunks/s flatters, because ten "
            "processes get more of the cores than one does; the ratio of CPU times does not, and is what to expect where the "
            "model alone keeps all cores busy."
        ),
        figures=(
            Figure("ingestion, chunks/s", speeds.spread()),
            Figure("raw embedder, chunks/s", raws.spread()),
            Figure(
                "ingestion / raw embedder in chunks/s",
                ratios.spread(2),
                f">= {RATIO_TARGET}",
                ratios.median >= RATIO_TARGET,
            ),
            Figure("raw embedder / all processes of ingestion, in CPU time", cpu.spread(2)),
        ),
        tables=(_rounds_table(rounds), _cpu_table(rounds), _stages_table(rounds), memory_table(memory)),
    )


def _round(raw: RawEmbedder, system: RunningSystem, seed: int) -> _Round:
    documents = make_documents(seed, DOCUMENTS, WORDS)
    texts = raw.chunks_of(documents)
    before = raw.run(texts)
    embed_texts_per_s = asyncio.run(_embed_rate(system, texts[: len(texts) // 2]))
    cpu_before = _cpu_seconds(system)
    ingested = asyncio.run(_ingest(system, documents, f"round-{seed}"))
    cpu_after = _cpu_seconds(system)
    after = raw.run(texts)
    if ingested.chunks != len(texts):
        raise RuntimeError(
            f"the system made {ingested.chunks} chunks of a corpus that has {len(texts)}: not comparable"
        )
    cpu = {name: seconds - cpu_before.get(name, 0.0) for name, seconds in cpu_after.items()}
    return _Round((before, after), embed_texts_per_s, ingested, cpu)


async def _ingest(system: RunningSystem, documents: Sequence[SampleDocument], collection_id: str) -> Ingested:
    async with system.http() as client:
        return await ingest(client, collection_id, documents)


async def _embed_rate(system: RunningSystem, texts: Sequence[str]) -> float:
    """Texts a second of the model server alone, with as many calls in flight as the worker has."""
    async with system.channel("reranker") as channel:
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        starts = iter(range(0, len(texts), _EMBED_TEXTS))

        async def work() -> None:
            for start in starts:  # shared: each slice is taken once
                part = texts[start : start + _EMBED_TEXTS]
                request = reranker_pb2.EmbedRequest(texts=part, kind=reranker_pb2.EMBED_KIND_PASSAGE)
                await stub.Embed(request, timeout=60.0)

        started_at = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(_EMBED_CALLS):
                group.create_task(work())
        return len(texts) / (time.perf_counter() - started_at)


def _cpu_seconds(system: RunningSystem) -> dict[str, float]:
    spent: dict[str, float] = {}
    for name, process in system.processes():
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent[name] = spent.get(name, 0.0) + times.user + times.system
    return spent


def _rounds_table(rounds: Sequence[_Round]) -> Table:
    return Table(
        (
            "round",
            "chunks",
            "tokens/chunk",
            "raw, chunks/s",
            "Embed, chunks/s",
            "ingestion, chunks/s",
            "Embed/raw",
            "ingestion/raw",
        ),
        [
            (
                str(number),
                str(each.ingested.chunks),
                f"{each.raw[0].tokens / each.raw[0].texts:.0f}",
                " and ".join(f"{run.texts_per_s:.1f}" for run in each.raw),
                f"{each.embed_texts_per_s:.1f}",
                f"{each.chunks_per_s:.1f}",
                f"{each.embed_texts_per_s / each.raw_texts_per_s:.2f}",
                f"{each.ratio:.2f}",
            )
            for number, each in enumerate(rounds, 1)
        ],
    )


def _cpu_table(rounds: Sequence[_Round]) -> Table:
    chunks = sum(each.ingested.chunks for each in rounds)
    names = sorted({name for each in rounds for name in each.cpu_seconds})
    spent = {name: sum(each.cpu_seconds.get(name, 0.0) for each in rounds) / chunks for name in names}
    raw_runs = [run for each in rounds for run in each.raw]
    raw = sum(run.cpu_seconds for run in raw_runs) / sum(run.texts for run in raw_runs)
    ordered = sorted(((name, each) for name, each in spent.items() if each > 0.00005), key=lambda pair: -pair[1])
    rows = [("raw embedder (reference)", raw), ("all processes", sum(spent.values())), *ordered]
    return Table(
        ("process", "CPU, ms/chunk", "of the raw embedder's"),
        [(name, f"{1000 * each:.2f}", f"{each / raw:.2f}") for name, each in rows],
    )


def _stages_table(rounds: Sequence[_Round]) -> Table:
    totals: dict[str, float] = {}
    for document in (document for each in rounds for document in each.ingested.documents):
        for stage, seconds in document["report"]["stage_seconds"].items():
            totals[stage] = totals.get(stage, 0.0) + (seconds or 0.0)
    documents = len(rounds) * DOCUMENTS
    return Table(
        ("stage", "seconds a document, waiting included"),
        [(stage, f"{seconds / documents:.3f}") for stage, seconds in totals.items()],
    )
