"""The fitted trees in arrays say what a walk through each of them says."""

import math
from typing import Any

import numpy as np

from services.reranker.judging.features import FEATURES
from services.reranker.judging.forest import Forest
from services.reranker.judging.verdicts import model


def walked(node: Any, features: list[float]) -> float:
    """The leaf of one tree."""
    while isinstance(node, list):
        feature, threshold, below, above, unknown_below = node
        value = features[feature]
        goes_below = bool(unknown_below) if math.isnan(value) else value <= threshold
        node = below if goes_below else above
    return float(node)


def test_forest_says_what_its_trees_say() -> None:
    rng = np.random.default_rng(3)
    forest = Forest(model()["trees"])
    for _ in range(20):
        features = rng.normal(size=len(FEATURES)) * 2
        features[rng.random(len(FEATURES)) < 0.2] = math.nan
        assert math.isclose(
            forest.total(features.tolist()), sum(walked(tree, features.tolist()) for tree in model()["trees"])
        )


def test_tree_that_is_a_leaf_alone_counts() -> None:
    assert Forest([0.5, [0, 1.0, 1.0, [1, 0.0, 2.0, 3.0, 1], 0]]).total([2.0, math.nan]) == 2.5
