"""Gradient boosted trees for one probability, in numpy: small enough to read, and its model is JSON that needs no library.

Friedman: "Greedy function approximation: a gradient boosting machine", 2001; second-order leaves and the handling of unknown values
as in XGBoost (arXiv:1603.02754, sections 2.2 and 3.4). Features are cut into at most 32 bins by their quantiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Codes = NDArray[np.uint8]
_BINS = 32
_UNKNOWN = 255
_LEAST_GAIN = 1e-3


@dataclass(frozen=True)
class Boosting:
    """How trees are grown."""

    trees: int = 250
    depth: int = 3
    rate: float = 0.06
    l2: float = 2.0
    """Added to the weight of a leaf: keeps small ones close to zero."""
    least_weight: float = 3.0
    """Sum of second derivatives that a leaf must have."""
    columns: float = 0.6
    """Share of the features that a tree may use."""
    seed: int = 7


def fit(
    signals: Float,
    labels: Float,
    weights: Float,
    features: Sequence[str],
    how: Boosting,
    start: tuple[Mapping[str, Any], Float] | None = None,
) -> dict[str, Any]:
    """The model of `labels` (0 or 1, [cases]) over `signals` ([cases, features], NaN for unknown). `start`: a model to go on from
    and its logits; features that it does not have yet come last, and the new trees use only them, if there are any."""
    rng = np.random.default_rng(how.seed)
    edges = [_edges(column[~np.isnan(column)]) for column in signals.T]
    mean = float(np.average(labels, weights=weights))
    bias = start[0]["bias"] if start else float(np.log(mean / (1 - mean)))
    logits = start[1].copy() if start else np.full(len(labels), bias)
    trees: list[Any] = list(start[0]["trees"]) if start else []
    known = len(start[0]["features"]) if start else 0
    usable = np.arange(known % len(features), len(features))
    codes = _codes(signals, edges)
    for _ in range(how.trees):
        probability = 1 / (1 + np.exp(-logits))
        gradient, hessian = weights * (probability - labels), weights * probability * (1 - probability)
        columns = rng.permutation(usable)[: max(1, round(how.columns * len(usable)))]
        grown = _Grower(codes, gradient, hessian, edges, columns, how)
        tree, step = grown.grow(np.arange(len(labels)), how.depth)
        trees.append(tree)
        logits += step
    return {"features": list(features), "bias": round(bias, 4), "trees": trees}


def _edges(known: Float) -> Float:
    """Where a feature may be cut; nowhere when no case knows it."""
    return np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1])) if known.size else known


def _codes(signals: Float, edges: Sequence[Float]) -> Codes:
    """uint8 [cases, features]: how many cuts lie below a value; the last code is that of unknown ones."""
    codes = np.full(signals.shape, _UNKNOWN, np.uint8)
    for feature, cuts in enumerate(edges):
        known = ~np.isnan(signals[:, feature])
        codes[known, feature] = np.searchsorted(cuts, signals[known, feature], side="left")
    return codes


class _Grower:
    def __init__(
        self, codes: Codes, gradient: Float, hessian: Float, edges: Sequence[Float], columns: Any, how: Boosting
    ) -> None:
        self._codes = codes
        self._gradient, self._hessian = gradient, hessian
        self._edges, self._columns, self._how = edges, columns, how

    def grow(self, rows: Any, depth: int) -> tuple[Any, Float]:
        """The tree, and what it adds to each case."""
        step = np.zeros(len(self._codes))
        split = self._best_split(rows) if depth else None
        if split is None:
            value = round(-self._how.rate * self._gradient[rows].sum() / (self._hessian[rows].sum() + self._how.l2), 5)
            step[rows] = value
            return value, step
        feature, cut, unknown_below = split
        codes = self._codes[rows, feature]
        below = np.where(codes == _UNKNOWN, unknown_below, codes <= cut)
        left, left_step = self.grow(rows[below], depth - 1)
        right, right_step = self.grow(rows[~below], depth - 1)
        threshold = float(f"{self._edges[feature][cut]:.7g}")
        return [feature, threshold, left, right, int(unknown_below)], left_step + right_step

    def _best_split(self, rows: Any) -> tuple[int, int, bool] | None:
        """Feature, number of its cut, and whether unknown values go below."""
        gradient, hessian = self._gradient[rows], self._hessian[rows]
        totals = gradient.sum(), hessian.sum()
        whole = self._gain(*totals)
        best, found = _LEAST_GAIN, None
        for feature in map(int, self._columns):
            cuts = len(self._edges[feature])
            codes = self._codes[rows, feature]
            by_code = [np.bincount(codes, weights=each, minlength=_UNKNOWN + 1) for each in (gradient, hessian)]
            for unknown_below in (True, False) if by_code[1][_UNKNOWN] else (True,):
                low_gradient, low = (each[:cuts].cumsum() + each[_UNKNOWN] * unknown_below for each in by_code)
                high_gradient, high = totals[0] - low_gradient, totals[1] - low
                gains = self._gain(low_gradient, low) + self._gain(high_gradient, high) - whole
                gains[np.minimum(low, high) < self._how.least_weight] = 0.0
                cut = int(gains.argmax()) if cuts else 0
                if cuts and gains[cut] > best:
                    best, found = float(gains[cut]), (feature, cut, unknown_below)
        return found

    def _gain(self, gradient: Any, hessian: Any) -> Any:
        return gradient**2 / (hessian + self._how.l2)
