"""Values that stand beside their labels: `Invoice number: 17`, a row `Total | 90.00`, a column under its heading. No model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kit.language.terms import tokens
from kit.reading.fields import Field
from kit.reading.rows import fields, is_row

Value = str | float | int | bool | None
_LABELLED = re.compile(
    r"(?:^|[\n;|]|\s{3,})[ \t]*(?P<label>[^\W\d_](?:(?!\s{3})[^:：;|\n]){0,60}?)[ \t]*[:：][ \t]*"
    r"(?P<value>[^;|\n]+?)(?=[ \t]*(?:$|[;|\n]|\s{3,}))"
)
_SENTENCE_END = re.compile(r"(?<=\w{3})[.!?]\s+")
"""What stands before it on the line is no part of a label: "Thank you. Total: 90"."""
_CELLS = re.compile(r"[ \t]*(?:\||\t)[ \t]*")
_NUMBER = re.compile(r"[-+−]?\d[\d.,'\u00a0\u202f ]*\d|\d")
_LEAST_LIKENESS = 0.5
_YES, _NO = frozenset({"yes", "true", "ja", "oui", "sí", "si"}), frozenset({"no", "false", "nein", "non"})


class HasText(Protocol):
    """A passage."""

    @property
    def text(self) -> str: ...


P = TypeVar("P", bound=HasText)


@dataclass(frozen=True)
class Labelled(Generic[P]):
    """A value with its label, and where it stands."""

    label: str
    text: str
    source: P
    start: int
    end: int


@dataclass(frozen=True)
class Cell(Generic[P]):
    """What was found for a field."""

    value: Value
    source: P
    start: int
    end: int


def labelled_values(passages: Sequence[P]) -> Sequence[Labelled[P]]:
    """All of them in reading order."""
    return [each for passage in passages for each in (*_beside(passage), *_in_rows(passage))]


def find_value(field: Field, labelled: Sequence[Labelled[P]]) -> Cell[P] | None:
    """The value whose label is most like the field's name, and can be of its type; None where there is none."""
    best: Cell[P] | None = None
    likeness = 0.0
    for each in labelled:
        like = _likeness(field.words, each.label)
        if like < _LEAST_LIKENESS or like <= likeness:
            continue
        value = typed(each.text, field.type)
        if value is not None:
            best, likeness = Cell(value, each.source, each.start, each.end), like
    return best


def table_rows(wanted: Sequence[Field], passages: Sequence[P]) -> Sequence[Sequence[Cell[P] | None]]:
    """The rows of tables whose columns are half of the fields or more: a cell for each field. None where there is but one row: then
    its columns are labels."""
    found = [[find_value(field, row) for field in wanted] for passage in passages for row in _labelled_rows(passage)]
    rows = [cells for cells in found if sum(each is not None for each in cells) * 2 >= len(cells)]
    return rows if len(rows) > 1 else []


def _labelled_rows(passage: P) -> Iterator[Sequence[Labelled[P]]]:
    """The cells of each row, with the names of their columns: rows as ingestion writes them, and rows below a line of names."""
    header: list[str] = []
    at = 0
    for line in passage.text.split("\n"):
        cells = _cells(line, at)
        if len(cells) > 1 and len(cells) == len(header):
            yield [Labelled(label, *cell[:1], passage, *cell[1:]) for label, cell in zip(header, cells, strict=True)]
        elif is_row(line.strip()):
            yield list(_named_cells(line, at, passage))
        header = header if len(cells) == len(header) else [text for text, _, _ in cells]
        at += len(line) + 1


def _named_cells(line: str, at: int, passage: P) -> Iterator[Labelled[P]]:
    """Cells of `column: value; column: value`."""
    start = 0
    for name, value in fields(line.strip()):
        text = value.rstrip("; ").strip()
        if not name or not text:
            continue
        start = line.index(text, line.index(name, start) + len(name))
        yield Labelled(name, text, passage, at + start, at + start + len(text))
        start += len(text)


def typed(text: str, kind: str) -> Value:
    """The text as a value of the type; None where it is none."""
    text = text.strip()
    match kind:
        case "number" | "integer":
            return _number(text, kind)
        case "boolean":
            word = text.casefold().strip(".")
            return True if word in _YES else False if word in _NO else None
        case _:
            return text or None


def _number(text: str, kind: str) -> float | int | None:
    found = _NUMBER.search(text)
    if found is None:
        return None
    digits = re.sub(r"['\u00a0\u202f ]", "", found[0].replace("−", "-"))
    last = max(digits.rfind("."), digits.rfind(","))
    is_decimal = last >= 0 and (len(digits) - last - 1 != 3 or len({*digits} & {".", ","}) == 2)
    whole = digits[:last] if is_decimal else digits
    number = float(re.sub(r"[.,]", "", whole) + (f".{digits[last + 1 :]}" if is_decimal else ""))
    if kind == "integer":
        return int(number) if number.is_integer() else None
    return int(number) if number.is_integer() and not is_decimal else number


def _beside(passage: P) -> Iterator[Labelled[P]]:
    for found in _LABELLED.finditer(passage.text):
        label = _SENTENCE_END.split(found["label"])[-1]
        yield Labelled(label, found["value"], passage, *found.span("value"))


def _in_rows(passage: P) -> Iterator[Labelled[P]]:
    """Cells of rows: the first cell of a row of two is the label of the second; in wider rows the first row has the labels."""
    header: list[str] = []
    at = 0
    for line in passage.text.split("\n"):
        cells = _cells(line, at)
        if not cells and is_row(line.strip()) and len(named := list(_named_cells(line, at, passage))) == 2:
            yield Labelled(named[0].text, named[1].text, passage, named[1].start, named[1].end)
        at += len(line) + 1
        if len(cells) == 2:
            (label, _, _), (text, start, end) = cells
            yield Labelled(label.rstrip(" :"), text, passage, start, end)
        elif len(cells) > 2 and len(cells) == len(header):
            for label, (text, start, end) in zip(header, cells, strict=True):
                yield Labelled(label, text, passage, start, end)
        header = header if len(cells) == len(header) else [text for text, _, _ in cells]


def _cells(line: str, at: int) -> list[tuple[str, int, int]]:
    """Texts of the cells of a row with their places; none of a line that is no row."""
    if not _CELLS.search(line):
        return []
    found: list[tuple[str, int, int]] = []
    start = 0
    for gap in (*_CELLS.finditer(line), None):
        end = gap.start() if gap else len(line)
        text = line[start:end]
        if text.strip() and not set(text.strip()) <= set("-:= "):
            found.append((text.strip(), at + start, at + end))
        start = gap.end() if gap else end
    return found


def _likeness(wanted: frozenset[str], label: str) -> float:
    """Share of words that both have (Jaccard)."""
    own = {token.stem for token in tokens(label) if not token.is_stopword}
    return len(wanted & own) / len(wanted | own) if wanted and own else 0.0
