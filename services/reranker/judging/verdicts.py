"""From features to a verdict: the networks of judge.npz, the boosted trees and the calibration of judge.json, which
scripts/judge/fit.py makes, behind exact rules, which only lower what those say. What a passage says word for word is carried."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from services.reranker.judging import cues
from services.reranker.judging.features import ALIGNMENT, FEATURES, compare
from services.reranker.judging.forest import Forest
from services.reranker.judging.network import Weights
from services.reranker.judging.reading import ReadText
from services.reranker.judging.reasons import ceilings, shares_of_false, signals, word_for_word
from services.reranker.judging.rules.table import RULES, Rule, rules_against
from services.reranker.judging.rules.word_for_word import stands_word_for_word

MODEL_FILE = Path(__file__).with_name("judge.json")
NETWORKS_FILE = Path(__file__).with_name("judge.npz")
JUDGE = "alignment/4"
"""Name of the judge in verdicts. It changes with the fitted model."""
THRESHOLD = 0.5
"""Probability from which on a claim counts as carried."""
FITTED_ON = "multilingual-e5-small-q4-centred"
"""The embedding model whose vectors the judge was fitted on: it knows no others."""


@dataclass(frozen=True)
class Judged:
    """What is said of a claim. `probability` is calibrated on claims that were left out; the other two are not."""

    probability: float
    """That the passage carries it."""
    span: tuple[int, int]
    """Of the unit that decides."""
    contradiction: float = 0.0
    """That the passage says the opposite."""
    partial: float = 0.0
    """That the passage carries a part of it and not the rest."""
    rules: tuple[str, ...] = ()
    """Names of those that speak against it."""
    without_rules: float = 0.0
    """The probability that the passage carries it, but for the rules."""


def judge(claim: ReadText, passage: ReadText, rules: Sequence[Rule] = RULES) -> Judged:
    """What the passage says to the claim."""
    nowhere = Judged(0.0, (passage.units[0][0], passage.units[0][0]))
    compared = None if says_own_action(claim.text) else compare(claim, passage, networks())
    if compared is None:
        return nowhere
    worth = ceilings()
    found = [rule for rule in rules_against(compared.alignment, rules) if worth[rule.name] < 1.0]
    probability = probability_of(compared.features)
    if stands_word_for_word(compared.alignment):
        probability = max(probability, word_for_word())
    ruled = min([probability, *(worth[rule.name] for rule in found)])
    by_name = dict(zip(FEATURES, compared.features, strict=True))
    contradiction, partial = shares_of_false(found, signals(by_name, compared.features[len(ALIGNMENT) :]))
    false = 1.0 - ruled
    names = tuple(rule.name for rule in found)
    return Judged(ruled, compared.span, false * contradiction, false * partial, names, probability)


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


@cache
def forest() -> Forest:
    """The fitted trees, as they are asked."""
    return Forest(model()["trees"])


def probability_of(features: Sequence[float]) -> float:
    """Calibrated by Platt's method: a line through the trees' logits."""
    fitted = model()
    logit = fitted["bias"] + forest().total(features)
    slope, shift = fitted["calibration"]
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, slope * logit + shift))))
