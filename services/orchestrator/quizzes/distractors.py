"""Wrong options: other values of the same kind in the same passages. No passage carries one in place of the right one."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from kit.language.cues import is_year
from kit.language.sentences import split_units
from kit.language.terms import stem, tokens
from kit.reading.rows import fields, is_row
from services.orchestrator.log.events import Evidence
from services.orchestrator.quizzes.facts import Fact, FactKind
from services.orchestrator.quizzes.numbers import read_number

MOST = 3
"""Wrong options of a question."""
_MAY_BE_RIGHT = 0.4
"""Share of a statement's other words that a sentence must have, beside an option, for the option to be possibly right. It is low: a
question with two right options is worse than one question less."""


class Sentences:
    """All sentences and rows of the passages, by their words."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        units = (unit for passage in evidence for unit in split_units(passage.text))
        lines = [
            line.strip() for unit in units for line in (unit.text.splitlines() if is_row(unit.text) else [unit.text])
        ]
        self._stems = [stems_of(line) for line in lines]
        self._with: dict[str, set[int]] = {}
        for index, found in enumerate(self._stems):
            for each in found:
                self._with.setdefault(each, set()).add(index)
        self._cells: dict[tuple[str, str], set[str]] = {}
        for row in filter(is_row, lines):
            (first, name), *others = fields(row)
            for column, cell in others:
                head = f"{first}: {name}" if first else name
                self._cells.setdefault((head, column), set()).add(cell.strip().rstrip(";"))

    def may_carry(self, statement: str, answer: str) -> bool:
        """Whether a sentence has this answer and enough of the words around it."""
        wanted = stems_of(answer)
        around = stems_of(statement) - wanted
        if not wanted or not around:
            return True
        holding = set.intersection(*(self._with.get(each, set()) for each in wanted))
        return any(len(around & self._stems[index]) >= _MAY_BE_RIGHT * len(around) for index in holding)

    def has_cell(self, head: str, column: str, value: str) -> bool:
        """Whether a row with this first cell has the value in the column."""
        return value in self._cells.get((head, column), ())


@lru_cache(maxsize=16_384)
def stems_of(text: str) -> frozenset[str]:
    """The content words of a text; all of its words where it has no others ("The Who")."""
    found = tokens(text)
    return frozenset(each.stem for each in found if not each.is_stopword) or frozenset(each.stem for each in found)


def find_distractors(fact: Fact, facts: Sequence[Fact], sentences: Sentences, *, hard: bool = False) -> list[str]:
    """Wrong options, best first. Near to the right one where the question is to be hard, and from its own document first."""
    candidates: dict[str, tuple[float, ...]] = {}
    for other in facts:
        text = other.answer
        if text not in candidates and _is_alike(fact, other) and not _says_the_same(fact, text):
            candidates[text] = _rank(fact, other, hard=hard)
    ranked = sorted(candidates, key=lambda text: (candidates[text], text))
    return list(islice(_apart(text for text in ranked if is_wrong(fact, text, sentences)), MOST))


def is_wrong(fact: Fact, text: str, sentences: Sentences) -> bool:
    """Whether no passage carries the statement with this text in place of the answer."""
    if fact.kind is FactKind.CELL:
        return not sentences.has_cell(fact.statement.partition("; ")[0], fact.column, text)
    return not sentences.may_carry(fact.with_answer(text), text)


def _is_alike(fact: Fact, other: Fact) -> bool:
    if fact.kind is FactKind.CELL or other.kind is FactKind.CELL:
        return fact.kind is other.kind and fact.column == other.column
    if fact.kind in (FactKind.NUMBER, FactKind.YEAR):
        return other.kind is fact.kind and _shape(fact.answer) == _shape(other.answer)
    return other.kind is fact.kind


def _shape(number: str) -> tuple[bool, bool]:
    return is_year(number), "." in number or "," in number


def _says_the_same(fact: Fact, text: str) -> bool:
    """Whether an option shares a word with the right one, or stands in the question itself."""
    own, others = {stem(each) for each in fact.answer.split()}, {stem(each) for each in text.split()}
    if fact.kind is FactKind.CELL:
        return own == others
    if (number := read_number(text)) is not None and number == read_number(fact.answer):
        return True
    return bool(own & others) or stems_of(text) <= stems_of(fact.statement)


def _rank(fact: Fact, other: Fact, *, hard: bool) -> tuple[float, ...]:
    """Smaller is better: the same place in a sentence, the same length, the same document, then nearness."""
    same_before = _word_before(fact) == _word_before(other)
    same_behind = _word_behind(fact) == _word_behind(other)
    words_apart = abs(len(fact.answer.split()) - len(other.answer.split()))
    elsewhere = fact.document_id != other.document_id
    return (
        -(same_before + same_behind),
        words_apart,
        elsewhere,
        _distance(fact.answer, other.answer) * (1 if hard else -1),
    )


def _distance(answer: str, other: str) -> float:
    left, right = read_number(answer), read_number(other)
    if left is None or right is None:
        return abs(len(answer) - len(other)) / max(len(answer), len(other))
    return min(abs(left - right) / max(abs(left), abs(right), 1e-9), 1.0)


def _word_before(fact: Fact) -> str:
    return next(iter(reversed(fact.statement[: fact.start].lower().split())), "")


def _word_behind(fact: Fact) -> str:
    return next(iter(fact.statement[fact.end :].lower().split()), "")


def _apart(texts: Iterable[str]) -> Iterator[str]:
    """Options that share no word and no value with each other."""
    kept: list[str] = []
    for text in texts:
        number = read_number(text)
        if all(_differ(text, number, each) for each in kept):
            kept.append(text)
            yield text


def _differ(text: str, number: float | None, other: str) -> bool:
    if number is not None:
        return read_number(other) != number
    return not stems_of(text) & stems_of(other)
