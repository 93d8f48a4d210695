"""Fits the compare-aggregate network of services/reranker/judging/network.py: its gradient by hand, in numpy.

AdamW (arXiv:1711.05101) with a warm-up and a cosine. Whole components of the word vectors are dropped while it learns.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.reranker.judging.network import Comparison, beside, relu
from services.reranker.models import Float32

SUPPORTED, CONTRADICTED, NOT_FOUND, FALSE = range(4)
"""What a claim may be; of a FALSE one it is not known whether it is contradicted or not found."""
COMPONENTS = 64
_WIDTH = 48
_PASSES = 7
_BATCH = 64
_RATE, _WARM_UP, _DECAY, _DROPPED = 2e-3, 60, 0.02, 0.15
_MEAN, _SQUARE, _TINY = 0.9, 0.999, 1e-8
_Weights = dict[str, Any]


@dataclass(frozen=True)
class Examples:
    """Comparisons, one after another, with reduced vectors: the words of number i are rows starts[i] to starts[i + 1]."""

    own: Float32
    found: Float32
    seen: Float32
    counted: Float32
    whole: Float32
    starts: Any
    targets: Any
    weights: Any


def principal_components(vectors: Float32) -> Float32:
    """float32 [dimension, COMPONENTS], of vectors [words, dimension]."""
    _, found = np.linalg.eigh(vectors.T @ vectors)
    return np.ascontiguousarray(found[:, ::-1][:, :COMPONENTS], np.float32)


def examples_of(
    comparisons: Sequence[Comparison], components: Float32, targets: Sequence[int], weights: Sequence[float]
) -> Examples:
    """The examples for `fit_network`."""
    return Examples(
        np.concatenate([each.own @ components for each in comparisons]),
        np.concatenate([each.found @ components for each in comparisons]),
        np.concatenate([each.seen for each in comparisons]),
        np.concatenate([each.counted for each in comparisons]),
        np.stack([each.whole for each in comparisons]),
        np.cumsum([0, *(len(each.counted) for each in comparisons)]),
        np.array(targets),
        np.array(weights, np.float32),
    )


def fit_network(examples: Examples, components: Float32, seed: int, passes: int = _PASSES) -> _Weights:
    """The weights, `components` among them."""
    rng = np.random.default_rng(seed)
    weights = _first_weights(rng, examples)
    means, squares = ({name: np.zeros_like(each) for name, each in weights.items()} for _ in range(2))
    count = len(examples.targets)
    total, done = passes * -(-count // _BATCH), 0
    for number in range(passes):
        losses = []
        order = rng.permutation(count)
        for batch in np.split(order, range(_BATCH, count, _BATCH)):
            done += 1
            rate = _RATE * min(1, done / _WARM_UP) * (1 + np.cos(np.pi * done / total)) / 2
            loss, slopes = _gradient(weights, examples, batch, rng)
            losses.append(loss)
            _move(weights, slopes, means, squares, rate, done)
        sys.stderr.write(f"network {seed}, pass {number + 1} of {passes}: loss {np.mean(losses):.4f}\n")
    return {**weights, "components": components}


def _first_weights(rng: np.random.Generator, examples: Examples) -> _Weights:
    sizes = {
        "compare": 4 * COMPONENTS + examples.seen.shape[1],
        "read": 3 * _WIDTH,
        "decide": 2 * _WIDTH + examples.whole.shape[1],
    }
    weights: _Weights = {"say": np.zeros((_WIDTH, 3), np.float32), "say_bias": np.zeros(3, np.float32)}
    for name, inputs in sizes.items():
        weights[name] = np.asarray(rng.normal(size=(inputs, _WIDTH)) * np.sqrt(2 / inputs), np.float32)
        weights[f"{name}_bias"] = np.zeros(_WIDTH, np.float32)
    return weights


def _gradient(
    weights: Mapping[str, Any], examples: Examples, batch: Any, rng: np.random.Generator
) -> tuple[float, _Weights]:
    """Mean loss of a batch, and its slope by each weight."""
    starts, ends = examples.starts[batch], examples.starts[batch + 1]
    rows = np.concatenate([np.arange(start, end) for start, end in zip(starts, ends, strict=True)])
    first = np.cumsum([0, *(ends - starts)[:-1]])
    owner = np.repeat(np.arange(len(batch)), ends - starts)
    kept = (rng.random(COMPONENTS) >= _DROPPED).astype(np.float32) / (1 - _DROPPED)
    inputs = beside(examples.own[rows] * kept, examples.found[rows] * kept, examples.seen[rows])
    counted = examples.counted[rows][:, None]
    compared = relu(inputs @ weights["compare"] + weights["compare_bias"])
    around = _beside_neighbours(compared, first)
    read = relu(around @ weights["read"] + weights["read_bias"])
    highest = np.maximum.reduceat(read, first)
    whole = np.concatenate([np.add.reduceat(read * counted, first), highest, examples.whole[batch]], 1)
    decided = relu(whole @ weights["decide"] + weights["decide_bias"])
    loss, back = _loss(decided @ weights["say"] + weights["say_bias"], examples.targets[batch], examples.weights[batch])
    slopes: _Weights = {}

    def through(name: str, inputs: Float32, back: Float32) -> Float32:
        slopes[name], slopes[f"{name}_bias"] = inputs.T @ back, back.sum(0)
        return np.asarray(back @ weights[name].T)

    back = through("decide", whole, through("say", decided, back) * (decided > 0))
    to_mean, to_highest = back[:, :_WIDTH], back[:, _WIDTH : 2 * _WIDTH]
    back = to_mean[owner] * counted + to_highest[owner] * (read == highest[owner])
    back = _from_neighbours(through("read", around, back * (read > 0)), first)
    through("compare", inputs, back * (compared > 0))
    return loss, slopes


def _beside_neighbours(compared: Float32, first: Any) -> Float32:
    before, after = np.zeros_like(compared), np.zeros_like(compared)
    before[1:], after[:-1] = compared[:-1], compared[1:]
    before[first], after[first[1:] - 1] = 0, 0
    return np.concatenate([compared, before, after], 1)


def _from_neighbours(back: Float32, first: Any) -> Float32:
    here, before, after = np.split(back, 3, 1)
    before[first], after[first[1:] - 1] = 0, 0
    here[:-1] += before[1:]
    here[1:] += after[:-1]
    return np.asarray(here)


def _loss(said: Float32, targets: Any, weights: Any) -> tuple[float, Float32]:
    """Half the cross-entropy of the three classes, half that of true and false; and its slope by the logits."""
    powers = np.exp(said - said.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    wanted = np.eye(3, dtype=np.float32)[np.minimum(targets, NOT_FOUND)]
    false = shares * [0, 1, 1]
    false /= false.sum(1, keepdims=True) + _TINY
    binary = np.where((targets == SUPPORTED)[:, None], wanted, false)
    wanted = np.where((targets == FALSE)[:, None], false, wanted)
    right = np.where(targets == SUPPORTED, shares[:, 0], 1 - shares[:, 0])
    back = (shares - (wanted + binary) / 2) * weights[:, None] / len(targets)
    return float(-(weights * np.log(right + _TINY)).mean()), np.asarray(back, np.float32)


def _move(weights: _Weights, slopes: _Weights, means: _Weights, squares: _Weights, rate: float, done: int) -> None:
    norm = np.sqrt(sum(float((each**2).sum()) for each in slopes.values()))
    for name, slope in slopes.items():
        own = slope / max(1.0, norm)
        means[name] = _MEAN * means[name] + (1 - _MEAN) * own
        squares[name] = _SQUARE * squares[name] + (1 - _SQUARE) * own**2
        step = means[name] / (1 - _MEAN**done) / (np.sqrt(squares[name] / (1 - _SQUARE**done)) + _TINY)
        decay = _DECAY * weights[name] if weights[name].ndim > 1 else 0.0
        weights[name] = np.asarray(weights[name] - rate * (step + decay), np.float32)
