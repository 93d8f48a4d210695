"""Right or wrong, by exact rules, and the figures that follow from it."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from evals.answering.questions import Asked


@dataclass(frozen=True)
class Graded:
    """One answer."""

    asked: Asked
    text: str
    is_refused: bool
    cited: frozenset[str]
    """Names of the documents that it cites."""
    confidence: float
    """What the system said of it: the probability that it answers the question."""

    @property
    def is_right(self) -> bool:
        """One string of each group stands in the answer and none of the wrong ones; a question that has no answer
        is refused."""
        if not self.asked.is_answerable:
            return self.is_refused
        text = folded(self.text)
        holds = all(any(folded(each) in text for each in group) for group in self.asked.expected)
        return not self.is_refused and holds and not any(folded(each) in text for each in self.asked.wrong)

    @property
    def cites_its_document(self) -> bool:
        return self.asked.file in self.cited


@dataclass(frozen=True)
class Figures:
    """Of a set of answers; None where there was nothing to count."""

    count: int
    right: float | None
    answerable_right: float | None
    gold_cited: float | None
    """Share of the answers to answerable questions that cite the document with the answer."""
    refusal_precision: float | None
    refusal_recall: float | None
    calibration_error: float | None
    """Expected calibration error of the confidence of answers, ten bins (Guo et al., arXiv:1706.04599)."""

    @property
    def refusal_f1(self) -> float | None:
        precision, recall = self.refusal_precision, self.refusal_recall
        if precision is None or recall is None or precision + recall == 0:
            return None
        return 2 * precision * recall / (precision + recall)


def folded(text: str) -> str:
    """Lower case, compatible characters made one, white space and apostrophes alike."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().replace("’", "'").split())


def figures(graded: Sequence[Graded]) -> Figures:
    answerable = [each for each in graded if each.asked.is_answerable]
    answered = [each for each in answerable if not each.is_refused]
    refused = [each for each in graded if each.is_refused]
    unanswerable = [each for each in graded if not each.asked.is_answerable]
    return Figures(
        len(graded),
        _share([each.is_right for each in graded]),
        _share([each.is_right for each in answerable]),
        _share([each.cites_its_document for each in answered]),
        _share([not each.asked.is_answerable for each in refused]),
        _share([each.is_refused for each in unanswerable]),
        _calibration_error([each for each in graded if not each.is_refused]),
    )


def risk_coverage(graded: Sequence[Graded], steps: int = 10) -> list[tuple[float, float, float]]:
    """Least confidence, share of questions answered from it on (coverage), and share of those answers that are wrong (risk;
    El-Yaniv and Wiener, JMLR 2010)."""
    answers = sorted((each for each in graded if not each.is_refused), key=lambda each: -each.confidence)
    wrong = list(accumulate(not each.is_right for each in answers))
    points = [round(len(answers) * step / steps) for step in range(1, steps + 1)]
    return [(answers[count - 1].confidence, count / len(graded), wrong[count - 1] / count) for count in points if count]


def _calibration_error(answers: Sequence[Graded]) -> float | None:
    bins: dict[int, list[Graded]] = {}
    for each in answers:
        bins.setdefault(min(9, int(each.confidence * 10)), []).append(each)
    gaps = [
        abs(sum(each.is_right for each in group) - sum(each.confidence for each in group)) for group in bins.values()
    ]
    return sum(gaps) / len(answers) if answers else None


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
