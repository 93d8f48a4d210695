"""Fitting the network of the judge of claims."""

import dataclasses

import numpy as np
import pytest

from scripts.judge import network as fitting
from scripts.judge.network import CONTRADICTED, FALSE, NOT_FOUND, SUPPORTED, Examples, examples_of, fit_network
from services.reranker.judging import network
from services.reranker.judging.network import Comparison

_WORDS, _DIMENSION, _SEEN, _WHOLE = 5, 80, 3, 2


def comparisons(count: int) -> list[Comparison]:
    """Of claims of one to five words; where the first measure is one, the claim is true."""
    rng = np.random.default_rng(1)
    made = []
    for number in range(count):
        words = 1 + number % _WORDS
        own, found, seen = (rng.normal(size=(words, size)) / 5 for size in (_DIMENSION, _DIMENSION, _SEEN))
        seen[:, 0] = number % 2
        arrays = own, found, seen, np.full(words, 1 / words), rng.normal(size=_WHOLE)
        made.append(Comparison(*(np.asarray(each, np.float32) for each in arrays)))
    return made


def examples(made: list[Comparison], targets: list[int]) -> Examples:
    components = np.eye(_DIMENSION, fitting.COMPONENTS, dtype=np.float32)
    return examples_of(made, components, targets, [1.0] * len(made))


def test_network_that_is_fitted_tells_what_it_was_shown() -> None:
    made = comparisons(96)
    targets = [SUPPORTED if number % 2 else CONTRADICTED for number in range(96)]
    components = np.eye(_DIMENSION, fitting.COMPONENTS, dtype=np.float32)
    weights = fit_network(examples(made, targets), components, seed=1, passes=40)
    said = [int(network.logits(weights, each).argmax()) for each in made]
    assert np.mean(np.array(said) == targets) > 0.9


@pytest.mark.parametrize("name", ["compare", "read", "decide", "say", "read_bias"])
def test_gradient_is_that_of_the_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small step along one weight changes the loss by as much as its slope says."""
    monkeypatch.setattr(fitting, "_DROPPED", 0.0)
    own = examples(comparisons(8), [SUPPORTED, CONTRADICTED, NOT_FOUND, SUPPORTED] * 2)
    own = dataclasses.replace(own, weights=own.weights.astype(float))
    rng = np.random.default_rng(2)
    weights = {key: rng.normal(size=each.shape) / 3 for key, each in fitting._first_weights(rng, own).items()}
    batch = np.arange(8)

    def loss(shift: float) -> float:
        moved = weights | {name: weights[name] + shift * direction}
        # Half of the loss that is shown, which is of true and false alone, is not what is followed: both are summed here.
        said = _logits(moved, own, batch)
        return _whole_loss(said, own.targets, own.weights)

    direction = rng.normal(size=weights[name].shape)
    _, slopes = fitting._gradient(weights, own, batch, rng)
    expected = (loss(1e-5) - loss(-1e-5)) / 2e-5
    assert float((slopes[name] * direction).sum()) == pytest.approx(expected, rel=1e-3, abs=1e-5)


def _logits(weights: dict[str, np.ndarray], own: Examples, batch: np.ndarray) -> np.ndarray:
    eye = np.eye(fitting.COMPONENTS)
    rows = [slice(own.starts[i], own.starts[i + 1]) for i in batch]
    pairs = [
        Comparison(own.own[r], own.found[r], own.seen[r], own.counted[r], own.whole[i])
        for i, r in zip(batch, rows, strict=True)
    ]
    return np.array([network.logits({**weights, "components": eye}, each) for each in pairs])


def _whole_loss(said: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
    shares = np.exp(said) / np.exp(said).sum(1, keepdims=True)
    own = shares[np.arange(len(targets)), targets]
    binary = np.where(targets == SUPPORTED, shares[:, 0], 1 - shares[:, 0])
    return float(-(weights * (np.log(own) + np.log(binary)) / 2).mean())


def test_claims_of_which_only_is_known_that_they_are_false_are_learned_too() -> None:
    own = examples(comparisons(8), [SUPPORTED, FALSE] * 4)
    weights = fitting._first_weights(np.random.default_rng(1), own)
    loss, slopes = fitting._gradient(weights, own, np.arange(8), np.random.default_rng(1))
    assert np.isfinite(loss)
    assert abs(float(slopes["say_bias"][0])) > 0
