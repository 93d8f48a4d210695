"""How often each judge is wrong, as docs/evaluation.md publishes it, and whether that is seldom enough."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FIGURES_FILE = Path(__file__).with_name("figures.json")
_MOST_FALSE_PASSED = _MOST_TRUE_FAILED = 0.15
_LEAST_GAIN = 0.1
"""A judge may say that a source supports a claim with such shares over all labelled claims and such a gain on each public set."""


@dataclass(frozen=True)
class JudgeFigures:
    """Errors of a judge on labelled claims that it was not fitted on, of all kinds together. People see them beside each
    verdict, so a set on which the judge does well must not speak for the others."""

    false_passed: float
    """Share of false claims that pass."""
    true_failed: float
    """Share of true claims that do not."""
    claims: int
    gains: Mapping[str, float] = field(default_factory=dict)
    """By public set, how much higher its balanced accuracy is than that of the words alone."""

    @property
    def are_good(self) -> bool:
        """Whether the judge may say that a source supports a claim."""
        shares_are_low = self.false_passed <= _MOST_FALSE_PASSED and self.true_failed <= _MOST_TRUE_FAILED
        return shares_are_low and bool(self.gains) and min(self.gains.values()) >= _LEAST_GAIN


def figures_of(judge: str) -> JudgeFigures | None:
    """None where the judge was not measured."""
    return _published().get(judge)


@cache
def _published() -> dict[str, JudgeFigures]:
    read = json.loads(FIGURES_FILE.read_text("utf-8"))
    return {name: JudgeFigures(**figures) for name, figures in read.items()}
