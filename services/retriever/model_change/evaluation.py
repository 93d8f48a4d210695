"""What a comparison of two embedding models comes to, and how it is measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_CUT_OFF = 10


@dataclass(frozen=True)
class Question:
    """A question, and the ids of what should be found: of documents, or of chunks where the question was made of one."""

    text: str
    document_ids: tuple[str, ...] = ()
    chunk_id: str = ""


@dataclass(frozen=True)
class Quality:
    """Means over all questions, from 0 to 1."""

    ndcg_at_10: float = 0.0
    mrr_at_10: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """Both models by one way of searching."""

    before: Quality
    after: Quality


@dataclass(frozen=True)
class Evaluation:
    """What a comparison came to. `vectors`: by vectors alone. `both`: with words, as people search, but before reranking."""

    before: str
    after: str
    question_count: int
    are_made: bool
    vectors: Comparison
    both: Comparison
    at_ms: int

    def worse(self, margin: float) -> tuple[str, ...]:
        """Where the new model is below the old one by more than the margin, in words; empty when nowhere."""
        return tuple(
            f"nDCG@10 {name} {each.after.ndcg_at_10:.3f} against {each.before.ndcg_at_10:.3f}"
            for name, each in (("by vectors alone", self.vectors), ("by vectors and words", self.both))
            if each.after.ndcg_at_10 < each.before.ndcg_at_10 - margin
        )


def ndcg(ranking: Sequence[str], relevant: set[str]) -> float:
    """Normalised discounted cumulative gain at 10 with gains of 1 (Järvelin and Kekäläinen, TOIS 2002), as trec_eval's ndcg_cut.
    `ranking` names each id once."""
    ideal = sum(_discount(rank) for rank in range(1, min(len(relevant), _CUT_OFF) + 1))
    found = sum(_discount(rank) for rank, each in enumerate(ranking[:_CUT_OFF], start=1) if each in relevant)
    return found / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: set[str]) -> float:
    """1 / rank of the first relevant one among the first 10, else 0 (Voorhees, TREC-8)."""
    return next((1 / rank for rank, each in enumerate(ranking[:_CUT_OFF], start=1) if each in relevant), 0.0)


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)
