"""What scripts/judge/fit.py says of the judge: how many of the claims left out pass, and the calibration error.

Per source, and per kind and language of the written claims.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scripts.judge.cases import OWN, Case

_BINS = 10


def report(cases: Sequence[Case], sources: Sequence[str], said: Any) -> str:
    """`said`: the probability of each case."""
    lines = ["claims left out | false | pass | true | kept | calibration error"]
    of = np.array(sources)
    lines += [_line(source, cases, said, of == source) for source in dict.fromkeys(sources)]
    for source in (source for source in dict.fromkeys(sources) if source in (OWN, "public")):
        for facet in ("kind", "language"):
            values = np.array([getattr(case, facet) for case in cases])
            lines += [
                _line(f"{source} {value}", cases, said, (of == source) & (values == value))
                for value in dict.fromkeys(values[of == source])
                if not value.startswith("changed")
            ]
    return "\n".join([*lines, ""])


def _line(name: str, cases: Sequence[Case], said: Any, chosen: Any) -> str:
    is_true = np.array([bool(case.is_true) for case in cases])
    shares = [
        f"{np.mean(said[chosen & own] >= 0.5):.3f}" if (chosen & own).any() else "-" for own in (~is_true, is_true)
    ]
    bins = np.minimum(_BINS - 1, (said[chosen] * _BINS).astype(int))
    distances = [abs(np.sum(said[chosen][bins == each] - is_true[chosen][bins == each])) for each in range(_BINS)]
    counts = (chosen & ~is_true).sum(), (chosen & is_true).sum()
    return f"{name} | {counts[0]} | {shares[0]} | {counts[1]} | {shares[1]} | {sum(distances) / chosen.sum():.3f}"
