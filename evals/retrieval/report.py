"""The evaluation as one page of Markdown, with tables that read as well in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from evals.retrieval.answerability import table as answerability_table
from evals.retrieval.evaluation import Evaluation
from evals.retrieval.scoring import Scores, facets
from evals.retrieval.searching import MOST_HITS
from evals.significance import Comparison, compare, holm, mean_interval
from evals.tables import Table
from kit.ranking.metrics import METRICS

HEADLINE = "ndcg@10"
"""The metric that modes are compared by."""
_NOT_MEASURED = "–"


@dataclass(frozen=True)
class Circumstances:
    """What the figures hold for."""

    system: str
    commit: str
    reference: str
    """Name of the mode that the others are compared with."""


def render(evaluation: Evaluation, circumstances: Circumstances, plots: Sequence[str] = ()) -> str:
    """The whole page; `plots` are file names beside it."""
    blocks = [
        f"# Retrieval on {evaluation.plan.collection.name}",
        _about(evaluation, circumstances),
        "## Modes",
        modes_table(evaluation.scores).render(),
        *(f"![{name.partition('.')[0]}]({name})" for name in plots),
        f"## Differences in {HEADLINE} from {circumstances.reference}",
        _DIFFERENCES,
        differences_table(evaluation.scores, circumstances.reference).render(),
        *_answerability_blocks(evaluation, circumstances.reference),
        *_facet_blocks(evaluation, circumstances.reference),
    ]
    return "\n\n".join(blocks) + "\n"


def modes_table(scores: Sequence[Scores]) -> Table:
    """Every metric, the interval of the headline metric, and latencies, a row a mode."""
    return Table(
        ("mode", *METRICS, f"95 % interval of {HEADLINE}", "p50, ms", "p95, ms", "degraded"),
        [
            (
                each.mode,
                *(_figure(each.mean(metric)) for metric in METRICS),
                "{:.4f} to {:.4f}".format(*mean_interval(each.values[HEADLINE])),
                f"{each.latency_ms.median:.1f}",
                f"{each.latency_ms.p95:.1f}",
                str(each.degraded),
            )
            for each in scores
        ],
    )


def differences_table(scores: Sequence[Scores], reference: str) -> Table:
    """Each mode against the reference, over the same queries."""
    compared = _comparisons(scores, reference)
    adjusted = holm([each.p_value for each in compared.values()])
    return Table(
        ("mode", "difference", "95 % interval", "p", "p, Holm"),
        [
            (mode, f"{each.difference:+.4f}", f"{each.low:+.4f} to {each.high:+.4f}", f"{each.p_value:.4f}", f"{p:.4f}")
            for (mode, each), p in zip(compared.items(), adjusted, strict=True)
        ],
    )


def _comparisons(scores: Sequence[Scores], reference: str) -> dict[str, Comparison]:
    base = next(each for each in scores if each.mode == reference)
    return {
        each.mode: compare(each.values[HEADLINE], base.values[HEADLINE]) for each in scores if each.mode != reference
    }


_DIFFERENCES = (
    "Paired over the queries: the interval is a percentile bootstrap's, p a two-sided randomisation test's, and beside it p after "
    "Holm's correction for the number of modes compared. An interval that contains 0 means that these queries cannot tell the two "
    "apart."
)


_ANSWERABILITY = (
    "AUROC: how well the cosine of the most similar passage tells the questions that the collection answers from these. Risk at a "
    "coverage: of both sorts of questions together, were only the most similar share of them answered, the share whose first "
    "document is not a right one."
)


def _about(evaluation: Evaluation, circumstances: Circumstances) -> str:
    plan, indexed = evaluation.plan, evaluation.indexed
    collection = plan.collection
    lines = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "system": f"{circumstances.system}, commit {circumstances.commit}",
        "collection": f"{len(collection.documents)} documents, {indexed.chunks} chunks, {len(collection.queries)} queries "
        f"({collection.about})",
        "documents": f"uploaded as .{plan.file_format} files over HTTP, all searchable after {indexed.seconds:.0f} s",
        "ranking": "hits are passages; a document stands where its best passage stands. Queries ask for "
        f"{plan.top_k} passages, one request at a time, each query in all modes in random order before the next",
        "recall@100": f"from a second pass that asks for {MOST_HITS} passages. A reranker only reorders the head of the "
        "list, so modes that ask for it were not asked again",
        "degraded": "answers that had to do without a part (an engine or the reranker failed or took too long)",
    }
    return "\n".join(f"* {name}: {line}" for name, line in lines.items())


def _answerability_blocks(evaluation: Evaluation, reference: str) -> list[str]:
    if not evaluation.answerability:
        return []
    return [
        "## Questions without an answer",
        f"Mode {reference}. {_ANSWERABILITY}",
        answerability_table(evaluation.answerability).render(),
    ]


def _facet_blocks(evaluation: Evaluation, reference: str) -> list[str]:
    blocks: list[str] = []
    base = next(each for each in evaluation.scores if each.mode == reference)
    for facet, values in facets(evaluation.plan.collection.queries).items():
        blocks += [
            f"## By {facet}",
            f"Mode {reference}:",
            facet_table(base, facet, values).render(),
            f"All modes, {HEADLINE}:",
            facet_modes_table(evaluation.scores, facet, values).render(),
        ]
    return blocks


def facet_table(scores: Scores, facet: str, values: dict[str, frozenset[str]]) -> Table:
    """Every metric of one mode, a row a value of the facet."""
    return Table(
        (facet, "queries", *METRICS),
        [
            (value, str(len(ids)), *(_figure(scores.mean(metric, ids)) for metric in METRICS))
            for value, ids in values.items()
        ],
    )


def facet_modes_table(scores: Sequence[Scores], facet: str, values: dict[str, frozenset[str]]) -> Table:
    """The headline metric, a row a value of the facet, a column a mode."""
    return Table(
        (facet, *(each.mode for each in scores)),
        [(value, *(_figure(each.mean(HEADLINE, ids)) for each in scores)) for value, ids in values.items()],
    )


def _figure(value: float | None) -> str:
    return _NOT_MEASURED if value is None else f"{value:.4f}"
