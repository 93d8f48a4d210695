"""Finds sources that disagree without a model: two sentences, or two rows, that say the same of different values.

Sentences are aligned word by word. Two disagree where one span alone differs, where that span is of the kind that the question asks
for, and where it holds no word of the question. Rows disagree where their first cells are the same and the cells of the column that
is asked for differ. Statements of different wording are not compared: a try of that found one conflict in five, and saw one in
one question of seven whose sources agree.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from kit.language.questions import AnswerKind, Question, read_question
from kit.language.sentences import Unit, UnitKind, split_units
from kit.language.terms import Token, tokens
from kit.reading.rows import fields, is_row
from services.orchestrator.conflicts.disagreement import Disagreement, Source, Value
from services.orchestrator.conflicts.grouping import Pair, grouped
from services.orchestrator.conflicts.values import (
    DATE,
    Span,
    are_comparable,
    core,
    is_dated,
    is_numeric,
    kind_of,
    may_be_a_time,
    stems_of,
    whole_span,
)

_NUMERIC_KINDS = frozenset({AnswerKind.QUANTITY, AnswerKind.DURATION})
_NAMED_KINDS = frozenset({AnswerKind.PERSON, AnswerKind.PLACE})
_LEAST_SHARED = 2
"""Content words that two sentences must share, one of them no name and no number."""
_LEAST_SHARE = 0.7
"""Of the content words around the value. A choice on the first half of RGB's questions, where 0.6 and 0.8 give the same."""
_LEAST_COVERAGE = 0.5
"""Of a sentence's question words against those of the best sentence: one with fewer speaks of something else."""
_LONGEST_VALUE = 6
_LONGEST_UNIT = 120
_MOST_UNITS = 400
"""Sentences that are compared, each with each: those of the best passages come first."""
_GAP = "…"
_ASKS_FOR_SEVERAL = re.compile(r"\b(?:which|what)\s+(?:of the )?(?!(?:is|was|does|has)\b)\w+(?<!s)s\b", re.IGNORECASE)
"""An English plural behind "which"."""


@dataclass(frozen=True)
class _Statement:
    """A sentence or row of a passage, with its words."""

    source: Source
    unit: Unit
    words: Sequence[Token]
    stems: Sequence[str]
    content: frozenset[str]
    worded: frozenset[str]
    """Of the content, what is neither a number nor written with a capital: two names alone state nothing."""
    named: frozenset[str]
    """Names and numbers of the question that the passage holds anywhere, its headings and its document's name included."""

    def value(self, span: Span) -> Value:
        """The words of the span; of a date or an amount all that belongs to it."""
        start, end = whole_span(self.unit.text, self.words, span)
        return self._value(self.unit.text[start:end], start)

    def cell(self, column: str, text: str) -> Value:
        return self._value(text, self.unit.text.find(text, max(0, self.unit.text.find(f"{column}: "))))

    def _value(self, text: str, start: int) -> Value:
        begin = self.unit.start + max(0, start)
        return Value(self.source.number, text, begin, begin + len(text), self.unit.start, self.unit.end)


def find_disagreements(question: str, evidence: Sequence[Source]) -> list[Disagreement]:
    """What the passages disagree about, of what is asked; the one that most sentences speak of first."""
    read = read_question(question)
    if read.kind is AnswerKind.LIST or _ASKS_FOR_SEVERAL.search(read.text):
        return []
    statements = list(itertools.islice(_statements(read, evidence), _MOST_UNITS))
    most = max((len(each.content & read.stems) for each in statements), default=0)
    names_its_subject = any(each.named for each in statements)
    asked = [
        each
        for each in statements
        if len(each.content & read.stems) >= max(1, _LEAST_COVERAGE * most) and (each.named or not names_its_subject)
    ]
    pairs = (_compare(read, left, right) for left, right in itertools.combinations(asked, 2))
    return grouped([pair for pair in pairs if pair is not None])


def _statements(question: Question, evidence: Sequence[Source]) -> Iterator[_Statement]:
    exact = {term.stem for term in question.terms if term.is_exact}
    for source in evidence:
        whole = " ".join([source.document_name, *source.heading_path, source.text])
        named = frozenset(token.stem for token in tokens(whole) if token.stem in exact)
        for unit in split_units(source.text):
            found = tokens(unit.text)
            if unit.kind in (UnitKind.HEADING, UnitKind.LIST) or not 2 < len(found) <= _LONGEST_UNIT:
                continue
            content = frozenset(token.stem for token in found if not token.is_stopword)
            worded = frozenset(
                token.stem for token in found if not (token.surface[0].isupper() or is_dated(token.stem))
            )
            yield _Statement(source, unit, found, [token.stem for token in found], content, content & worded, named)


def _compare(question: Question, left: _Statement, right: _Statement) -> Pair | None:
    if left.named != right.named or left.unit.text == right.unit.text:
        return None
    if is_row(left.unit.text) and is_row(right.unit.text):
        return _compare_rows(question, left, right)
    return _compare_sentences(question, left, right) if left.source.document_id != right.source.document_id else None


def _compare_sentences(question: Question, left: _Statement, right: _Statement) -> Pair | None:
    if len(left.content & right.content) < _LEAST_SHARED:
        return None
    found = _substitution(left, right)
    if found is None:
        return None
    span, other = found
    ours, theirs = left.words[slice(*span)], right.words[slice(*other)]
    if question.kind is AnswerKind.TIME and not (may_be_a_time(left.words, span) and may_be_a_time(right.words, other)):
        return None
    if not (_fits(question, ours, theirs) and _say_the_same_around(left, right, stems_of(ours), stems_of(theirs))):
        return None
    value = left.value(span)
    text, start = left.unit.text, left.unit.start
    what = f"{text[: value.start - start]}{_GAP}{text[value.end - start :]}"
    return Pair(" ".join(what.split()), value, right.value(other))


def _fits(question: Question, ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Whether two values are of one kind, and of the kind that the question asks for."""
    left, right = stems_of(ours), stems_of(theirs)
    if left <= right or right <= left or max(len(left), len(right)) > _LONGEST_VALUE or (left | right) & question.stems:
        return False
    if not are_comparable(ours, theirs):
        return False
    return question.kind not in (_NAMED_KINDS if is_numeric(ours) else _NUMERIC_KINDS)


def _say_the_same_around(left: _Statement, right: _Statement, ours: frozenset[str], theirs: frozenset[str]) -> bool:
    shared = left.content & right.content
    worded = shared & left.worded
    around = max(len(left.content - ours), len(right.content - theirs))
    return bool(worded) and len(shared - ours - theirs) >= _LEAST_SHARED and len(shared) >= _LEAST_SHARE * around


def _substitution(left: _Statement, right: _Statement) -> tuple[Span, Span] | None:
    """The one value that differs, as words of each; None where nothing does, or more.

    A value may stand there twice, the second time shortened ("Simona Halep … Halep"). Words that one side alone has are passed over
    unless they name or count something.
    """
    largest: tuple[Span, Span] | None = None
    found = []
    for span, other in _differences(left, right):
        ours, theirs = left.words[slice(*span)], right.words[slice(*other)]
        mine, yours = stems_of(ours), stems_of(theirs)
        if mine == yours:
            continue
        if not mine or not yours:
            if any(token.is_exact for token in (*ours, *theirs)):
                return None
            continue
        spans = core(left.words, span), core(right.words, other)
        found.append((stems_of(left.words[slice(*spans[0])]), stems_of(right.words[slice(*spans[1])])))
        if largest is None or len(mine | yours) > _size(left, right, largest):
            largest = spans
    if largest is None:
        return None
    mine, yours = (stems_of(words.words[slice(*span)]) for words, span in zip((left, right), largest, strict=True))
    return largest if all(one <= mine and other <= yours for one, other in found) else None


def _size(left: _Statement, right: _Statement, spans: tuple[Span, Span]) -> int:
    return len(stems_of(left.words[slice(*spans[0])]) | stems_of(right.words[slice(*spans[1])]))


def _differences(left: _Statement, right: _Statement) -> list[tuple[Span, Span]]:
    """Where the words differ. Parts of one date or amount, with a word between them at most, are one difference."""
    matcher = SequenceMatcher(None, left.stems, right.stems, autojunk=False)
    found: list[tuple[Span, Span]] = []
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if found:
            (start, end), (other_start, other_end) = found[-1]
            is_near = max(first - end, other_first - other_end) <= 1
            before = (*left.words[start:end], *right.words[other_start:other_end])
            behind = (*left.words[first:last], *right.words[other_first:other_last])
            if is_near and is_numeric(before) and is_numeric(behind):
                found[-1] = (start, last), (other_start, other_last)
                continue
        found.append(((first, last), (other_first, other_last)))
    return found


def _compare_rows(question: Question, left: _Statement, right: _Statement) -> Pair | None:
    """Two rows of one name. One that differs in a date or a text that is not asked for is a record of its own."""
    (_, key), *ours = fields(left.unit.text)
    (_, other_key), *rest = fields(right.unit.text)
    theirs = dict(rest)
    named = stems_of(tokens(key))
    if not named & question.stems or named != stems_of(tokens(other_key)):
        return None
    differing = [
        column
        for column, cell in ours
        if theirs.get(column) and stems_of(tokens(cell)) != stems_of(tokens(theirs[column]))
    ]
    asked = [column for column in differing if stems_of(tokens(column)) & question.stems] or differing
    if len(asked) != 1 or any(_tells_apart(theirs[column]) for column in differing if column not in asked):
        return None
    (column,) = asked
    if not are_comparable(tokens(dict(ours)[column]), tokens(theirs[column])):
        return None
    return Pair(f"{key}: {column}", left.cell(column, dict(ours)[column]), right.cell(column, theirs[column]))


def _tells_apart(cell: str) -> bool:
    found = tokens(cell)
    return not is_numeric(found) or kind_of(found) == DATE
