"""The report folder: the page, its pictures, the figures for programs, and the rankings in the format of trec_eval."""

import json
import re
from dataclasses import asdict
from pathlib import Path

from evals.datasets.models import ModeResult
from evals.retrieval import plots
from evals.retrieval.evaluation import Evaluation
from evals.retrieval.report import Circumstances, render
from evals.retrieval.scoring import facets
from kit.ranking.metrics import METRICS

PAGE, FIGURES, RUNS = "report.md", "results.json", "runs"


def save(evaluation: Evaluation, circumstances: Circumstances, folder: Path) -> list[str]:
    """Writes into the folder, made if there is none. What could not be done, for the user."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: list[str] = []
    said: list[str] = []
    try:
        pictures = plots.draw(evaluation.scores, facets(evaluation.plan.collection.queries), folder)
    except ImportError as error:
        said.append(f"no plots, because {error.name} is not installed: pip install 'groundwork[eval]'")
    (folder / PAGE).write_text(render(evaluation, circumstances, pictures), "utf-8")
    (folder / FIGURES).write_text(json.dumps(_figures(evaluation, circumstances), indent=1) + "\n", "utf-8")
    (folder / RUNS).mkdir(exist_ok=True)
    for result in evaluation.results:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", result.mode.name)
        (folder / RUNS / f"{name}.trec").write_text(_trec(result, name), "utf-8")
    return said


def _figures(evaluation: Evaluation, circumstances: Circumstances) -> dict[str, object]:
    """Means, and the value of each query, so that two runs can be compared query by query."""
    return {
        "collection": evaluation.plan.collection.name,
        "documents": len(evaluation.plan.collection.documents),
        "chunks": evaluation.indexed.chunks,
        "indexing_seconds": evaluation.indexed.seconds,
        "top_k": evaluation.plan.top_k,
        "commit": circumstances.commit,
        "answerability": [asdict(each) for each in evaluation.answerability],
        "modes": {
            scores.mode: {
                "options": dict(result.mode.options),
                "means": {metric: scores.mean(metric) for metric in METRICS},
                "latency_ms": {"p50": scores.latency_ms.median, "p95": scores.latency_ms.p95},
                "degraded": scores.degraded,
                "queries": {
                    query_id: {metric: values[row] for metric, values in scores.values.items()}
                    for row, query_id in enumerate(scores.query_ids)
                },
            }
            for result, scores in zip(evaluation.results, evaluation.scores, strict=True)
        },
    }


def _trec(result: ModeResult, tag: str) -> str:
    """`query Q0 document rank score tag`, from the deep pass where there is one. The score is that of the rank."""
    lines = [
        f"{query_id} Q0 {document_id} {rank} {1 / rank:.6f} {tag}\n"
        for query_id, answer in (result.deep or result.run).items()
        for rank, document_id in enumerate(answer.document_ids, start=1)
    ]
    return "".join(lines)
