"""How well the similarity of the best passage tells questions that a collection answers from those that it does not.

AUROC: how likely it is higher for a question that is answered than for one that is not (Hanley and McNeil, Radiology 1982). Risk
and coverage: if only the most similar share of all questions were answered, the share of these whose first document is not a right
one; El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", JMLR 2010.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.datasets.models import KIND, Qrels, Query, Run
from evals.tables import Table

COVERAGES = (1.0, 0.8, 0.6, 0.4, 0.2)
_NO_HIT = -1.0
"""In place of a cosine: nothing was found that is worth showing."""


@dataclass(frozen=True)
class Answerability:
    """What was measured with questions of one kind that the collection does not answer, beside all that it answers."""

    kind: str
    questions: int
    emptied: float
    """Share of them for which nothing is shown."""

    auroc: float
    risks: Sequence[float]
    """At each of COVERAGES, over both sorts of questions."""

    area: float
    """Under the curve of risk over coverage; lower is better."""


def answerability(
    answered: Run, qrels: Qrels, unanswered: Run, unanswerable: Sequence[Query]
) -> tuple[Answerability, ...]:
    """One a kind, in order of first questions. `answered`: the answers to questions that have a relevant document."""
    kinds = dict.fromkeys(query.facets[KIND] for query in unanswerable)
    right = [
        (_similarity(answer.cosine), _is_right(answer.document_ids, qrels[query_id]))
        for query_id, answer in answered.items()
    ]
    return tuple(
        _of(kind, right, [unanswered[each.query_id].cosine for each in unanswerable if each.facets[KIND] == kind])
        for kind in kinds
    )


def table(measured: Sequence[Answerability]) -> Table:
    """A row a kind of questions."""
    return Table(
        (
            *("questions without an answer", "count", "nothing shown", "AUROC"),
            *(f"risk at {each:.0%}" for each in COVERAGES),
            "area",
        ),
        [
            (
                each.kind,
                str(each.questions),
                f"{each.emptied:.1%}",
                f"{each.auroc:.4f}",
                *(f"{risk:.3f}" for risk in each.risks),
                f"{each.area:.4f}",
            )
            for each in measured
        ],
    )


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """How likely one of `higher` is above one of `lower`; ties count half."""
    ordered = sorted([(value, True) for value in higher] + [(value, False) for value in lower])
    wins, below, start = 0.0, 0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][0] == ordered[start][0]:
            end += 1
        ties = sum(not is_higher for _, is_higher in ordered[start:end])
        wins += (end - start - ties) * (below + ties / 2)
        below, start = below + ties, end
    return wins / (len(higher) * len(lower))


def risk_curve(questions: Sequence[tuple[float, bool]]) -> list[float]:
    """Risk when the first n questions, most similar first, are answered, for n from 1 on. Pairs are similarity and whether the
    answer is right; among equals the right ones are spread evenly."""
    groups: dict[float, list[bool]] = {}
    for similarity, is_right in questions:
        groups.setdefault(similarity, []).append(is_right)
    wrong, count, risks = 0.0, 0, []
    for similarity in sorted(groups, reverse=True):
        rate = groups[similarity].count(False) / len(groups[similarity])
        for _ in groups[similarity]:
            wrong, count = wrong + rate, count + 1
            risks.append(wrong / count)
    return risks


def _of(kind: str, right: Sequence[tuple[float, bool]], cosines: Sequence[float | None]) -> Answerability:
    similarities = [_similarity(cosine) for cosine in cosines]
    curve = risk_curve([*right, *((similarity, False) for similarity in similarities)])
    return Answerability(
        kind=kind,
        questions=len(similarities),
        emptied=sum(cosine is None for cosine in cosines) / len(cosines),
        auroc=auroc([similarity for similarity, _ in right], similarities),
        risks=[curve[math.ceil(coverage * len(curve)) - 1] for coverage in COVERAGES],
        area=statistics.fmean(curve),
    )


def _similarity(cosine: float | None) -> float:
    return _NO_HIT if cosine is None else cosine


def _is_right(document_ids: Sequence[str], grades: Mapping[str, int]) -> bool:
    return bool(document_ids) and grades.get(document_ids[0], 0) > 0
