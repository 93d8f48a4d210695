"""Facts that a passage states and that can be asked for: a number, a year, a name, a defined term, or a cell of a table."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kit.language.anaphora import starts_with_anaphor
from kit.language.cues import is_year
from kit.language.sentences import UnitKind, split_units
from kit.language.terms import STOPWORDS, Token, tokens, words
from kit.reading.rows import fields, is_row
from services.orchestrator.conflicts.values import is_dated
from services.orchestrator.log.events import Evidence
from services.orchestrator.quizzes.questions import BLANK

_LENGTH = range(40, 261)
"""Characters of a sentence that is asked about: a shorter one says too little, a longer one too much."""
_LEAST_AROUND = 4
"""Content words beside the answer: with fewer, many answers fit."""
_MOST_NAMES = 0.5
"""Share of names among the words of a sentence; lists of authors and of references have more."""
_LONGEST_CELL = 60
_MOST_TERM_WORDS = 4
_NOT_PROSE = re.compile(r"https?://|www\.|[|{}<>=\\`_~^@]|\bet al\b|\bdoi\b|\.\.\.|…|\[\d|\)\.?\(")
_ENDS = re.compile(r"[.!。！।]['\"’”»)]*\Z")
_CAPTION = re.compile(r"\W*(?:fig|figure|table|abbildung|tabelle|figura|tabla|tableau)\b[\s.]*\d", re.IGNORECASE)
_JOINS_NAMES = words("of de von van du da del der di al")
"""Words within a name: "Ministry of Defence"."""
_POINTS_ELSEWHERE = re.compile(
    r"\b(?:above|below|latter|former|following|this|these|such|here|there|i|we|you|my|our|your|they|he|she|it)\b",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"^\s*(\S+)", re.MULTILINE)
_OPEN = re.compile(r"[\"“«(\[]")
_CLOSED = re.compile(r"[\"”»)\]]")
_DEFINITION = re.compile(
    r"\A(?:(?:An?|The|Ein|Eine|Der|Die|Das|Une?|Le|La|El|Una?|Los|Las|Il|Lo|Um|Uma|O|Een|De|Het)\s+)?"
    r"(?P<term>[^\W\d_][\w\- ]{2,40}?)"
    r"\s+(?:is|are|was|were|means|refers to|ist|sind|bezeichnet|est|sont|désigne|es|son|è|é|sono|são|zijn)\s+"
    r"(?:an?|the|one of|eine?|der|die|das|une?|le|la|les|el|una?|los|il|lo|uma?|o|een|de|het)\s",
)


class FactKind(StrEnum):
    """What is asked for."""

    TERM = "term"
    YEAR = "year"
    NUMBER = "number"
    NAME = "name"
    CELL = "cell"


@dataclass(frozen=True)
class Fact:
    """One thing that a passage states. `statement[start:end]` is the answer."""

    kind: FactKind
    statement: str
    start: int
    end: int
    source: int
    """Number of the passage."""
    quote: str
    """The words of the passage that state it."""
    document_id: str = ""
    column: str = ""
    """Of a cell: the name of its column."""
    is_clear: bool = True
    """Whether the statement points at nothing outside itself, as "this" does."""

    @property
    def answer(self) -> str:
        return self.statement[self.start : self.end]

    @property
    def cloze(self) -> str:
        """The statement without the answer."""
        return f"{self.statement[: self.start]}{BLANK}{self.statement[self.end :]}"

    def with_answer(self, other: str) -> str:
        """The statement with another answer."""
        return f"{self.statement[: self.start]}{other}{self.statement[self.end :]}"


def find_facts(evidence: Sequence[Evidence]) -> list[Fact]:
    """The facts of all passages, in their order; those of one sentence beside each other."""
    text = "\n".join(passage.text for passage in evidence)
    lower = frozenset(re.findall(r"\b[^\W\d_][^\W_]*\b", text))
    found = (fact for passage in evidence for fact in _facts_of(passage))
    return [fact for fact in found if _is_distinct(fact, text, lower)]


def _is_distinct(fact: Fact, text: str, words_of_text: frozenset[str]) -> bool:
    """Whether a name is no word that is written small elsewhere, and a term one that the passages use again."""
    first, *others = fact.answer.split()
    if fact.kind is FactKind.NAME:
        return bool(others) or first.isupper() or first.lower() not in words_of_text | STOPWORDS
    if fact.kind is FactKind.TERM:
        return len(others) < _MOST_TERM_WORDS and text.lower().count(fact.answer.lower()) > 1
    return True


def _facts_of(passage: Evidence) -> Iterator[Fact]:
    for unit in split_units(passage.text):
        if unit.kind in (UnitKind.PROSE, UnitKind.ITEM):
            statement = " ".join(unit.text.split())
            if is_worth_asking(statement):
                yield from _of_sentence(passage, statement, unit.text)
        elif unit.kind is UnitKind.ROW:
            for line in unit.text.splitlines():
                if is_row(line.strip()):
                    yield from _of_row(passage, line.strip())


def is_worth_asking(statement: str) -> bool:
    """Whether a sentence is whole, stands alone, and is prose and no caption."""
    if _CAPTION.match(statement):
        return False
    first = statement.lstrip("\"'“‘«(¿¡")[:1]
    if len(statement) not in _LENGTH or not first or first.islower() or not first.isalpha():
        return False
    if not _ENDS.search(statement) or _NOT_PROSE.search(statement) or starts_with_anaphor(statement):
        return False
    if len(_OPEN.findall(statement)) != len(_CLOSED.findall(statement)) and '"' not in statement:
        return False
    found = tokens(statement)
    names = sum(token.is_name for token in found)
    return bool(found) and names <= _MOST_NAMES * len(found)


def _of_sentence(passage: Evidence, statement: str, quote: str) -> Iterator[Fact]:
    found = tokens(statement)
    line_starts = frozenset(_FIRST_WORD.findall("\n".join(quote.splitlines()[1:])))
    names = [
        span for span in names_in(statement, found) if statement[slice(*span)].partition(" ")[0] not in line_starts
    ]
    spans = [
        *((FactKind.TERM, start, end) for start, end in _terms(statement)),
        *(
            (FactKind.YEAR if is_year(each.surface) else FactKind.NUMBER, each.start, each.end)
            for each in _numbers(statement, found)
        ),
        *((FactKind.NAME, start, end) for start, end in names),
    ]
    for kind, start, end in spans:
        answer = statement[start:end]
        around = {each.stem for each in found if not each.is_stopword and not start <= each.start < end}
        is_said_twice = {each.stem for each in tokens(answer)} <= around or answer in statement[:start] + statement[
            end:
        ]
        if len(around) >= _LEAST_AROUND and not is_said_twice:
            is_clear = not _POINTS_ELSEWHERE.search(statement)
            yield Fact(kind, statement, start, end, passage.number, quote, passage.document_id, is_clear=is_clear)


def _terms(statement: str) -> Iterator[tuple[int, int]]:
    found = _DEFINITION.match(statement)
    if found and any(not token.is_stopword for token in tokens(found["term"])):
        yield found.span("term")


def _numbers(statement: str, found: Sequence[Token]) -> Iterator[Token]:
    """Numbers that count or date something: not those of names ("Figure 3", "COVID-19")."""
    for index, token in enumerate(found):
        before = found[index - 1] if index else None
        around = statement[max(0, token.start - 1) : token.start] + statement[token.end : token.end + 1]
        if not token.is_number or around == "()" or any(mark in around for mark in "-–/:#^°"):
            continue
        if statement[token.end : token.end + 1].isalpha() or (
            token.surface.isdigit() and token.surface.startswith("0")
        ):
            continue
        if before and before.surface[0].isupper() and not before.is_stopword and not is_dated(before.stem):
            continue
        if before is None or before.surface.lower().rstrip(".") in _NUMBERED:
            continue
        yield token


_NUMBERED = words(
    "fig figure table section sec chapter page pages p pp eq equation no nr number step article art paragraph version vol volume "
    "ref item line row abbildung tabelle abschnitt kapitel seite figura tabla tableau tabel rules rule"
)
"""Words before a number that is a name."""


def names_in(statement: str, found: Sequence[Token]) -> list[tuple[int, int]]:
    """Runs of capitalised words, one space or a joining word apart. The first word of a sentence belongs to the run behind it."""
    spans: list[tuple[int, int]] = []
    for index, token in enumerate(found):
        starts = index == 0 and token.surface[:1].isupper() and not token.is_stopword
        follows = index + 1 < len(found) and _is_of_name(found[index + 1]) and found[index + 1].start == token.end + 1
        if not (_is_of_name(token) or (starts and follows)):
            continue
        if spans and _joins(statement[spans[-1][1] : token.start]):
            spans[-1] = (spans[-1][0], token.end)
        else:
            spans.append((token.start, token.end))
    return [
        (start, end) for start, end in spans if end - start > 2 and statement[end : end + 1] not in ("-", "/", "’", "'")
    ]


def _is_of_name(token: Token) -> bool:
    is_word = len(token.surface) > 1 and not any(mark in token.surface for mark in "'’")
    return token.is_name and is_word and not is_dated(token.stem) and token.surface.lower() not in _NUMBERED


def _joins(between: str) -> bool:
    return between == " " or (between[:1] == between[-1:] == " " and between.strip() in _JOINS_NAMES)


def _of_row(passage: Evidence, row: str) -> Iterator[Fact]:
    """Cells of a row that its first cell names: `Region: North; Revenue: 512`."""
    cells = fields(row)
    first_column, name = cells[0]
    if not any(map(str.isalpha, name)) or len(name) > _LONGEST_CELL:
        return
    head = f"{first_column}: {name}" if first_column else name
    for column, cell in cells[1:]:
        value = cell.strip().rstrip(";")
        if column and 0 < len(value) <= _LONGEST_CELL and value != name and any(map(str.isalnum, value)):
            statement = f"{head}; {column}: {value}"
            start = len(statement) - len(value)
            yield Fact(
                FactKind.CELL, statement, start, len(statement), passage.number, row, passage.document_id, column
            )
