"""Figures of many questions: what of the known passages was found, what it took, and whether the coverage shown goes with it."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evals.agents.asking import Outcome
from kit.ranking.metrics import ndcg

_TOP = 8


@dataclass(frozen=True)
class AgentFigures:
    """Of one way to serve a set of questions."""

    questions: int
    all_gold: float
    """Share of questions with all known documents in the evidence."""
    recall: float
    """Mean share of the known documents in the evidence."""
    ndcg: float
    refused: float
    searches_mean: float
    searches_most: int
    p50_s: float
    p95_s: float
    tokens_mean: float
    coverage_correlation: float | None
    """Spearman's rank correlation of the coverage shown and the recall; None where either is the same for all."""
    endings: Mapping[str, int]
    supported: float | None
    """Share of answers, without refusals, whose claims are all carried; None where there is no answer."""
    citation_precision: float | None
    citation_recall: float | None
    citation_coverage: float | None
    mean_s: float
    recall_gain: float | None = None
    """Recall above that of `qa` on the same questions; None where `qa` was not asked."""
    latency_ratio: float | None = None
    """Mean time as a multiple of that of `qa`."""


def figures(outcomes: Sequence[Outcome], gold: Sequence[Mapping[str, int]]) -> AgentFigures:
    """Of outcomes and, in the same order, the grades of known documents."""
    recalls = [_recall(outcome, grades) for outcome, grades in zip(outcomes, gold, strict=True)]
    seconds = sorted(each.seconds for each in outcomes)
    return AgentFigures(
        len(outcomes),
        statistics.fmean(each == 1.0 for each in recalls),
        statistics.fmean(recalls),
        statistics.fmean(ndcg(each.documents, grades, _TOP) for each, grades in zip(outcomes, gold, strict=True)),
        statistics.fmean(each.status == "refused" for each in outcomes),
        statistics.fmean(each.searches for each in outcomes),
        max(each.searches for each in outcomes),
        statistics.median(seconds),
        seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))],
        statistics.fmean(each.tokens for each in outcomes),
        rank_correlation([each.coverage for each in outcomes], recalls),
        Counter(each.ending for each in outcomes if each.ending),
        _mean([float(each.is_supported) for each in outcomes if each.status != "refused"]),
        _mean([each.citation_precision for each in outcomes]),
        _mean([each.citation_recall for each in outcomes]),
        _mean([each.citation_coverage for each in outcomes]),
        statistics.fmean(seconds),
    )


def beside(one_search: AgentFigures, each: AgentFigures) -> AgentFigures:
    """The figures with how they compare with those of one search."""
    ratio = each.mean_s / one_search.mean_s if one_search.mean_s else None
    return replace(each, recall_gain=each.recall - one_search.recall, latency_ratio=ratio)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return statistics.fmean(known) if known else None


def _recall(outcome: Outcome, grades: Mapping[str, int]) -> float:
    wanted = {name for name, grade in grades.items() if grade > 0}
    return len(wanted & set(outcome.documents)) / len(wanted) if wanted else 0.0


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's; None where either does not vary."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return statistics.correlation(_ranks(one), _ranks(other))


def _ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(each) + (ordered.count(each) + 1) / 2 for each in values]
