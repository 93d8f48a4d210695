"""From answers to figures: a value a query and metric, and means over all queries and over those that share a facet."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.datasets.models import ModeResult, Qrels, Query, Run
from evals.samples import Samples
from kit.ranking.metrics import DEEP_METRICS, METRICS


@dataclass(frozen=True)
class Scores:
    """The figures of one mode. `values[metric]` are in the order of `query_ids`; a metric that was not measured is missing."""

    mode: str
    query_ids: Sequence[str]
    values: Mapping[str, Sequence[float]]
    latency_ms: Samples
    degraded: int
    """Answers that had to do without a part."""

    def mean(self, metric: str, query_ids: frozenset[str] | None = None) -> float | None:
        """Over all queries, or over these. None when it was not measured."""
        if metric not in self.values:
            return None
        pairs = zip(self.query_ids, self.values[metric], strict=True)
        return statistics.fmean(value for query_id, value in pairs if query_ids is None or query_id in query_ids)


def score(result: ModeResult, qrels: Qrels) -> Scores:
    """Every metric over every query of the mode's run."""
    query_ids = list(result.run)
    values = {
        metric: _values(metric, result.deep if metric in DEEP_METRICS else result.run, query_ids, qrels)
        for metric in METRICS
        if result.deep or metric not in DEEP_METRICS
    }
    answers = result.run.values()
    return Scores(
        mode=result.mode.name,
        query_ids=query_ids,
        values=values,
        latency_ms=Samples.of([answer.latency_ms for answer in answers]),
        degraded=sum(bool(answer.degraded) for answer in (*answers, *result.deep.values())),
    )


def facets(queries: Sequence[Query]) -> dict[str, dict[str, frozenset[str]]]:
    """Facet → value → ids of its queries, the values in order of their first query."""
    found: dict[str, dict[str, set[str]]] = {}
    for query in queries:
        for facet, value in query.facets.items():
            found.setdefault(facet, {}).setdefault(value, set()).add(query.query_id)
    return {facet: {value: frozenset(ids) for value, ids in values.items()} for facet, values in found.items()}


def _values(metric: str, run: Run, query_ids: Sequence[str], qrels: Qrels) -> list[float]:
    measure, cut_off = METRICS[metric]
    return [measure(run[query_id].document_ids, qrels[query_id], cut_off) for query_id in query_ids]
