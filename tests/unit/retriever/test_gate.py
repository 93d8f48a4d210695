"""The similarity gate."""

from __future__ import annotations

import pytest

from services.retriever.gate import below, noise_cosine
from services.retriever.models import EmbeddingSpace

COSINES = {"near": 0.6, "far": 0.1, "far but named": 0.1}
RANKED = ["near", "far", "far but named", "unknown"]


@pytest.mark.parametrize(
    ("min_score", "noise", "out"),
    [
        (None, None, set()),
        (None, 0.25, {"far"}),
        (0.3, 0.25, {"far", "far but named"}),
        (0.9, None, {"near", "far", "far but named"}),
        (-1.0, 0.25, set()),
    ],
)
def test_a_least_score_holds_for_all_and_the_noise_threshold_for_what_vectors_alone_found(
    min_score: float | None, noise: float | None, out: set[str]
) -> None:
    dropped = below(RANKED, COSINES, {"far but named"}, min_score=min_score, noise=noise)
    assert set(dropped) == out
    assert all("0.1" in reason or "0.6" in reason for reason in dropped.values())


@pytest.mark.parametrize(
    ("model", "setting", "threshold"),
    [
        ("all-MiniLM-L6-v2-int8", None, 0.25),
        ("sentence-transformers/all-MiniLM-L6-v2", None, 0.25),
        ("bge-m3", None, None),
        ("bge-m3", 0.5, 0.5),
        ("all-MiniLM-L6-v2", -1.0, -1.0),
    ],
)
def test_the_threshold_is_the_settings_or_the_models(
    model: str, setting: float | None, threshold: float | None
) -> None:
    assert noise_cosine(EmbeddingSpace(model, 384), setting) == threshold


def test_an_index_without_vectors_has_no_threshold() -> None:
    assert noise_cosine(None, None) is None
