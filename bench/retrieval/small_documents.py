"""Many small documents: what a document costs besides its embedding. Notes, tickets and messages come like this."""

import asyncio

from bench.corpus import make_documents
from bench.report import Figure, Part
from bench.retrieval.raw_embedder import RawEmbedder
from bench.uploading import Ingested, ingest
from evals.system import RunningSystem, running_system
from evals.tables import Table

DOCUMENTS = 400
WORDS = 24_000
"""About 60 a document: one chunk each."""
WARM_UP_DOCUMENTS, WARM_UP_WORDS = 20, 1_200
UPLOADS_AT_ONCE = 8


def measure(raw: RawEmbedder) -> Part:
    """Raw, system, raw, as for ingestion."""
    documents = make_documents(21, DOCUMENTS, WORDS)
    texts = raw.chunks_of(documents)
    with running_system() as system:
        before = raw.run(texts)
        ingested = asyncio.run(_ingest(system))
        after = raw.run(texts)
    raw_texts_per_s = 2 * len(texts) / (before.seconds + after.seconds)
    rate = len(ingested.documents) / ingested.seconds
    stages: dict[str, float] = {}
    for document in ingested.documents:
        for stage, seconds in document["report"]["stage_seconds"].items():
            stages[stage] = stages.get(stage, 0.0) + (seconds or 0.0)
    return Part(
        title="Many small documents",
        about=(
            f"{DOCUMENTS} generated documents of about {WORDS // DOCUMENTS} words, uploaded over HTTP, {UPLOADS_AT_ONCE} at a "
            "time, until a client has heard that the last is ready. Raw is the same encoder on the same chunks in one process."
        ),
        figures=(
            Figure("ingestion of small documents, documents/s", f"{rate:.1f}"),
            Figure(
                "ingestion of small documents / raw embedder, in chunks/s",
                f"{ingested.chunks / ingested.seconds / raw_texts_per_s:.2f}",
            ),
        ),
        tables=(
            Table(
                ("documents", "chunks", "ingestion, s", "documents/s", "raw embedder, chunks/s"),
                [
                    (
                        str(DOCUMENTS),
                        str(ingested.chunks),
                        f"{ingested.seconds:.1f}",
                        f"{rate:.1f}",
                        f"{raw_texts_per_s:.1f}",
                    )
                ],
            ),
            Table(
                ("stage", "ms a document, waiting included"),
                [(stage, f"{1000 * seconds / DOCUMENTS:.1f}") for stage, seconds in stages.items()],
            ),
        ),
    )


async def _ingest(system: RunningSystem) -> Ingested:
    async with system.http() as client:
        await ingest(client, "warm-up", make_documents(97, WARM_UP_DOCUMENTS, WARM_UP_WORDS))
        return await ingest(client, "small", make_documents(21, DOCUMENTS, WORDS), UPLOADS_AT_ONCE)
