"""`--fail-under`: the least that a change must reach, for builds that stop when quality falls."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.errors import EvaluationError
from evals.retrieval.modes import DEFAULT
from evals.retrieval.scoring import Scores
from kit.ranking.metrics import METRICS

_FORM = re.compile(r"(?:(?P<mode>.+):)?(?P<metric>[a-z]+@\d+)=(?P<least>[01](?:\.\d+)?)")


@dataclass(frozen=True)
class Threshold:
    """The least mean of a metric in a mode."""

    mode: str
    metric: str
    least: float


def parse_threshold(text: str) -> Threshold:
    """`[MODE:]METRIC=VALUE`, for example `ndcg@10=0.73` or `rrf:recall@100=0.9`. Raises EvaluationError."""
    found = _FORM.fullmatch(text)
    if not found or found["metric"] not in METRICS:
        raise EvaluationError(
            f"{text!r} is not [MODE:]METRIC=VALUE with one of {', '.join(METRICS)} and a value of 0..1"
        )
    return Threshold(found["mode"] or DEFAULT, found["metric"], float(found["least"]))


def misses(thresholds: Sequence[Threshold], scores: Mapping[str, Scores]) -> list[str]:
    """One sentence for each threshold that is not reached. What was not measured is not reached."""
    said: list[str] = []
    for each in thresholds:
        measured = scores[each.mode].mean(each.metric) if each.mode in scores else None
        if measured is None:
            said.append(
                f"{each.metric} of mode {each.mode!r} was not measured, so it is not known to reach {each.least}"
            )
        elif measured < each.least:
            said.append(f"{each.metric} of mode {each.mode!r} is {measured:.4f}, which is under {each.least}")
    return said
