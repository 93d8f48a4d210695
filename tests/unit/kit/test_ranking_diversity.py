"""Maximal marginal relevance."""

from __future__ import annotations

import numpy as np
import pytest

from kit.ranking.diversity import most_diverse

RANKED = {"a": 1.0, "again": 0.9, "b": 0.5, "c": 0.1}
VECTORS = {
    "a": np.array([1, 0, 0], dtype=np.float32),
    "again": np.array([1, 0, 0], dtype=np.float32),
    "b": np.array([0, 1, 0], dtype=np.float32),
    "c": np.array([0, 0, 1], dtype=np.float32),
}


@pytest.mark.parametrize(
    ("diversity", "chosen"),
    [(0.0, ["a", "again", "b"]), (0.1, ["a", "again", "b"]), (0.5, ["a", "b", "c"]), (1.0, ["a", "b", "c"])],
)
def test_what_repeats_gives_way_as_diversity_grows(diversity: float, chosen: list[str]) -> None:
    assert most_diverse(RANKED, VECTORS, 3, diversity) == chosen


def test_a_chunk_without_a_vector_repeats_nothing() -> None:
    vectors = {key: vector for key, vector in VECTORS.items() if key != "again"}
    assert most_diverse(RANKED, vectors, 2, 0.5) == ["a", "again"]


def test_no_more_are_chosen_than_there_are() -> None:
    assert most_diverse({}, {}, 5, 0.5) == []
    assert sorted(most_diverse(RANKED, VECTORS, 9, 0.5)) == sorted(RANKED)
