"""`groundwork evaluate`: how well the search finds the documents that answer known questions. By schedule it tells when a change of
documents, models or settings has made it worse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from cli.client.gateway import Gateway
from cli.display.output import Output
from cli.errors import UsageError, given
from cli.running import run
from kit.ranking.metrics import Metric, hit, mrr, ndcg, recall

_METRICS: Mapping[str, tuple[Metric, int]] = {
    "ndcg@10": (ndcg, 10),
    "recall@10": (recall, 10),
    "hit@1": (hit, 1),
    "mrr@10": (mrr, 10),
}
_HITS = 20
"""Passages that are asked for: ten documents are among them although some have several passages."""
_SHOWN_MISSES = 10


@dataclass(frozen=True)
class GoldQuestion:
    """A question and the names of the documents that answer it."""

    text: str
    documents: Sequence[str]


def evaluate(
    questions: Annotated[
        Path, typer.Argument(help='JSON Lines: {"question": "…", "documents": ["handbook.pdf"]} a line.')
    ],
    collection: Annotated[list[str], typer.Option("--collection", "-c", help="Where to look; repeatable.")] = [  # noqa: B006
        "default"
    ],
    fail_under: Annotated[
        list[str],
        typer.Option("--fail-under", help=f"METRIC=VALUE: exit code 1 below it. Metrics: {', '.join(_METRICS)}."),
    ] = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Measure the search on questions whose documents are known. Changes nothing, and asks no model for answers."""
    output = Output(as_json=as_json)
    asked, least = read_questions(questions), [_threshold(each) for each in fail_under]

    async def command(gateway: Gateway) -> int:
        collection_ids = [given(each, "collection") for each in collection]
        rankings = [await _ranking(gateway, each.text, collection_ids) for each in asked]
        graded = [(ranking, dict.fromkeys(each.documents, 1)) for ranking, each in zip(rankings, asked, strict=True)]
        figures = {
            name: round(fmean(metric(ranking, grades, k) for ranking, grades in graded), 4)
            for name, (metric, k) in _METRICS.items()
        }
        missed = [each for ranking, each in zip(rankings, asked, strict=True) if not set(each.documents) & set(ranking)]
        failed = [f"{name} is {figures[name]}, below {bound}" for name, bound in least if figures[name] < bound]
        if as_json:
            missed_texts = [each.text for each in missed]
            output.json({"questions": len(asked), "figures": figures, "not_found": missed_texts, "failed": failed})
        else:
            output.table(["metric", "mean"], [[name, f"{value:.3f}"] for name, value in figures.items()])
            for each in missed[:_SHOWN_MISSES]:
                output.out.print(f"not found: {each.text} ({', '.join(each.documents)})", markup=False)
            output.out.print(f"{len(asked)} questions, {len(missed)} without any of their documents")
            for sentence in failed:
                output.err.print(f"FAILED: {sentence}", markup=False)
        return 1 if failed else 0

    run(command)


def read_questions(path: Path) -> list[GoldQuestion]:
    """The questions of a file. Raises UsageError, which names the line."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    found = [_question(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise UsageError(f"{path} has no question; write one a line.")
    return found


def _question(line: str, place: str) -> GoldQuestion:
    try:
        read = json.loads(line)
        question, documents = read["question"], read["documents"]
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f'{place} is not {{"question": "…", "documents": ["…"]}}.') from error
    is_list = isinstance(documents, list) and documents and all(isinstance(each, str) for each in documents)
    if not isinstance(question, str) or not question.strip() or not is_list:
        raise UsageError(f"{place} needs a question and at least one name of a document.")
    return GoldQuestion(question, documents)


def _threshold(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if name not in _METRICS or not 0 <= least <= 1:
        raise UsageError(f"--fail-under {text!r} is not METRIC=VALUE, as in recall@10=0.8 ({', '.join(_METRICS)}).")
    return name, least


async def _ranking(gateway: Gateway, question: str, collection_ids: Sequence[str]) -> list[str]:
    """Names of the documents that were found, best first, each once."""
    body = {"query": question, "collection_ids": collection_ids, "top_k": _HITS}
    answer = await gateway.request("POST", "/v1/search", json=body)
    return list(dict.fromkeys(each["document_name"] for each in answer["hits"]))
