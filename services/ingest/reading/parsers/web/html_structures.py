"""What is open while a page of HTML is read: the cells of a table by row and column, the numbers of a list."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.ingest.reading.parsers.office.docx_styles import numeral
from services.ingest.reading.parsers.tables.column_headers import ROWS_LOOKED_AT, marks_of_type
from services.ingest.reading.parsers.tables.rows import SPANNED

_MAX_COLUMNS, _MAX_ROWS_OF_A_CELL, _MAX_HEADER_ROWS = 1000, 1000, 3  # the first is that of HTML (4.9.11)
_MAX_REPEATED_CHARS = 300
"""Of a cell that reaches over several rows, in each after its first."""
_MAX_FILLED = 50_000
"""Places of one table that cells reach into from elsewhere: a few words of code may claim millions."""
_MAX_INDENT = 8
_INTEGER = re.compile(r"^-?\d{1,6}$")
_NUMERALS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}


class Grid:
    """The cells of a table by row and column, with those that reach over several."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._names: list[int] = []
        """For each row how many more of its cells are names than are not."""
        self._bold: list[list[bool]] = []
        """For each of the first rows and each of its cells whether all of it is bold."""
        self._hanging: dict[int, tuple[int, str]] = {}
        """By column: the last row that a cell reaches down to, and its text."""
        self._span = (1, 1)
        self._filled_left = _MAX_FILLED

    @property
    def header_rows(self) -> int:
        """Rows at the top that have most cells marked as names, or the first where it alone is bold."""
        count = sum(1 for _ in itertools.takewhile(lambda more: more > 0, self._names[:_MAX_HEADER_ROWS]))
        return count or int(marks_of_type(self._bold) > 0)

    def begin_row(self) -> None:
        self.rows.append([])
        self._names.append(0)
        if len(self._bold) < ROWS_LOOKED_AT:
            self._bold.append([])
        self._fill()

    def begin_cell(self, attributes: Mapping[str, str | None], *, is_name: bool, is_bold: bool = False) -> None:
        if not self.rows:
            self.begin_row()
        self._names[-1] += 1 if is_name else -1
        if len(self.rows) == len(self._bold):
            self._bold[-1].append(is_bold)
        self._span = (_span(attributes, "colspan", _MAX_COLUMNS), _span(attributes, "rowspan", _MAX_ROWS_OF_A_CELL))

    def end_cell(self, text: str) -> None:
        if not self.rows:  # its row was taken from it
            self.begin_row()
        columns, rows = self._span
        row = self.rows[-1]
        columns = max(1, min(columns, _MAX_COLUMNS - len(row), self._filled_left))
        self._filled_left -= columns - 1
        for cell in (text, *[SPANNED] * (columns - 1)):
            if rows > 1:
                self._hanging[len(row)] = (len(self.rows) + rows - 1, cell[:_MAX_REPEATED_CHARS])
            row.append(cell)
        self._fill()

    def _fill(self) -> None:
        """Puts the cells from above that reach into this row at its end."""
        row = self.rows[-1]
        while (hanging := self._hanging.get(len(row))) is not None and len(self.rows) <= hanging[0]:
            if self._filled_left <= 0:
                return
            self._filled_left -= 1
            row.append(hanging[1])


def _span(attributes: Mapping[str, str | None], name: str, limit: int) -> int:
    value = (attributes.get(name) or "").strip()
    return max(1, min(int(value), limit)) if value.isascii() and value.isdigit() and len(value) < 6 else 1


@dataclass
class OpenList:
    """A list that is open."""

    kind: str | None = None
    """Of its numbers: 1, a, A, i, I; None where its items have none."""
    number: int = 0
    step: int = 1
    is_begun: bool = False
    """Whether the text of the item that is open has begun."""

    @classmethod
    def of(cls, attributes: Mapping[str, str | None], item_count: int) -> "OpenList":
        step = -1 if "reversed" in attributes else 1
        start = attributes.get("start") or str(item_count if step < 0 else 1)
        return cls(attributes.get("type") or "1", (int(start) if _INTEGER.match(start) else 1) - step, step)

    def begin_item(self, attributes: Mapping[str, str | None]) -> None:
        value = attributes.get("value") or ""
        self.number = int(value) if self.kind and _INTEGER.match(value) else self.number + self.step
        self.is_begun = False

    def marker(self, depth: int) -> str:
        """What stands before the text that comes next: the number only before the first of an item."""
        indent = "  " * min(depth - 1, _MAX_INDENT)
        if self.kind is None:
            return f"{indent}- "
        return indent if self.is_begun else f"{indent}{numeral(self.number, _NUMERALS.get(self.kind, ''))}. "
