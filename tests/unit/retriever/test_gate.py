"""The similarity gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from services.retriever.models import EmbeddingSpace
from services.retriever.searching.gate import below, noise_cosine

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
    threshold = None if noise is None else lambda _: noise
    dropped = below(RANKED, COSINES, {"far but named"}, min_score=min_score, noise=threshold)
    assert set(dropped) == out
    assert all("0.1" in reason or "0.6" in reason for reason in dropped.values())


def test_each_hit_has_the_threshold_of_its_own() -> None:
    cosines = {"one": 0.3, "other": 0.3, "free": 0.3}
    thresholds = {"one": 0.4, "other": 0.2}
    dropped = below(cosines, cosines, set(), min_score=None, noise=thresholds.get)
    assert set(dropped) == {"one"}
    assert "below 0.4" in dropped["one"]


E5 = "multilingual-e5-small-q4-centred"


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    language: str
    spoken: Sequence[tuple[str, ...] | None]
    threshold: float | None


CASES = [
    Case("the English model", "all-MiniLM-L6-v2-int8", "en", [None], 0.25),
    Case("a model with its vendor", "sentence-transformers/all-MiniLM-L6-v2", "de", [("de",)], 0.25),
    Case("a model that was not measured", "bge-m3", "en", [None], None),
    Case("English asked in English", E5, "en", [("en",)], 0.377),
    Case("Chinese asked in Chinese", E5, "zh", [("zh", "ja")], 0.517),
    Case("Chinese asked in what may be it", E5, "zh", [None], 0.517),
    Case("Chinese asked in English", E5, "zh", [("en",)], 0.117),
    Case("English asked in a language of no document", E5, "en", [()], 0.117),
    Case("a language that was not measured, asked in it", E5, "fr", [("fr",)], 0.32),
    Case("a text of no known language", E5, "", [("en",)], 0.32),
    Case("one of two questions is in another language", E5, "en", [("en",), ("de",)], 0.117),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_threshold_is_the_models_for_the_languages_of_question_and_passage(case: Case) -> None:
    assert noise_cosine(EmbeddingSpace(case.model, 384), case.language, case.spoken) == case.threshold


def test_without_a_space_there_is_no_threshold() -> None:
    assert noise_cosine(None, "en", [None]) is None
