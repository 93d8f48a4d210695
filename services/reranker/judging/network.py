"""A compare-aggregate network over the word vectors of a claim and its passage (after Parikh et al., arXiv:1606.01933).

Each word of the claim stands beside the word of the passage that it is aligned with. A small layer compares the two. A second
one reads each comparison beside those of its neighbours, and their mean and maxima decide. The alignment is not learned: the
other features are computed of the same one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.reranker.models import Float32

Weights = Mapping[str, Any]
"""Of the layers by name, float32; `components` [dimension, reduced] reduces the word vectors."""


@dataclass(frozen=True)
class Comparison:
    """The n words of a claim beside what they are aligned with."""

    own: Float32
    """[n, dimension]: vectors of the claim's words."""
    found: Float32
    """[n, dimension]: vectors of the words that they are aligned with."""
    seen: Float32
    """[n, SEEN]: what else is known of each pair of words."""
    counted: Float32
    """[n]: how much each word counts; their sum is one."""
    whole: Float32
    """[WHOLE]: what is known of the whole pair."""


def logits(weights: Weights, comparison: Comparison) -> Float32:
    """float32 [3]: for supported, contradicted, not found."""
    own, found = comparison.own @ weights["components"], comparison.found @ weights["components"]
    compared = relu(beside(own, found, comparison.seen) @ weights["compare"] + weights["compare_bias"])
    edge = np.zeros((1, compared.shape[1]), np.float32)
    before, after = np.concatenate([edge, compared[:-1]]), np.concatenate([compared[1:], edge])
    read = relu(np.concatenate([compared, before, after], 1) @ weights["read"] + weights["read_bias"])
    whole = np.concatenate([comparison.counted @ read, read.max(0), comparison.whole])
    decided = relu(whole @ weights["decide"] + weights["decide_bias"])
    return np.asarray(decided @ weights["say"] + weights["say_bias"])


def beside(own: Float32, found: Float32, seen: Float32) -> Float32:
    """What the first layer reads of each word: [n, 4 * reduced + SEEN]."""
    return np.concatenate([own, found, np.abs(own - found), own * found, seen], 1)


def relu(values: Float32) -> Float32:
    """Rectified linear units."""
    return np.maximum(values, 0)
