"""Fusion by hand-made tables."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kit.ranking.fusion import RankedList, blend_rerank, convex_combination, min_max, reciprocal_rank_fusion


@dataclass(frozen=True)
class Case:
    name: str
    lists: list[RankedList]
    expected: dict[str, float]


RRF_CASES = [
    Case("nothing", [], {}),
    Case("one list keeps its order", [RankedList("ab", [9, 1])], {"a": 1 / 61, "b": 1 / 62}),
    Case(
        "agreement beats one first place",
        [RankedList("abc", [3, 2, 1]), RankedList("dbe", [3, 2, 1])],
        {"b": 2 / 62, "a": 1 / 61, "d": 1 / 61, "c": 1 / 63, "e": 1 / 63},
    ),
    Case(
        "weight decides between equals",
        [RankedList("a", [1], 1.0), RankedList("b", [1], 2.0)],
        {"b": 2 / 61, "a": 1 / 61},
    ),
    Case("an empty list changes nothing", [RankedList("", []), RankedList("a", [1])], {"a": 1 / 61}),
]

CONVEX_CASES = [
    Case("nothing", [], {}),
    Case("scores are normalised per list", [RankedList("abc", [30, 20, 10])], {"a": 1.0, "b": 0.5, "c": 0.0}),
    Case(
        "an absent id counts 0",
        [RankedList("ab", [2, 1]), RankedList("bc", [0.9, 0.1])],
        {"a": 0.5, "b": 0.5, "c": 0.0},
    ),
    Case("weights are shares", [RankedList("a", [1], 3.0), RankedList("b", [1], 1.0)], {"a": 0.75, "b": 0.25}),
    Case(
        "some ids have weights of their own",
        [
            RankedList("ab", [2, 1], 0.5, floor=0.0, weights={"b": 0.9}),
            RankedList("ca", [4, 2], 0.5, floor=0.0, weights={"c": 0.1}),
        ],
        {"a": 0.75, "b": 0.45, "c": 0.1},
    ),
    Case("weights of zero do not divide by zero", [RankedList("a", [1], 0.0)], {"a": 0.0}),
]


@pytest.mark.parametrize("case", RRF_CASES, ids=lambda case: case.name)
def test_reciprocal_rank_fusion(case: Case) -> None:
    fused = reciprocal_rank_fusion(case.lists)
    assert fused == pytest.approx(case.expected)
    assert list(fused) == list(case.expected)


@pytest.mark.parametrize("case", CONVEX_CASES, ids=lambda case: case.name)
def test_convex_combination(case: Case) -> None:
    fused = convex_combination(case.lists)
    assert fused == pytest.approx(case.expected)
    assert list(fused) == list(case.expected)


def test_min_max_of_equal_scores_is_one() -> None:
    assert min_max([]) == []
    assert min_max([7.0]) == [1.0]
    assert min_max([2.0, 2.0]) == [1.0, 1.0]


def test_rerank_moves_the_head_and_never_lifts_what_it_did_not_see() -> None:
    fused = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.1}
    blended = blend_rerank(fused, {"a": -5.0, "b": 1.0, "c": 3.0}, weight=0.5)
    assert list(blended) == ["c", "b", "a", "d"]
    assert blend_rerank(fused, {"a": 0.0, "b": 1.0}, weight=0.0) == pytest.approx(
        {"a": 1.0, "b": 0.875, "c": 0.75, "d": 0.0}
    )
