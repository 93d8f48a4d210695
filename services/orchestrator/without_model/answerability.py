"""How likely a unit answers its question: boosted trees over the signals, read from answerability.json, or from
answerability_by_words.json while no similarity is known: trees that have always seen one take an unknown one for a low one.
scripts/fit_answerability.py makes both, and says what they hold."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from services.orchestrator.without_model.signals import FEATURES

MODEL_FILE = Path(__file__).with_name("answerability.json")
MODEL_FILE_BY_WORDS = Path(__file__).with_name("answerability_by_words.json")
SEMANTIC = FEATURES.index("semantic")


def probability(signals: Sequence[float]) -> float:
    """Calibrated, 0 to 1."""
    return probability_of(model(MODEL_FILE_BY_WORDS if by_words(signals) else MODEL_FILE), signals)


def by_words(signals: Sequence[float]) -> bool:
    """Whether no similarity is known."""
    return math.isnan(signals[SEMANTIC])


@cache
def model(file: Path) -> Mapping[str, Any]:
    """The fitted model. Raises ValueError when it was fitted for other features."""
    read: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    if tuple(read["features"]) != FEATURES:
        raise ValueError(f"{file.name} was fitted for other features; run scripts/fit_answerability.py again")
    return read


def probability_of(fitted: Mapping[str, Any], signals: Sequence[float]) -> float:
    """By this model."""
    logit = fitted["bias"] + sum(_leaf(tree, signals) for tree in fitted["trees"])
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def _leaf(node: Any, signals: Sequence[float]) -> float:
    """A node is a number, or [feature, threshold, below or equal, above, whether an unknown value goes below]."""
    while isinstance(node, list):
        feature, threshold, below, above, unknown_below = node
        value = signals[feature]
        goes_below = bool(unknown_below) if math.isnan(value) else value <= threshold
        node = below if goes_below else above
    return float(node)
