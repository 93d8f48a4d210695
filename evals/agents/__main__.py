"""`python -m evals agents`: measures research beside one search, on collections with known passages."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.client.gateway import Gateway
from cli.errors import CliError
from evals.agents.answers import Grade, grade, load_known
from evals.agents.asking import EFFORTS, QA, Asked, Outcome, ask
from evals.agents.figures import AgentFigures, beside, figures
from evals.agents.judging import GradingModel
from evals.agents.orders import measure_safety
from evals.agents.verdict import read_bounds, render_answers, verdict
from evals.datasets.files import write_files
from evals.datasets.loading import OWN_COLLECTION, load_collection, sample_queries
from evals.datasets.models import TestCollection
from evals.errors import EvaluationError
from evals.retrieval.indexing import index
from evals.system import RunningSystem, running_system
from evals.tables import Table

UNDER_THRESHOLD, FAILED = 1, 2
_THRESHOLDS = Path(__file__).parent / "thresholds.json"
_QUESTIONS = Path(__file__).parents[1] / "data" / "agents" / "efforts.jsonl"
_TELEGRAM = _QUESTIONS.parent / "telegram"
_INJECTIONS = Path("../shared/data/sec_prompt_injection")
_TELEGRAM_COLLECTION = "eval-telegram"
_SIMPLE = "low"
_COLUMNS = (
    "served", "all passages", "recall", "nDCG@8", "refused", "searches", "most", "p50, s", "p95, s", "× qa",
    "tokens", "coverage ~ recall",
    "supported", "citation precision", "citation recall", "citation coverage",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 when a threshold is not reached, 2 when it could not be measured."""
    options = _parse(arguments)
    try:
        collections = [] if options.no_collections else _collections(options)
        missed = [] if options.no_orders else measure_safety(options.injections)
        if url := os.environ.get("GROUNDWORK_URL"):
            missed += asyncio.run(_measured(url, collections, options, None))
        else:
            os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
            with running_system(options.data_dir, _model_settings()) as system:
                missed += asyncio.run(_measured(system.url, collections, options, system))
    except (EvaluationError, CliError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    for sentence in missed:
        sys.stderr.write(f"FAILED: {sentence}\n")
    if options.mechanics:
        return 0
    sys.stdout.write(f"\n{'No-go' if missed else 'Go'}: {len(missed)} bounds are missed.\n")
    return UNDER_THRESHOLD if missed else 0


def _collections(options: argparse.Namespace) -> list[TestCollection]:
    found = [load_collection(path) for path in options.collection or [OWN_COLLECTION]]
    return [sample_queries(each, options.queries) for each in found] if options.queries else found


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals agents",
        description="Measure research beside one search. GROUNDWORK_URL names a running system; EVAL_OPENAI_BASE_URL, "
        "EVAL_OPENAI_MODEL and EVAL_OPENAI_API_KEY a model for the one that is started; EVAL_JUDGE_BASE_URL, "
        "EVAL_JUDGE_MODEL and EVAL_JUDGE_API_KEY a model that grades the answers besides.",
    )
    parser.add_argument("--collection", type=Path, action="append", help="a folder in BEIR's shape; may be repeated")
    parser.add_argument(
        "--questions", "--queries", dest="queries", type=int, default=40, metavar="N",
        help="at most N questions of each collection, always the same ones; 0 for all (default %(default)s)",
    )  # fmt: skip
    parser.add_argument("--served", nargs="+", default=[QA, "low", "medium", "high"], choices=[QA, *EFFORTS])
    parser.add_argument("--data-dir", type=Path, help="keep the started system's data here")
    parser.add_argument("--thresholds", type=Path, default=_THRESHOLDS, help="default %(default)s")
    parser.add_argument("--no-answers", action="store_true", help="leave out the questions with known answers")
    parser.add_argument("--no-orders", action="store_true", help="leave out injected orders")
    parser.add_argument("--no-collections", action="store_true", help="leave out the collections with known passages")
    parser.add_argument(
        "--injections", type=Path, default=_INJECTIONS, help="folder of injected orders (default %(default)s)"
    )
    parser.add_argument(
        "--mechanics", action="store_true", help="show all figures and fail by none, as of a tiny model"
    )
    parser.add_argument("--no-efforts", action="store_true", help="leave out the written questions about effort")
    parser.add_argument("--indexed", action="store_true", help="the collections are in the system already")
    parser.add_argument("--misses", action="store_true", help="list the questions that lack a known passage")
    return parser.parse_args(arguments)


def _model_settings() -> dict[str, str]:
    names = {"BASE_URL": "BASE_URL", "MODEL": "MODEL", "API_KEY": "API_KEY"}
    given = {ours: os.environ.get(f"EVAL_OPENAI_{name}", "") for name, ours in names.items()}
    return {f"GROUNDWORK_LLM_{name}": value for name, value in given.items() if value}


async def _measured(
    url: str, collections: Sequence[TestCollection], options: argparse.Namespace, system: RunningSystem | None
) -> list[str]:
    """A sentence for each bound that is missed."""
    thresholds: Mapping[str, Any] = json.loads(options.thresholds.read_text("utf-8"))
    missed: list[str] = []
    async with Gateway.open(url) as gateway:
        for collection in collections:
            collection_id = _collection_id(collection)
            if not options.indexed:
                await _index(gateway, collection, collection_id)
            by_served = {
                each: await _asked(gateway, collection, collection_id, each, options) for each in options.served
            }
            if QA in by_served:
                by_served = {name: beside(by_served[QA], each) for name, each in by_served.items()}
            sys.stdout.write(render(collection, by_served))
            missed += _misses(thresholds.get(collection.name, {}), collection.name, by_served)
        if not options.no_answers:
            missed += await _answers(gateway, options, system)
        if not options.no_efforts:
            missed += await _efforts(gateway, _TELEGRAM_COLLECTION, thresholds.get("efforts", {}))
    return missed


async def _answers(gateway: Gateway, options: argparse.Namespace, system: RunningSystem | None) -> list[str]:
    """The questions with known answers, served in each way; why the agent is not to be used, if so."""
    questions = load_known(_TELEGRAM / "questions.jsonl")
    if options.queries and options.queries < len(questions):
        questions = questions[:: -(-len(questions) // options.queries)]
    if not options.indexed:
        await index(gateway, _TELEGRAM_COLLECTION, {"telegram.json": (_TELEGRAM / "result.json")})
    grading = GradingModel.from_environment()
    by_served: dict[str, list[Grade]] = {}
    memory: dict[str, int] = {}
    for served in options.served:
        by_served[served] = [
            grade(each, await ask(gateway, Asked(each.text, _TELEGRAM_COLLECTION, served))) for each in questions
        ]
        if grading is not None:
            by_served[served] = [await grading.judged(each) for each in by_served[served]]
        if system is not None:
            memory[served] = sum(process.memory_info().rss for _, process in system.processes())
    sys.stdout.write(
        f"## Known answers: {len(questions)} questions on a Telegram export\n\n{render_answers(by_served)}\n"
    )
    if QA not in by_served:
        return []
    bounds = read_bounds(options.thresholds)
    growth = {each: memory[each] / memory[QA] - 1 for each in memory if QA in memory}
    if growth:
        told = ", ".join(f"{name} {share:+.1%}" for name, share in growth.items() if name != QA)
        sys.stdout.write(f"Memory of all processes after the questions, against {QA}: {told}\n\n")
    return [
        sentence
        for served, grades in by_served.items()
        if served != QA
        for sentence in verdict(served, grades, by_served[QA], growth.get(served), bounds)
    ]


def _collection_id(collection: TestCollection) -> str:
    return "eval-" + "".join(each if each.isalnum() else "-" for each in collection.name.lower())[:50]


async def _index(gateway: Gateway, collection: TestCollection, collection_id: str) -> None:
    with tempfile.TemporaryDirectory(prefix="groundwork-evals-") as folder:
        await index(gateway, collection_id, write_files(collection.documents, Path(folder), "md"))


async def _asked(
    gateway: Gateway, collection: TestCollection, collection_id: str, served: str, options: argparse.Namespace
) -> AgentFigures:
    outcomes: list[Outcome] = []
    for query in collection.queries:
        outcome = await ask(gateway, Asked(query.text, collection_id, served))
        outcomes.append(outcome)
        wanted = {name for name, grade in collection.qrels[query.query_id].items() if grade > 0}
        if options.misses and not wanted <= set(outcome.documents):
            sys.stdout.write(f"{served}: {query.text} lacks {sorted(wanted - set(outcome.documents))}\n")
    return figures(outcomes, [collection.qrels[query.query_id] for query in collection.queries])


def render(collection: TestCollection, by_served: Mapping[str, AgentFigures]) -> str:
    """A table with a row for each way to serve the questions."""
    rows = [
        (
            served, f"{each.all_gold:.3f}", f"{each.recall:.3f}", f"{each.ndcg:.3f}", f"{each.refused:.3f}",
            f"{each.searches_mean:.1f}", str(each.searches_most), f"{each.p50_s:.2f}", f"{each.p95_s:.2f}",
            _shown(each.latency_ratio), f"{each.tokens_mean:.0f}", _shown(each.coverage_correlation),
            *map(_shown, (each.supported, each.citation_precision, each.citation_recall, each.citation_coverage)),
        )
        for served, each in by_served.items()
    ]  # fmt: skip
    table = Table(_COLUMNS, rows)
    endings = "\n".join(
        f"* {served}: {', '.join(f'{name} {count}' for name, count in sorted(each.endings.items()))}"
        for served, each in by_served.items()
        if each.endings
    )
    questions = len(collection.queries)
    return f"## {collection.name}, {questions} questions\n\n{table.render()}\n\nEndings:\n\n{endings}\n\n"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _misses(least: Mapping[str, Any], name: str, by_served: Mapping[str, AgentFigures]) -> list[str]:
    """One sentence for each threshold that is not reached; what was not measured is passed over."""
    said = []
    for served, wanted in least.items():
        measured = asdict(by_served[served]) if served in by_served else {}
        for figure, bound in wanted.items():
            kind, _, field = figure.partition("_")
            value = measured.get(field)
            if value is not None and (value < bound if kind == "least" else value > bound):
                said.append(f"{field} of {served} on {name} is {value:.3f}; the bound is {bound}")
    return said


async def _efforts(gateway: Gateway, collection_id: str, thresholds: Mapping[str, float]) -> list[str]:
    """How often `auto` gives a written question the effort that it needs."""
    written = [json.loads(line) for line in _QUESTIONS.read_text("utf-8").splitlines() if line.strip()]
    right, wrong = 0, []
    for each in written:
        outcome = await ask(gateway, Asked(each["question"], collection_id, "auto"))
        is_simple = outcome.effort == _SIMPLE
        if is_simple == (each["needs"] == "one"):
            right += 1
        else:
            wrong.append(f"* {each['question']} ({each['needs']})")
    share = right / len(written)
    listed = "\n".join(wrong)
    sys.stdout.write(
        f"## Effort chosen by `auto`\n\n{right} of {len(written)} rightly ({share:.2f}). Wrongly:\n\n{listed}\n"
    )
    least = thresholds.get("least_right", 0.0)
    return [f"{share:.2f} of the efforts are right; the bound is {least}"] if share < least else []


if __name__ == "__main__":
    sys.exit(main())
