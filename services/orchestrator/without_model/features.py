"""Lexical evidence: how much of the question each unit of each passage covers."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kit.language.anaphora import starts_with_anaphor
from kit.language.cues import type_cue
from kit.language.questions import Question
from kit.language.sentences import Unit, UnitKind, split_units
from kit.language.terms import Token, tokens
from kit.reading.rows import fields, is_row, row_tokens
from services.orchestrator.without_model.models import Passage

_DATED = re.compile(r"(?<!\d)(?:1\d|20)\d{2}(?!\d)")
"""A short line with a year is no title but the date of what stands around it."""
_INTRODUCES = (":", "：")
_ASKS = ("?", "？", "؟")
NAME_BOOST = 1.5
"""A name or number of the question weighs this much more than a word: the answer is about *that* person or year."""
ANAPHOR_WEIGHT = 0.5
"""A sentence that starts with a pronoun holds the words of the sentence that names its subject by this much."""


@dataclass(frozen=True)
class Candidate:
    """A unit that could stand in the answer, with what words alone say about it. All features are 0 to 1."""

    passage: Passage
    unit: Unit
    index: int
    """Position among the units of its passage."""
    caption: str
    """Of a row: the line right above its table."""
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
    """How clearly the unit holds the kind of thing that is asked for."""
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
    held: list[set[str]]
    """Per unit: the question's stems that it holds."""
    captions: list[str]
    """Per unit: of a row, the line right above its table; else empty."""
    header: set[str]
    """The question's stems in document name and heading path."""


def gather(question: Question, passages: Sequence[Passage]) -> WeighedCandidates:
    """Cut `passages` into candidates and measure each against the question. Microseconds a word; no model."""
    read = [_read(question, passage) for passage in passages]
    evidence = WeighedCandidates((), _weights(question, read))
    return WeighedCandidates(
        tuple(candidate for part in read for candidate in _candidates(question, part, evidence)), evidence.weights
    )


def _read(question: Question, passage: Passage) -> _Read:
    units = _whole_rows(passage.text, split_units(passage.text))
    found = [row_tokens(unit.text) if unit.kind is UnitKind.ROW else tokens(unit.text) for unit in units]
    header = ". ".join((passage.document_name.replace("_", " "), *passage.heading_path))
    held = [_stems(question, each) for each in found]
    return _Read(passage, units, found, held, _captions(units), _stems(question, tokens(header)))


def _stems(question: Question, found: Iterable[Token]) -> set[str]:
    """The question's stems among the words."""
    return {token.stem for token in found} & question.stems


def _weights(question: Question, read: Sequence[_Read]) -> dict[str, float]:
    """Smoothed idf over units: a word of every sentence says little, one that stands nowhere would have said most."""
    counts = Counter(stem for part in read for held in part.held for stem in held)
    total = sum(len(part.units) for part in read)
    weights = {}
    for term in question.terms:
        rarity = math.log(1 + (total - counts[term.stem] + 0.5) / (counts[term.stem] + 0.5))
        weights[term.stem] = (0.3 + rarity) * (NAME_BOOST if term.is_exact else 1.0)
    return weights


def _candidates(question: Question, part: _Read, evidence: WeighedCandidates) -> Iterator[Candidate]:
    passage_coverage = evidence.share(part.header.union(*part.held))
    head = 0
    for index, unit in enumerate(part.units):
        goes_on = index and part.units[index - 1].block == unit.block and starts_with_anaphor(unit.text)
        head = head if goes_on else index
        if not part.tokens[index] or not _may_answer(unit):
            continue
        section = part.passage.heading_path[-1] if part.passage.heading_path else ""
        title = f"{section}. {part.captions[index] or unit.heading}. {unit.lead_in}"
        neighbours = (part.held[head], *part.held[max(0, index - 1) : index + 2])
        nearby = part.header.union(_stems(question, tokens(title)), *neighbours)
        inherited = part.held[head] - part.held[index]
        coverage = evidence.share(part.held[index]) + ANAPHOR_WEIGHT * evidence.share(inherited)
        yield Candidate(
            passage=part.passage,
            unit=unit,
            index=index,
            caption=part.captions[index],
            is_about_row=unit.kind is UnitKind.ROW and _has_column_and_cell(question, part.captions[index], unit.text),
            stems=frozenset(token.stem for token in part.tokens[index] if not token.is_stopword),
            covered=frozenset(part.held[index]),
            nearby=frozenset(nearby),
            coverage=coverage,
            context=evidence.share(nearby) - coverage,
            passage_coverage=passage_coverage,
            cue=type_cue(question, unit.text, part.tokens[index]),
            rank=1.0 / math.sqrt(part.passage.number),
        )


def _may_answer(unit: Unit) -> bool:
    """Whether a unit says something: no title, no question, and no line that only introduces what follows."""
    if unit.kind is UnitKind.HEADING:
        return _DATED.search(unit.text) is not None
    return not unit.text.endswith(_ASKS) and not (unit.kind is UnitKind.PROSE and unit.text.endswith(_INTRODUCES))


def _has_column_and_cell(question: Question, caption: str, row: str) -> bool:
    """Whether the question names a column of the row and another of its cells."""
    columns, cells = set[str](), set[str]()
    for name, value in fields(f"{caption}; {row}"):
        columns |= _stems(question, tokens(name.replace("_", " ")) + tokens(name))
        cells |= _stems(question, tokens(value))
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


@dataclass(frozen=True)
class Scored:
    """A candidate with its value; values of one question are comparable with each other only."""

    candidate: Candidate
    value: float
    semantic: float | None
    """Similarity to the question, when the scorer said one on the known scale (-1 to 1)."""
