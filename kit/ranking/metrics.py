"""How good a ranking is. Values lie in 0..1; a ranking may be shorter than the cut-off. The definitions are those of trec_eval, so
that the numbers compare with published ones; the tests compare each with pytrec_eval."""

import math
from collections.abc import Callable, Mapping, Sequence

Metric = Callable[[Sequence[str], Mapping[str, int], int], float]
"""Of a ranking of document ids, best first, each once; the grades of one query; and the cut-off k."""


def ndcg(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Normalised discounted cumulative gain, gain = grade, discount = log2(rank + 1).

    Järvelin and Kekäläinen: "Cumulated gain-based evaluation of IR techniques", TOIS 2002; the discount as in Burges et al.,
    ICML 2005, the linear gain as in trec_eval's `ndcg_cut`, which BEIR reports.
    """
    ideal = _dcg(sorted(grades.values(), reverse=True)[:k])
    return _dcg([grades.get(document_id, 0) for document_id in ranking[:k]]) / ideal if ideal else 0.0


def recall(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """The share of the relevant documents that stands in the first k (trec_eval's `recall`)."""
    relevant = _relevant(grades)
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def hit(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """1 when a relevant document stands in the first k, else 0 (trec_eval's `success`)."""
    return float(not _relevant(grades).isdisjoint(ranking[:k]))


def mrr(ranking: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """1 / rank of the first relevant document in the first k, else 0; its mean is the mean reciprocal rank.

    Voorhees: "The TREC-8 Question Answering Track Report", 1999; cut off as MS MARCO does.
    """
    relevant = _relevant(grades)
    return next((1.0 / rank for rank, each in enumerate(ranking[:k], start=1) if each in relevant), 0.0)


METRICS: dict[str, tuple[Metric, int]] = {
    "ndcg@10": (ndcg, 10),
    "recall@100": (recall, 100),
    "hit@1": (hit, 1),
    "hit@3": (hit, 3),
    "hit@5": (hit, 5),
    "mrr@10": (mrr, 10),
}
"""What is reported, by name."""

DEEP_METRICS = frozenset({"recall@100"})
"""Those that need more hits than a user asks for."""


def _dcg(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _relevant(grades: Mapping[str, int]) -> set[str]:
    return {document_id for document_id, grade in grades.items() if grade > 0}
