"""Time to the first and to the last token of an extractive answer, as a browser sees it: HTTP, server-sent events."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from bench.corpus import Fact, make_documents
from bench.report import Figure, Part
from bench.uploading import ingest
from cli.client.sse import read_events
from evals.samples import Samples
from evals.system import RunningSystem, running_system
from evals.tables import Table

COLLECTION = "answers"
DOCUMENTS = 24
WORDS = 24_000
"""About 200 chunks."""
QUESTIONS = 30
WARM_UP_QUESTIONS = 3
FIRST_TOKEN_TARGET_MS = 400.0


@dataclass(frozen=True)
class _Answer:
    """One question's times in milliseconds since the request was sent, and whether it was answered."""

    search_ms: float
    evidence_ms: float
    first_token_ms: float
    last_token_ms: float
    done_ms: float
    correct: bool


def measure() -> Part:
    """Different questions, one at a time; a search with the same words goes before each, as its reference."""
    with running_system() as system:
        chunks, answers = asyncio.run(_measure(system))
    first = Samples.of([answer.first_token_ms for answer in answers])
    last = Samples.of([answer.last_token_ms for answer in answers])
    correct = sum(answer.correct for answer in answers)
    return Part(
        title="Extractive answers",
        about=(
            f"{len(answers)} different questions to {chunks} chunks through `POST /v1/qa` as an event stream, one at a time, no "
            f"language model. {correct} answers held the planted fact with a citation."
        ),
        figures=(
            Figure(
                "first token of an extractive answer through HTTP, ms",
                f"p50 {first.median:.0f}, p95 {first.p95:.0f}",
                f"p50 < {FIRST_TOKEN_TARGET_MS:.0f}",
                first.median < FIRST_TOKEN_TARGET_MS,
            ),
            Figure("last token of an extractive answer through HTTP, ms", f"p50 {last.median:.0f}, p95 {last.p95:.0f}"),
        ),
        tables=(_table(answers),),
    )


async def _measure(system: RunningSystem) -> tuple[int, list[_Answer]]:
    documents = make_documents(7, DOCUMENTS, WORDS)
    facts = [fact for document in documents for fact in document.facts]
    step = len(facts) / (QUESTIONS + WARM_UP_QUESTIONS)
    asked = [facts[int(step * number)] for number in range(QUESTIONS + WARM_UP_QUESTIONS)]
    async with system.http() as client:
        ingested = await ingest(client, COLLECTION, documents)
        answers = [await _ask(client, fact) for fact in asked]
    return ingested.chunks, answers[WARM_UP_QUESTIONS:]


async def _ask(client: httpx.AsyncClient, fact: Fact) -> _Answer:
    began = time.perf_counter()
    body = {"query": fact.question, "collection_ids": [COLLECTION], "top_k": 8}
    (await client.post("/v1/search", json=body)).raise_for_status()
    search_ms = 1000 * (time.perf_counter() - began)
    began = time.perf_counter()
    at_ms: dict[str, list[float]] = {}
    correct = False
    headers = {"Accept": "text/event-stream"}
    question = {"question": fact.question, "collection_ids": [COLLECTION]}
    async with client.stream("POST", "/v1/qa", json=question, headers=headers) as response:
        response.raise_for_status()
        async for event in read_events(response.aiter_bytes()):
            at_ms.setdefault(event.kind, []).append(1000 * (time.perf_counter() - began))
            if event.kind == "answer":
                correct = fact.expected in event.data["text"] and bool(event.data["citations"])
    return _Answer(search_ms, at_ms["retrieval"][0], at_ms["token"][0], at_ms["token"][-1], at_ms["done"][0], correct)


def _table(answers: Sequence[_Answer]) -> Table:
    columns = {
        "search alone, through HTTP (reference)": [answer.search_ms for answer in answers],
        "evidence found": [answer.evidence_ms for answer in answers],
        "first token": [answer.first_token_ms for answer in answers],
        "last token": [answer.last_token_ms for answer in answers],
        "done": [answer.done_ms for answer in answers],
    }
    samples = {name: Samples.of(values) for name, values in columns.items()}
    reference = next(iter(samples.values())).median
    return Table(
        ("what", "p50, ms", "p95, ms", "min, ms", "max, ms", "p50 of the search's"),
        [
            (
                name,
                *(f"{value:.0f}" for value in (each.median, each.p95, each.smallest, each.largest)),
                f"{each.median / reference:.1f}",
            )
            for name, each in samples.items()
        ],
    )
