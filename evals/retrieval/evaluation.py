"""One evaluation from start to end: documents in, queries through every mode, figures out."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.client.gateway import Gateway
from evals.datasets.files import write_files
from evals.datasets.models import Mode, ModeResult, Run, TestCollection
from evals.retrieval.answerability import Answerability, answerability
from evals.retrieval.indexing import Indexed, index
from evals.retrieval.scoring import Scores, score
from evals.retrieval.searching import Asker

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
    reference: str = ""
    """Name of the mode in which questions without an answer are asked; none of them when it is empty."""


@dataclass(frozen=True)
class Evaluation:
    """What came out."""

    plan: Plan
    indexed: Indexed
    results: Sequence[ModeResult]
    scores: Sequence[Scores]
    """One a mode, in the order of the results."""
    answerability: Sequence[Answerability] = ()
    """In the mode of reference, one a kind of questions without an answer."""


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
    scores = [score(result, plan.collection.qrels) for result in results]
    return Evaluation(plan, indexed, results, scores, await _answerability(asker, plan, runs, say))


async def _answerability(asker: Asker, plan: Plan, runs: Mapping[str, Run], say: Say) -> Sequence[Answerability]:
    mode = next((each for each in plan.modes if each.name == plan.reference), None)
    unanswerable = plan.collection.unanswerable
    if mode is None or not unanswerable:
        return ()
    say(f"asking {len(unanswerable)} questions without an answer in mode {mode.name}")
    unanswered = await asker.ask_deep(unanswerable, mode, plan.top_k)
    return answerability(runs[mode.name], plan.collection.qrels, unanswered, unanswerable)
