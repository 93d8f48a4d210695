"""Is a sentence carried by its sources? Judged without a model, by the words: the content words of a sentence must stand in
the passages, and every number and name in it must."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from typing import Protocol

from kit.language.cues import is_negated
from kit.language.questions import read_question
from kit.language.sentences import Unit, split_units
from kit.language.terms import Token, stem, tokens

SUPPORT_THRESHOLD = 0.6
"""Share of a sentence's content words that its passages must contain. Copied sentences have 1. A choice, not a measurement:
it lets a paraphrase change two words in five. To be set by evals/ on labelled claims."""
_ELLIPTICAL_TERMS = 2
"""A sentence with this few content words means nothing without its question."""
_SOURCE_WORDS = frozenset(map(stem, ("source", "document", "reference", "citation", "passage", "file", "page")))
_EMPTY_WORDS = frozenset(map(stem, ("yes", "no", "see", "answer", "question")))
_CLOSE = 0.6
"""Share of words that two sentences have in common when one can be read as denying the other."""


_LEAST_BEGINNING = 4
_BEGINNING_SHARE = 0.6
"""Letters that two forms of a word begin with, and their share of the longer one. With it more of a question is found in the
paragraph that answers it (XQuAD: DE, TR), and hardly more in others."""


class SourceText(Protocol):
    """A passage that may carry a sentence; `number` is what a citation says."""

    @property
    def number(self) -> int: ...

    @property
    def document_name(self) -> str: ...

    @property
    def heading_path(self) -> Sequence[str]: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class ContentTerms:
    """Stems of the words that mean something."""

    content: frozenset[str]
    strict: frozenset[str]
    """Numbers and names: these must all be found."""


Terms = Callable[[str], ContentTerms]


def content_terms(text: str) -> ContentTerms:
    """Of a text of any language."""
    content = [token for token in tokens(text) if not token.is_stopword]
    strict = frozenset(token.stem for token in content if token.is_exact)
    return ContentTerms(frozenset(token.stem for token in content), strict)


def coverage(sentence: str, passages: Sequence[str], terms: Terms = content_terms) -> float:
    """Share of the sentence's content words found in the passages, 0 to 1; 0 when a number or a name is missing there."""
    wanted = terms(sentence)
    content = wanted.content - _EMPTY_WORDS
    if not content:
        return 0.0
    found = frozenset().union(*(terms(passage).content for passage in passages))
    if wanted.strict - found:
        return 0.0
    return len(content & found) / len(content)


def question_coverage(question: str, passages: Sequence[str]) -> tuple[float, Sequence[str]]:
    """Share of the question's content words that the passages contain, 0 to 1, and those that they do not contain, as written."""
    asked = read_question(question).terms
    found = frozenset().union(*(content_terms(passage).content for passage in passages))
    missing = [term.surface for term in asked if not _is_among(term, found)]
    return (1.0 - len(missing) / len(asked) if asked else 0.0), missing


def _is_among(term: Token, found: frozenset[str]) -> bool:
    """Whether the word is there, in this form or one that begins alike: most languages inflect, and only English is stemmed."""
    if term.stem in found or _numbers(frozenset([term.stem])):
        return term.stem in found
    return any(_begin_alike(term.stem, other) for other in found)


def _begin_alike(word: str, other: str) -> bool:
    letters = max(_LEAST_BEGINNING, math.ceil(_BEGINNING_SHARE * max(len(word), len(other))))
    return len(word) >= letters and word[:letters] == other[:letters]


class Judge:
    """Judges sentences of an answer against the evidence set.

    With `question`, a sentence too short to stand alone ("14 weeks.") is read as the answer to it: its words must stand in one
    sentence of the source together with half of the question's. Quotes need no such reading: judge them without.
    """

    def __init__(self, evidence: Sequence[SourceText], question: str = "") -> None:
        self._evidence = evidence
        self._terms: Terms = cache(content_terms)  # texts are analysed once, and let go of with the judge
        self._readable = {source.number: _readable(source) for source in evidence}
        self._asked = self._terms(question).content
        names = (self._terms(f"{source.document_name} {source.number}").content for source in evidence)
        self._not_claimed = _SOURCE_WORDS.union(_EMPTY_WORDS, *names)

    @cached_property
    def _units(self) -> Mapping[int, Sequence[str]]:
        return {source.number: _units(source) for source in self._evidence}

    @cached_property
    def _sentences(self) -> Mapping[int, Sequence[Unit]]:
        return {source.number: split_units(source.text) for source in self._evidence}

    def is_claim(self, sentence: str) -> bool:
        """Whether there is anything to check. Interjections ("Yes."), questions and mentions of a source say nothing."""
        return not sentence.endswith(("?", "？", "؟")) and bool(self._terms(sentence).content - self._not_claimed)

    def is_mention(self, sentence: str) -> bool:
        """Whether the sentence only names its sources ("Source: handbook.pdf"): marks do that."""
        content = self._terms(sentence).content
        return bool(content & _SOURCE_WORDS) and not content - self._not_claimed

    def score(self, sentence: str, numbers: Sequence[int]) -> float:
        """Share of the sentence's content words that the sources `numbers` contain, 0 to 1."""
        known = [number for number in numbers if number in self._readable]
        if self._asked and self.denies(sentence, known):
            return 0.0
        if self._asked and len(self._terms(sentence).content - _EMPTY_WORDS) <= _ELLIPTICAL_TERMS:
            return max((self._elliptical_score(sentence, number) for number in known), default=0.0)
        return coverage(sentence, [self._readable[number] for number in known], self._terms) if known else 0.0

    def denies(self, sentence: str, numbers: Sequence[int]) -> bool:
        """Whether the sentence says no where the sentence of the source that it is closest to says yes, or the other way round."""
        wanted = self._terms(sentence).content - _EMPTY_WORDS
        units = [unit.text for number in numbers for unit in self._sentences[number]]
        shared = {unit: len(wanted & self._terms(unit).content) for unit in units}
        most = max(shared.values(), default=0)
        if most < _CLOSE * len(wanted):
            return False
        closest = [unit for unit, count in shared.items() if count == most]
        if is_negated(sentence):
            return not any(is_negated(unit, loosely=True) for unit in closest)
        # A long sentence may deny something else in a clause of its own.
        alike = [unit for unit in closest if most >= _CLOSE * len(self._terms(unit).content)]
        return bool(alike) and all(is_negated(unit) for unit in alike) and not is_negated(sentence, loosely=True)

    def closest(self, sentence: str, number: int) -> tuple[str, float]:
        """The sentence of the source that shares most of its words, and which share of them; nothing and 0 where there is none."""
        unit, share = self._closest(sentence, number)
        return ("", 0.0) if unit is None else (unit.text, share)

    def closest_span(self, sentence: str, number: int) -> tuple[int, int]:
        """Where that sentence stands in the source's text; (0, 0) where there is none."""
        unit, _ = self._closest(sentence, number)
        return (0, 0) if unit is None else (unit.start, unit.end)

    def _closest(self, sentence: str, number: int) -> tuple[Unit | None, float]:
        wanted = self._terms(sentence).content - _EMPTY_WORDS
        shared = [
            (len(wanted & self._terms(unit.text).content), -len(unit.text), unit) for unit in self._sentences[number]
        ]
        most, _, best = max(shared, key=itemgetter(0, 1), default=(0, 0, None))
        return (best, most / len(wanted)) if most else (None, 0.0)

    def disagrees(self, sentence: str, number: int) -> bool:
        """Whether the source's closest sentence denies it, or says the same of another number or name."""
        if self.denies(sentence, (number,)):
            return True
        there, share = self.closest(sentence, number)
        if share < _CLOSE:
            return False
        claimed, stated = self._terms(sentence), self._terms(there)
        readable = self._terms(self._readable[number]).content
        return any(
            of_kind(claimed.strict - readable) and of_kind(stated.strict - claimed.content)
            for of_kind in (_numbers, _names)
        )

    def _elliptical_score(self, sentence: str, number: int) -> float:
        return max(
            (
                coverage(sentence, [unit], self._terms)
                for unit in self._units[number]
                if len(self._terms(unit).content & self._asked) >= len(self._asked) / 2
            ),
            default=0.0,
        )


def _numbers(stems: frozenset[str]) -> bool:
    return any(any(map(str.isdigit, each)) for each in stems)


def _names(stems: frozenset[str]) -> bool:
    return any(not any(map(str.isdigit, each)) for each in stems)


def _readable(source: SourceText) -> str:
    """The passage as its reader knows it: with the document's name and the headings above."""
    return "\n".join([source.document_name, *source.heading_path, source.text])


def _units(source: SourceText) -> list[str]:
    """Its sentences, each with the headings it stands under."""
    headings = " ".join(source.heading_path)
    return [f"{headings} {unit.heading} {unit.lead_in} {unit.text}" for unit in split_units(source.text)]
