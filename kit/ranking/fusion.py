"""Making one ranking out of several, and of a ranking and a reranker's scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RRF_K = 60
"""The constant of Cormack, Clarke and Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009. It damps the head of the lists; results change little between 20 and 100."""


@dataclass(frozen=True)
class RankedList:
    """One engine's answer to one query: ids, best first, each once, with their scores and the list's weight.

    `floor` is the least score that there can be, where it is known: BM25 has 0. `completed` are scores of ids that the
    engine did not return but that other lists have; ranks do not know them. `weights` are those of ids for which the list's does
    not hold; ranks do not know them either.
    """

    ids: Sequence[str]
    scores: Sequence[float]
    weight: float = 1.0
    floor: float | None = None
    completed: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


def reciprocal_rank_fusion(lists: Sequence[RankedList], k: int = RRF_K) -> dict[str, float]:
    """Sum over the lists of weight / (k + rank), best first. Ties keep the order of the first list that has them."""
    fused: dict[str, float] = {}
    for ranked in lists:
        for rank, chunk_id in enumerate(ranked.ids, start=1):
            fused[chunk_id] = fused.get(chunk_id, 0.0) + ranked.weight / (k + rank)
    return _best_first(fused)


def convex_combination(lists: Sequence[RankedList]) -> dict[str, float]:
    """Weighted mean of min-max normalised scores, 0 where a list lacks the id, best first.

    Bruch, Gai and Ingber: "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023, which also has the floors.
    """
    total_weight = sum(ranked.weight for ranked in lists) or 1.0
    fused: dict[str, float] = {}
    for ranked in lists:
        ids, scores = [*ranked.ids, *ranked.completed], [*ranked.scores, *ranked.completed.values()]
        for chunk_id, score in zip(ids, min_max(scores, ranked.floor), strict=True):
            weight = ranked.weights.get(chunk_id, ranked.weight)
            fused[chunk_id] = fused.get(chunk_id, 0.0) + weight / total_weight * score
    return _best_first(fused)


def blend_rerank(fused: Mapping[str, float], reranked: Mapping[str, float], weight: float) -> dict[str, float]:
    """(1 - weight) · fused + weight · reranked, both min-max normalised, best first.

    What was not reranked counts as the worst of those that were, so it never overtakes one that stood above it.
    """
    fused_scores = dict(zip(fused, min_max(list(fused.values())), strict=True))
    rerank_scores = dict(zip(reranked, min_max(list(reranked.values())), strict=True))
    return _best_first(
        {
            chunk_id: (1.0 - weight) * score + weight * rerank_scores.get(chunk_id, 0.0)
            for chunk_id, score in fused_scores.items()
        }
    )


def min_max(scores: Sequence[float], floor: float | None = None) -> list[float]:
    """Scores moved to 0..1, 0 being the floor or else the least. Equal scores, a single one among them, all become 1: they
    were found, and found alike."""
    if not scores:
        return []
    low, high = min(scores) if floor is None else floor, max(scores)
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def _best_first(scores: dict[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: -item[1]))
