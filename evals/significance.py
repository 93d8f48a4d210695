"""Whether a difference between two systems on the same queries is more than luck."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
CONFIDENCE = 0.95
_BLOCK = 500
"""Resamples drawn at once: bounds the memory at a few MB for thousands of queries."""


@dataclass(frozen=True)
class Comparison:
    """A system against a reference, over the same queries."""

    difference: float
    """Mean of the system minus mean of the reference."""
    low: float
    high: float
    """The 95 % interval of the difference."""
    p_value: float
    """Two-sided."""


def mean_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean (Efron and Tibshirani: "An Introduction to the Bootstrap", 1993)."""
    means = _bootstrap_means(np.asarray(values, dtype=np.float64), np.random.default_rng(seed))
    return _interval(means)


def compare(system: Sequence[float], reference: Sequence[float], seed: int = 0) -> Comparison:
    """Paired bootstrap interval and paired randomisation test, as recommended by Smucker, Allan and Carterette: "A Comparison of
    Statistical Significance Tests for Information Retrieval Evaluation", CIKM 2007. Value i of both belongs to query i."""
    differences = np.asarray(system, dtype=np.float64) - np.asarray(reference, dtype=np.float64)
    rng = np.random.default_rng(seed)
    low, high = _interval(_bootstrap_means(differences, rng))
    return Comparison(float(differences.mean()), low, high, _randomisation_p(differences, rng))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for being several, in the same order (Holm: "A Simple Sequentially Rejective Multiple Test Procedure",
    Scandinavian Journal of Statistics, 1979)."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def _bootstrap_means(values: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    blocks = [
        values[rng.integers(len(values), size=(_BLOCK, len(values)))].mean(axis=1) for _ in range(RESAMPLES // _BLOCK)
    ]
    return np.concatenate(blocks)


def _interval(means: npt.NDArray[np.float64]) -> tuple[float, float]:
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, (tail, 100 - tail))
    return float(low), float(high)


def _randomisation_p(differences: npt.NDArray[np.float64], rng: np.random.Generator) -> float:
    """How often swapping the two systems per query at random gives a difference as large as the one seen."""
    moved = differences[differences != 0]
    if not moved.size:
        return 1.0
    seen = abs(moved.sum())
    as_large = 0
    for _ in range(RESAMPLES // _BLOCK):
        signs = rng.integers(2, size=(_BLOCK, moved.size)) * 2 - 1
        as_large += int((np.abs(signs @ moved) >= seen - 1e-12).sum())
    # The observed arrangement is one of the possible ones, so the p-value is never 0 (Davison and Hinkley, 1997, section 4.2).
    return (as_large + 1) / (RESAMPLES + 1)
