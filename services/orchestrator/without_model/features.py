"""Lexical evidence: how much of the question each unit of each passage covers."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from kit.language.anaphora import starts_with_anaphor
from kit.language.cues import type_cue
from kit.language.questions import AnswerKind, Question
from kit.language.sentences import Unit, UnitKind, split_units
from kit.language.terms import Token, tokens
from kit.reading.rows import fields, is_row, row_tokens
from services.orchestrator.without_model.models import Passage
from services.orchestrator.without_model.rules import (
    ANSWER_KIND,
    FAMILIES,
    PRONOUNS,
    RULES,
    SAYS_NOTHING,
    TITLES,
    TYPE_NOUN,
    Rule,
)

_DATED = re.compile(r"(?<!\d)(?:1\d|20)\d{2}(?!\d)")
"""A short line with a year is no title but the date of what stands around it."""
_ADDRESS = re.compile(r"\S+://\S+|\S+@\S+|\[\W?\d+\]")
_WORD = re.compile(r"[^\W\d_]{2}|[^\W\d_a-zA-Z]|\d")
_ASKS = ("?", "？", "؟")
_INTRODUCES = (":", "：")
_EXCLAIMS = re.compile(r"\S+(?:\s+\S+)?!")
NAME_BOOST = 1.5
"""A name or number of the question weighs this much more than a word: the answer is about *that* person or year."""
TYPE_WEIGHT = 0.5
"""The word behind "which" weighs this much of another one: the answer names one of the kind, and mostly not the kind. A choice:
from 0.3 to 0.7 the sets of docs/evaluation.md are answered alike."""
STEM_PREFIX = 5
"""Two stems that share this many first letters, and most of their length, are taken for one word family…"""
FAMILY_WEIGHT = 0.7
"""…and count this much of an exact match ("politic" and "politician")."""
ANAPHOR_WEIGHT = 0.5
"""A sentence that starts with a pronoun holds the words of the sentence before it by this much."""
TITLE_WEIGHT = 0.8
"""A sentence under a title that holds the whole question ("refund policy") holds the question's words by this much."""


@dataclass(frozen=True)
class Candidate:
    """A unit that could stand in the answer, with what words alone say about it. All features are 0 to 1."""

    passage: Passage
    unit: Unit
    index: int
    """Position among the units of its passage."""
    caption: str
    """Of a row: the line right above its table."""
    antecedent: str
    """For one that begins by pointing back ("It was finished …"): the sentence that names what it is about; else empty."""
    antecedent_index: int
    """Its position; the unit's own where there is none."""
    is_about_row: bool
    """Of a row: whether the question has a word of one of its columns and another of one of its cells."""
    stems: frozenset[str]
    """Content stems, for duplicates."""
    covered: frozenset[str]
    """Question stems that the unit holds."""
    nearby: frozenset[str]
    """Question stems that the unit, its neighbours, headings, lead-in or document name hold."""
    coverage: float
    """Share of the question's weight that the unit holds."""
    context: float
    """Share of the question's weight that its heading, lead-in, neighbours or document name add."""
    passage_coverage: float
    """Share of the question's weight that the passage, with its headings, holds."""
    cue: float
    """Answer-type cue."""
    rank: float
    """1 for the best retrieved passage, falling with the rank."""


@dataclass(frozen=True)
class WeighedCandidates:
    """All candidates, and how heavy each question stem is."""

    candidates: tuple[Candidate, ...]
    weights: dict[str, float]
    """Per question stem: inverse frequency over the evidence's units, boosted for names and numbers."""

    def share(self, stems: Iterable[str]) -> float:
        """Share of the question's weight that `stems` hold, 0 to 1."""
        total = sum(self.weights.values())
        return sum(self.weights.get(stem, 0.0) for stem in stems) / total if total else 0.0


@dataclass(frozen=True)
class _Read:
    """A passage, cut and tokenised."""

    passage: Passage
    units: list[Unit]
    tokens: list[list[Token]]
    matches: list[dict[str, float]]
    """Per unit: question stem → 1 for an exact match, less for the same word family."""
    captions: list[str]
    """Per unit: of a row, the line right above its table; else empty."""
    heads: list[int]
    """Per unit the place of the sentence that names what it is about."""
    header: dict[str, float]
    """The same for document name and heading path."""


def gather(question: Question, passages: Sequence[Passage], rules: Collection[Rule] = RULES) -> WeighedCandidates:
    """Cut `passages` into candidates and measure each against the question. Microseconds a word; no model."""
    return _Gathering(question, rules).gather(passages)


@dataclass(frozen=True)
class _Gathering:
    """Measures units against one question, by some rules."""

    question: Question
    rules: Collection[Rule]

    def gather(self, passages: Sequence[Passage]) -> WeighedCandidates:
        read = [self._read(passage) for passage in passages]
        evidence = WeighedCandidates((), self._weights(read))
        candidates = [candidate for part in read for candidate in self._candidates(part, evidence)]
        answers = [
            each for each in candidates if SAYS_NOTHING not in self.rules or _says_something(self.question, each)
        ]
        return WeighedCandidates(tuple(answers or candidates), evidence.weights)

    def _read(self, passage: Passage) -> _Read:
        units = _whole_rows(passage.text, split_units(passage.text))
        found = [row_tokens(unit.text) if unit.kind is UnitKind.ROW else tokens(unit.text) for unit in units]
        header = tokens(". ".join((passage.document_name.replace("_", " "), *passage.heading_path)))
        matches = [self._matches(each) for each in found]
        return _Read(passage, units, found, matches, _captions(units), _heads(units), self._matches(header))

    def _matches(self, found: Sequence[Token]) -> dict[str, float]:
        """Question stems among `found`, with how well they match."""
        stems = {token.stem for token in found}
        matched = dict.fromkeys(self.question.stems & stems, 1.0)
        for wanted in self.question.stems - stems if FAMILIES in self.rules else ():
            if len(wanted) >= STEM_PREFIX and _has_relative(wanted, stems):
                matched[wanted] = FAMILY_WEIGHT
        return matched

    def _weights(self, read: Sequence[_Read]) -> dict[str, float]:
        """Smoothed idf over units: a word of every sentence says little, one that stands nowhere would have said most."""
        counts = Counter(stem for part in read for matched in part.matches for stem in matched)
        total = sum(len(part.units) for part in read)
        weights = {}
        for term in self.question.terms:
            rarity = math.log(1 + (total - counts[term.stem] + 0.5) / (counts[term.stem] + 0.5))
            weights[term.stem] = (0.3 + rarity) * (NAME_BOOST if term.is_exact else 1.0)
        if TYPE_NOUN in self.rules and self.question.type_stem in weights and len(weights) > 1:
            weights[self.question.type_stem] *= TYPE_WEIGHT
        return weights

    def _candidates(self, part: _Read, evidence: WeighedCandidates) -> list[Candidate]:
        passage_coverage = _covered_share(evidence, [part.header, *part.matches])
        return [
            self._candidate(part, index, evidence, passage_coverage)
            for index, unit in enumerate(part.units)
            if part.tokens[index] and (unit.kind is not UnitKind.HEADING or _DATED.search(unit.text))
        ]

    def _candidate(self, part: _Read, index: int, evidence: WeighedCandidates, passage_coverage: float) -> Candidate:
        unit, found, own = part.units[index], part.tokens[index], part.matches[index]
        neighbours = [part.matches[i] for i in (index - 1, index + 1) if 0 <= i < len(part.units)]
        section = part.passage.heading_path[-1] if part.passage.heading_path else ""
        title = self._matches(tokens(f"{section}. {part.captions[index] or unit.heading}"))
        head = part.heads[index]
        around = [part.header, own, title, self._matches(tokens(unit.lead_in)), part.matches[head], *neighbours]
        if PRONOUNS in self.rules and head != index:
            own = _inherit(own, part.matches[head], ANAPHOR_WEIGHT)
        if TITLES in self.rules and (len(title) == len(evidence.weights) or unit.kind is UnitKind.ROW):
            own = _inherit(own, title, TITLE_WEIGHT)
        coverage = _covered_share(evidence, [own])
        return Candidate(
            passage=part.passage,
            unit=unit,
            index=index,
            caption=part.captions[index],
            antecedent=part.units[head].text if head != index else "",
            antecedent_index=head,
            is_about_row=unit.kind is UnitKind.ROW and self._has_column_and_cell(part.captions[index], unit.text),
            stems=frozenset(token.stem for token in found if not token.is_stopword),
            covered=frozenset(part.matches[index]),
            nearby=frozenset(stem for matched in around for stem in matched),
            coverage=coverage,
            context=_covered_share(evidence, around) - coverage,
            passage_coverage=passage_coverage,
            cue=type_cue(self.question, unit.text, found) if ANSWER_KIND in self.rules else 0.0,
            rank=1.0 / math.sqrt(part.passage.number),
        )

    def _has_column_and_cell(self, caption: str, row: str) -> bool:
        """What a question asks for, and of which row."""
        columns, cells = set[str](), set[str]()
        for name, value in fields(f"{caption}; {row}"):
            columns |= self._matches(tokens(name.replace("_", " ")) + tokens(name)).keys()
            cells |= self._matches(tokens(value)).keys()
        return bool(columns) and bool(cells) and len(columns | cells) > 1


def _whole_rows(text: str, units: Sequence[Unit]) -> list[Unit]:
    """The units with rows as rows: not cut where they are long, and known by their fields."""
    whole: list[Unit] = []
    for unit in units:
        last = whole[-1] if whole else None
        cut = last is not None and unit.block == last.block and "\n" not in text[last.end : unit.start]
        if last is not None and cut and last.kind is UnitKind.ROW and unit.kind is UnitKind.ROW:
            whole[-1] = replace(last, text=text[last.start : unit.end], end=unit.end)
        elif unit.kind in (UnitKind.PROSE, UnitKind.HEADING) and is_row(unit.text):
            whole.append(replace(unit, kind=UnitKind.ROW))
        else:
            whole.append(unit)
    return whole


def _captions(units: Sequence[Unit]) -> list[str]:
    captions, above = [], ""
    for unit in units:
        is_row = unit.kind is UnitKind.ROW
        captions.append(above if is_row else "")
        introduces = unit.kind is UnitKind.HEADING or unit.text.endswith(_INTRODUCES)
        if not is_row:
            above = unit.text.lstrip("# ").rstrip(":：") if introduces and any(map(str.isalnum, unit.text)) else ""
    return captions


def _has_relative(wanted: str, stems: Iterable[str]) -> bool:
    """Whether one of `stems` continues `wanted`, or the other way round, by at most three letters."""
    prefix = wanted[:STEM_PREFIX]
    related = (stem for stem in stems if stem.startswith(prefix) and abs(len(stem) - len(wanted)) <= 3)
    return any(stem.startswith(wanted) or wanted.startswith(stem) for stem in related)


def _says_something(question: Question, candidate: Candidate) -> bool:
    """Questions, lines that only introduce what follows, and lines that hold the question's words only, are no answers."""
    unit = candidate.unit
    asks_for_either = question.kind in (AnswerKind.YES_NO, AnswerKind.KEYWORDS)
    if unit.text.endswith(_ASKS) or not _WORD.search(_ADDRESS.sub("", unit.text)):
        return False
    if unit.kind is UnitKind.PROSE and unit.text.endswith(_INTRODUCES):
        return False
    if _EXCLAIMS.fullmatch(unit.text) and not (candidate.covered and asks_for_either):
        return False
    return asks_for_either or bool(candidate.stems - question.stems or candidate.antecedent)


def _heads(units: Sequence[Unit]) -> list[int]:
    """Per unit the place of the sentence that names what it is about: of one that begins with a pronoun, the first before it in its
    paragraph that does not; else its own."""
    heads: list[int] = []
    for index, unit in enumerate(units):
        goes_on = index > 0 and units[index - 1].block == unit.block and starts_with_anaphor(unit.text)
        heads.append(heads[index - 1] if goes_on else index)
    return heads


def _inherit(own: dict[str, float], source: dict[str, float], weight: float) -> dict[str, float]:
    inherited = {stem: weight * strength for stem, strength in source.items()}
    return inherited | {stem: max(strength, inherited.get(stem, 0.0)) for stem, strength in own.items()}


def _covered_share(evidence: WeighedCandidates, matches: Sequence[dict[str, float]]) -> float:
    best: dict[str, float] = {}
    for matched in matches:
        for stem, strength in matched.items():
            best[stem] = max(strength, best.get(stem, 0.0))
    total = sum(evidence.weights.values())
    return sum(evidence.weights[stem] * strength for stem, strength in best.items()) / total if total else 0.0


@dataclass(frozen=True)
class Scored:
    """A candidate with its value; values of one question are comparable with each other only."""

    candidate: Candidate
    value: float
    semantic: float | None
    """Similarity to the question, when the scorer said one on the known scale (-1 to 1)."""
