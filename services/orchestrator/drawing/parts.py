"""Parts of a drawing and their proof: the place of a passage where the words and the number of a part stand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.grounding import content_terms, coverage
from kit.language.sentences import split_units
from services.orchestrator.drawing.forms import Form
from services.orchestrator.log.events import Evidence
from services.orchestrator.quizzes.numbers import values_of

_LEAST_CARRIED = 0.6
"""Share of the content words of a part that its passage must have. All its numbers and names must stand there."""
_NUMBER = re.compile(r"(?<![\w.,])[-−]?(?!0\d)\d+(?:[.,'’   ]\d+)*")
_SCALES = (
    (1e3, r"thousand|k\b|tsd|tausend|mille|mil\b|тыс"),
    (1e6, r"million|mio|mn\b|m\b|millones|milioni|млн"),
    (1e9, r"billion|bn\b|b\b|mrd|milliard|mil millones|miliard|млрд"),
    (1e12, r"trillion|bio\b|billones|трлн"),
)
_NEAR = 1e-9


@dataclass(frozen=True)
class Part:
    """One thing that is drawn, with the characters of the passage that prove it."""

    path: str
    """A JSON Pointer into the body."""
    text: str
    """The same as a line of text."""
    source: int
    """Number of the passage."""
    start: int
    end: int


@dataclass(frozen=True)
class Drawing:
    """What is shown: a body by the schema of its kind, and its parts."""

    kind: str
    form: Form
    title: str
    body: Mapping[str, Any]
    parts: Sequence[Part]
    left_out: Sequence[str] = ()
    """What was to be drawn and stands in no passage, as sentences."""


class Proofs:
    """Finds the place of a passage that proves a part."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._evidence = {each.number: each for each in evidence}

    def of_words(self, words: str, source: int) -> tuple[int, int] | None:
        """Where the words stand, or all of the passage where no line has them; None where it does not carry them."""
        passage = self._evidence.get(source)
        if passage is None or coverage(words, [readable(passage)]) < _LEAST_CARRIED:
            return None
        start, end = place(passage.text, words)
        is_whole = coverage(words, [passage.text[start:end]]) >= _LEAST_CARRIED
        return (start, end) if is_whole else (0, len(passage.text))

    def of_number(self, value: float, words: str, source: int) -> tuple[int, int] | None:
        """Where the number stands that belongs to these words; None where the passage has no such number, or not the words."""
        passage = self._evidence.get(source)
        if passage is None or coverage(words, [readable(passage)]) < _LEAST_CARRIED:
            return None
        wanted = content_terms(words).content
        holding = [
            (len(wanted & content_terms(text).content), -len(text), start, end)
            for text, start, end in lines(passage.text)
            if any(abs(value - each) <= _NEAR * max(1.0, abs(value)) for each in numbers_of(text))
        ]
        if not holding:
            return None
        _, _, start, end = max(holding)
        return start, end


def readable(passage: Evidence) -> str:
    """All that a passage says, with the names above it."""
    return " ".join([passage.document_name, *passage.heading_path, passage.text])


def place(text: str, words: str) -> tuple[int, int]:
    """The line or sentence that shares most words with these, of several the one that has them as they are written (the share
    "ALL"); all of the text where none shares any."""
    wanted = content_terms(words).content
    literal = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
    ranked = [
        (len(wanted & content_terms(line).content), literal.search(line) is not None, -len(line), start, end)
        for line, start, end in lines(text)
    ]
    best = max(ranked, default=(0, False, 0, 0, 0))
    return best[3:] if best[0] or best[1] else (0, len(text))


def lines(text: str) -> list[tuple[str, int, int]]:
    """Sentences, items and rows of a passage, with their places."""
    found = []
    for unit in split_units(text):
        at = unit.start
        for line in unit.text.splitlines(keepends=True):
            if line.strip():
                found.append((line.strip(), at, at + len(line.rstrip())))
            at += len(line)
        if "\n" in unit.text:
            found.append((unit.text, unit.start, unit.end))
    return found


def numbers_of(text: str) -> set[float]:
    """All values that the numbers of a text may mean, also times the "million" behind them."""
    found: set[float] = set()
    for match in _NUMBER.finditer(text):
        values = values_of(match.group())
        found.update(values)
        for scale, names in _SCALES:
            if re.match(rf"\s?-?(?:{names})", text[match.end() :], re.IGNORECASE):
                found.update(scale * each for each in values)
    return found
