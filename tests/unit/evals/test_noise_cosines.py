"""Thresholds of noise, on vectors made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evals.noise_cosines import Embedded, measure, report


def embedded(cosine: float) -> Embedded:
    """Four documents at right angles, and for each one question that has this cosine with it and as much with its neighbour as is
    left."""
    documents = np.eye(4, dtype=np.float32)
    queries = cosine * documents + np.sqrt(1 - cosine**2) * np.roll(documents, 1, axis=1)
    return Embedded(documents, queries.astype(np.float32), np.arange(4))


HALF = np.array([0, 1, 0, 1])


def test_threshold_is_fitted_on_one_half_and_tested_on_the_other() -> None:
    found = measure(embedded(0.8), embedded(0.8), HALF)
    assert found.threshold == pytest.approx(0.8, abs=1e-6)
    assert found.emptied == 1.0, "the neighbour, of the other half, has a cosine of 0.6"
    assert found.auroc == 1.0
    assert measure(embedded(0.8), embedded(0.8), HALF, 0.5).emptied == 0.0
    assert measure(embedded(0.8), embedded(0.8), HALF, 0.9).lost == 1.0


def test_report_has_a_threshold_for_each_language_and_one_for_all_pairs() -> None:
    within, across, table = report({"en": embedded(0.8), "de": embedded(0.6)}, HALF)
    assert within == {"en": 0.8, "de": 0.6}
    assert across == 0.6
    assert "2 pairs of languages" in table
