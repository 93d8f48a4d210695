"""Why a claim is false, and what the exact rules are worth: the figures of rules.json, which scripts/judge/rules.py makes."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from services.reranker.judging.rules.table import Rule

RULES_FILE = Path(__file__).with_name("rules.json")
REASONS = ("contradicted", "partly")
_SIGNALS = ("unmatched_tail", "new_content", "unmatched_run", "cause_claim")
_RULED = 0.8
"""How likely it is that a rule that speaks against a false claim says why it is false."""


def ceilings() -> Mapping[str, float]:
    """By rule: how often a claim is true against which it speaks. 1 for a rule that has no say."""
    found: Mapping[str, float] = _fitted()["ceilings"]
    return found


def word_for_word() -> float:
    """How often a claim is true that a passage says word for word."""
    found: float = _fitted()["word_for_word"]
    return found


def signals(alignment: Mapping[str, float], network: Sequence[float]) -> list[float]:
    """What tells why a claim is false: what the networks say, and how its words are aligned."""
    return [*network, *(0.0 if math.isnan(alignment[name]) else alignment[name] for name in _SIGNALS)]


def shares_of_false(rules: Sequence[Rule], told_by: Sequence[float]) -> tuple[float, float]:
    """How likely a claim that is false is contradicted, and is true in part. What a rule says comes first."""
    contradicted, partly = (_share(_fitted()[reason], told_by) for reason in REASONS)
    if any(rule.is_contradiction for rule in rules):
        contradicted = max(contradicted, _RULED)
    elif any(rule.is_addition for rule in rules):
        partly = max(partly, _RULED)
    total = max(1.0, contradicted + partly)
    return contradicted / total, partly / total


def _share(weights: Sequence[float], told_by: Sequence[float]) -> float:
    *own, shift = weights
    logit = shift + sum(weight * signal for weight, signal in zip(own, told_by, strict=True))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


@cache
def _fitted() -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads(RULES_FILE.read_text("utf-8"))
    return read
