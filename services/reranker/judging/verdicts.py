"""From features to a probability: the networks of judge.npz, the boosted trees and the calibration of judge.json, which
scripts/judge/fit.py makes."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from services.reranker.judging import cues
from services.reranker.judging.features import FEATURES, compare
from services.reranker.judging.network import Weights
from services.reranker.judging.reading import ReadText

MODEL_FILE = Path(__file__).with_name("judge.json")
NETWORKS_FILE = Path(__file__).with_name("judge.npz")
JUDGE = "alignment/2"
"""Name of the judge in verdicts. It changes with the fitted model."""
FITTED_ON = "multilingual-e5-small-q4-centred"
"""The embedding model whose vectors the judge was fitted on: it knows no others."""


def judge(claim: ReadText, passage: ReadText) -> tuple[float, tuple[int, int]]:
    """How likely the passage carries the claim, 0 to 1, and the span of the unit that decides."""
    nowhere = passage.units[0][0], passage.units[0][0]
    if says_own_action(claim.text):
        return 0.0, nowhere
    compared = compare(claim, passage, networks())
    if compared is None:
        return 0.0, nowhere
    return probability_of(model(), compared.features), compared.span


def says_own_action(claim: str) -> bool:
    """Whether the assistant says that it has done something, which no document can carry."""
    return bool(cues.OWN_ACTION.match(claim))


@cache
def model() -> Mapping[str, Any]:
    """The fitted trees. Raises ValueError when they were fitted for other features, or beside other networks."""
    read: Mapping[str, Any] = json.loads(MODEL_FILE.read_text("utf-8"))
    check_model(read, NETWORKS_FILE.read_bytes())
    return read


def check_model(fitted: Mapping[str, Any], networks_file: bytes) -> None:
    """Raises ValueError when the trees do not belong to the features of this code or to these networks."""
    again = "run `python -m scripts.judge.fit` again, and keep both of its files"
    if tuple(fitted["features"]) != FEATURES:
        raise ValueError(f"{MODEL_FILE.name} was fitted for other features; {again}")
    if fitted["networks"] != sha256(networks_file).hexdigest():
        raise ValueError(f"{MODEL_FILE.name} was fitted beside another {NETWORKS_FILE.name}; {again}")


@cache
def networks() -> list[Weights]:
    """The fitted networks, float32."""
    model()
    found: dict[str, dict[str, Any]] = {}
    with np.load(NETWORKS_FILE, allow_pickle=False) as file:
        for key in file.files:
            number, name = key.split(".")
            found.setdefault(number, {})[name] = file[key].astype(np.float32)
    return list(found.values())


def probability_of(fitted: Mapping[str, Any], features: Sequence[float]) -> float:
    """Calibrated by Platt's method: a line through the trees' logits."""
    logit = fitted["bias"] + sum(_leaf(tree, features) for tree in fitted["trees"])
    slope, shift = fitted["calibration"]
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, slope * logit + shift))))


def _leaf(node: Any, features: Sequence[float]) -> float:
    """A node is a number, or [feature, threshold, below or equal, above, whether an unknown value goes below]."""
    while isinstance(node, list):
        feature, threshold, below, above, unknown_below = node
        value = features[feature]
        goes_below = bool(unknown_below) if math.isnan(value) else value <= threshold
        node = below if goes_below else above
    return float(node)
