"""Pairs of sentences that disagree, put together: many sentences speak of one disagreement."""

from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.terms import tokens
from services.orchestrator.conflicts.disagreement import Disagreement, Value
from services.orchestrator.conflicts.values import stems_of


@dataclass(frozen=True)
class Pair:
    """Two passages that say the same of two values."""

    what: str
    left: Value
    right: Value


def grouped(pairs: Sequence[Pair]) -> list[Disagreement]:
    """One disagreement for all pairs whose values are linked, that of most pairs first.

    A shortened name stands for the whole one. Of several passages that say one value the first stays.
    """
    groups: list[list[Pair]] = []
    for pair in pairs:
        linked = [group for group in groups if any(_share_a_value(pair, other) for other in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*(each for group in linked for each in group), pair])
    groups.sort(key=len, reverse=True)
    return [Disagreement(group[0].what, _values(group)) for group in groups]


def _share_a_value(pair: Pair, other: Pair) -> bool:
    return any(is_same(ours, theirs) for ours in (pair.left, pair.right) for theirs in (other.left, other.right))


def is_same(value: Value, other: Value) -> bool:
    """Whether one is the other, or a part of it."""
    ours, theirs = stems_of(tokens(value.text)), stems_of(tokens(other.text))
    return ours <= theirs or theirs <= ours


def _values(group: Sequence[Pair]) -> tuple[Value, ...]:
    kept: list[Value] = []
    for value in (value for pair in group for value in (pair.left, pair.right)):
        if not any(is_same(value, other) for other in kept):
            kept.append(value)
    return tuple(kept)
