"""Different amounts that sources give for what is asked, found without a model: sentences of different sources that have all
content words of the question, and each one amount of the same unit. Dates are not compared: a thing often has several."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kit.language.cues import is_year
from kit.language.questions import AnswerKind, read_question
from kit.language.sentences import Unit, split_units
from kit.language.terms import Token, tokens
from services.orchestrator.conflicts.disagreement import Disagreement, Value
from services.orchestrator.conflicts.grouping import Pair, grouped
from services.orchestrator.conflicts.values import is_dated, stems_of, whole_span
from services.orchestrator.log.events import Evidence

_OTHER_KINDS = frozenset({AnswerKind.TIME, AnswerKind.PERSON, AnswerKind.PLACE, AnswerKind.LIST, AnswerKind.YES_NO})
"""Of questions that no amount answers, or that several may."""
_UNIT_WORDS = 2
_SIGNS = "%€$£¥₽₹°"
_PREFIX_CHARS = 5
"""Of words of a unit that are the same in another case: миллиона, миллионов."""
_MOST_STATEMENTS = 40
_GAP = "…"


@dataclass(frozen=True)
class _Amount:
    source: Evidence
    unit: Sequence[str]
    """Stems of the words behind the number, or its sign."""
    number: frozenset[str]
    value: Value


def source_of(passage: Evidence) -> tuple[str, str]:
    """What speaks in a passage: its document, or its message where a document holds many."""
    return passage.document_id, passage.origin.message_id if passage.origin else ""


def find_different_amounts(question: str, evidence: Sequence[Evidence]) -> list[Disagreement]:
    """The amounts that cannot all answer the question, in the order of the passages; the pair of most sentences first."""
    read = read_question(question)
    if read.kind in _OTHER_KINDS or not read.stems:
        return []
    stated = list(itertools.islice(_amounts(read.stems, evidence), _MOST_STATEMENTS))
    return grouped(
        [
            Pair(_what(one), one.value, other.value)
            for one, other in itertools.combinations(stated, 2)
            if source_of(one.source) != source_of(other.source)
            and _are_alike(one.unit, other.unit)
            and not (one.number <= other.number or other.number <= one.number)
        ]
    )


def _amounts(wanted: frozenset[str], evidence: Sequence[Evidence]) -> Iterator[_Amount]:
    """The amounts of sentences that have all wanted words. A sentence with several of one unit states none of them."""
    for source in evidence:
        headings = {token.stem for heading in source.heading_path for token in tokens(heading)}
        for sentence in split_units(source.text):
            words = tokens(sentence.text)
            if not wanted <= headings | {token.stem for token in words}:
                continue
            found = list(_amounts_in(source, sentence, words, wanted))
            yield from (
                each for each in found if not any(_are_alike(each.unit, other.unit) for other in found if other != each)
            )


def _amounts_in(source: Evidence, sentence: Unit, words: Sequence[Token], wanted: frozenset[str]) -> Iterator[_Amount]:
    first = 0
    while first < len(words):
        last = first + 1
        if is_dated(words[first].stem) and words[first].stem not in wanted:
            while last < len(words) and is_dated(words[last].stem) and words[last].start - words[last - 1].end <= 1:
                last += 1
            start, end = whole_span(sentence.text, words, (first, last))
            behind = _unit(words, last)
            end = max([end, *(each.end for each in behind)])
            unit = [each.stem for each in behind] or [each for each in sentence.text[start:end] if each in _SIGNS]
            if unit and not any(is_year(each.surface) for each in words[first:last]):
                place = sentence.start + start, sentence.start + end
                text = source.text[slice(*place)]
                value = Value(source.number, text, *place, sentence.start, sentence.end)
                yield _Amount(source, unit, stems_of(words[first:last]), value)
        first = last


def _unit(words: Sequence[Token], start: int) -> list[Token]:
    """The words right behind a number, lower-case ones with nothing between them."""
    behind = itertools.takewhile(
        lambda place: (
            words[place].start - words[place - 1].end == 1
            and words[place].surface[0].islower()
            and not words[place].is_stopword
        ),
        range(start, min(start + _UNIT_WORDS, len(words))),
    )
    return [words[place] for place in behind]


def _are_alike(unit: Sequence[str], other: Sequence[str]) -> bool:
    return len(unit) == len(other) and all(
        one == two or (one[:_PREFIX_CHARS] == two[:_PREFIX_CHARS] and len(one) >= _PREFIX_CHARS)
        for one, two in zip(unit, other, strict=True)
    )


def _what(amount: _Amount) -> str:
    text, value = amount.source.text, amount.value
    around = f"{text[value.unit_start : value.start]}{_GAP}{text[value.end : value.unit_end]}"
    return " ".join(around.split())
