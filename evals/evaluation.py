"""One evaluation from start to end: documents in, queries through every mode, figures out."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.gateway import Gateway
from evals.files import write_files
from evals.indexing import Indexed, index
from evals.models import Mode, ModeResult, TestCollection
from evals.scoring import Scores, score
from evals.searching import Asker

Say = Callable[[str], None]
"""Tells the user how far it is."""


@dataclass(frozen=True)
class Plan:
    """What to measure. The reasons for the defaults stand with the options of the command line."""

    collection: TestCollection
    modes: Sequence[Mode]
    top_k: int
    file_format: str
    deep: bool


@dataclass(frozen=True)
class Evaluation:
    """What came out."""

    plan: Plan
    indexed: Indexed
    results: Sequence[ModeResult]
    scores: Sequence[Scores]
    """One a mode, in the order of the results."""


async def evaluate(gateway: Gateway, plan: Plan, collection_id: str, say: Say) -> Evaluation:
    """Indexes and asks. Raises EvaluationError."""
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-") as folder:
        files = write_files(plan.collection.documents, Path(folder), plan.file_format)
        say(f"indexing {len(files)} documents of {plan.collection.name} as .{plan.file_format}")
        indexed = await index(gateway, collection_id, files)
    say(f"indexed {indexed.chunks} chunks in {indexed.seconds:.0f} s ({len(files) / indexed.seconds:.1f} documents/s)")
    queries = plan.collection.queries
    asker = Asker(gateway, collection_id)
    say(f"asking {len(queries)} queries in {len(plan.modes)} modes")
    runs = await asker.ask_all(queries, plan.modes, plan.top_k)
    results: list[ModeResult] = []
    for mode in plan.modes:
        if plan.deep and not mode.reranks:
            say(f"asking for many hits in mode {mode.name}")
            results.append(ModeResult(mode, runs[mode.name], await asker.ask_deep(queries, mode)))
        else:
            results.append(ModeResult(mode, runs[mode.name]))
    return Evaluation(plan, indexed, results, [score(result, plan.collection.qrels) for result in results])
