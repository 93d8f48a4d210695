"""OpenDocument spreadsheets (.ods): visible sheets, with the values that the program last computed, as those of Excel are read."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from services.ingest.reading.models import Block, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.office.opendocument import (
    OFFICE,
    TABLE,
    TEXT,
    annotations_left_out,
    content_of,
    number,
    title_of,
    words,
)
from services.ingest.reading.parsers.office.package import damaged, open_package
from services.ingest.reading.parsers.office.sheet_tables import Row, named_sheet, sheet_blocks
from services.ingest.reading.parsers.office.xlsx import is_usual_sheet_name
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_NUMBER = re.compile(r"\d(?:[\d.,'’\s]*\d)?")
_MAX_NUMBER_CHARS = 60
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_MAX_CELLS = 2_000_000
_MAX_CHARS = 64 * 1024 * 1024
"""Of all cells, with each as often as it is repeated."""
_MAX_ROWS, _MAX_COLUMNS = 1_048_576, 16_384  # what a sheet can have
_GROUPS = {TABLE + name for name in ("table-rows", "table-header-rows", "table-row-group")}


def parse_ods(source: Source, name: str) -> ParsedDocument:
    """Reads all visible sheets. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        content = content_of(package)
        body = content.find(f"{OFFICE}body/{OFFICE}spreadsheet")
        if body is None:
            raise damaged(name, "it has no sheets")
        hidden = _hidden_styles(content)
        sheets = body.findall(TABLE + "table")
        visible = [sheet for sheet in sheets if sheet.get(TABLE + "style-name") not in hidden]
        warnings = list(package.warnings)
        warnings += [*left_out(len(sheets) - len(visible), "hidden sheet"), *annotations_left_out(body)]
        warnings += _unvalued(visible)
        reader = _Reader(warnings)
        blocks = [block for sheet in visible for block in reader.sheet(sheet, alone=len(visible) == 1)]
        return ParsedDocument(title_or_name(title_of(package), name), tuple(blocks), warnings=tuple(warnings))


def _unvalued(sheets: Iterable[Any]) -> list[str]:
    """How many formulas have no value: the program that wrote the file computed none."""
    cells = (cell for sheet in sheets for cell in sheet.iter(TABLE + "table-cell") if cell.get(TABLE + "formula"))
    return left_out(sum(1 for cell in cells if not _shown(cell)), "uncomputed formula")


def _hidden_styles(content: Any) -> set[str]:
    """Names of the styles of sheets that are not shown."""
    properties = content.iter(_STYLE + "table-properties")
    return {each.getparent().get(_STYLE + "name", "") for each in properties if each.get(TABLE + "display") == "false"}


class _Reader:
    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings
        self._cells_left = _MAX_CELLS
        self._chars_left = _MAX_CHARS

    def sheet(self, sheet: Any, *, alone: bool) -> Iterator[Block]:
        """The sheet's name and its blocks."""
        name = " ".join(sheet.get(TABLE + "name", "").split())
        rows: dict[int, Row] = {}
        spans: dict[tuple[int, int], int] = {}
        hanging: dict[int, tuple[int, str]] = {}
        """By column: the last row that a cell reaches down to, and its text."""
        at = 0
        for element in _rows(sheet):
            repeated = number(element, TABLE + "number-rows-repeated", 1)
            row, reach = _row(element)
            if row:
                hanging = {column: (last, text) for column, (last, text) in hanging.items() if at <= last}
                row = dict(sorted(({column: text for column, (_, text) in hanging.items()} | row).items()))
            hanging.update(_reaching_down(element, at))
            copies = range(at, min(at + repeated, _MAX_ROWS) if row else at)
            taken = copies[: self._take(row, len(copies))]
            for copy in taken:
                rows[copy] = dict(row)
                spans.update({(copy, column): last for column, last in reach.items()})
            at += repeated
            if len(taken) < len(copies):
                self._warnings.append(f"the sheet {name!r} was read up to row {taken.stop}; split it")
                break
        blocks = list(sheet_blocks(rows, spans))
        is_named = blocks and name and not (alone and is_usual_sheet_name(name))
        yield from named_sheet(name, blocks) if is_named else blocks

    def _take(self, row: Row, copies: int) -> int:
        """How many copies of a row the document may still hold; they are counted from then on."""
        if not copies:
            return 0
        chars = sum(map(len, row.values()))
        taken = max(0, min(copies, self._cells_left // len(row), self._chars_left // max(chars, 1)))
        self._cells_left -= taken * len(row)
        self._chars_left -= taken * chars
        return taken


def _row(element: Any) -> tuple[Row, dict[int, int]]:
    """Texts by column, and the last columns of those cells that reach over several."""
    row: Row = {}
    reach: dict[int, int] = {}
    for column, repeated, cell in _cells(element):
        if text := _shown(cell):
            row.update((copy, text) for copy in range(column, min(column + repeated, _MAX_COLUMNS)))
            reach[column] = column + number(cell, TABLE + "number-columns-spanned", 1) - 1
    return row, {first: last for first, last in reach.items() if last > first}


def _reaching_down(element: Any, at: int) -> Iterator[tuple[int, tuple[int, str]]]:
    for column, _, cell in _cells(element):
        rows = number(cell, TABLE + "number-rows-spanned", 1)
        if rows > 1 and column < _MAX_COLUMNS:
            yield column, (at + rows - 1, _shown(cell))


def _cells(row: Any) -> Iterator[tuple[int, int, Any]]:
    """Cells that no other covers, with their first columns and how often they are repeated."""
    column = 0
    for cell in row.iterchildren(TABLE + "table-cell", TABLE + "covered-table-cell"):
        repeated = number(cell, TABLE + "number-columns-repeated", 1)
        if cell.tag == TABLE + "table-cell":
            yield column, repeated, cell
        column += repeated


def _rows(sheet: Any) -> Iterator[Any]:
    stack = list(reversed(sheet))
    while stack:
        element = stack.pop()
        if element.tag == TABLE + "table-row":
            yield element
        elif element.tag in _GROUPS:
            stack.extend(reversed(element))


def _shown(cell: Any) -> str:
    """A cell as it is shown, but for dates and thousands, which are written as they are typed."""
    shown = " ".join(" ".join(words(paragraph) for paragraph in cell.iterchildren(TEXT + "p")).split())
    match cell.get(OFFICE + "value-type"):
        case "date":
            return str(cell.get(OFFICE + "date-value") or shown).replace("T", " ").removesuffix(" 00:00:00")
        case "float" | "currency" | "percentage":
            return _plain(shown, cell.get(OFFICE + "value") or "")
        case _:
            return shown


def _plain(shown: str, value: str) -> str:
    """A number with as many decimals as are shown and its currency or unit, and nothing between its thousands; below zero with a
    minus."""
    found = _NUMBER.search(shown[:_MAX_NUMBER_CHARS])
    try:
        exact = float(value)
    except ValueError:
        return shown
    if not found or len(shown) > _MAX_NUMBER_CHARS:
        return shown
    number = found[0]
    decimals = len(number) - 1 - max(number.rfind("."), number.rfind(","))
    size = abs(exact) * (100 if "%" in shown else 1)
    for candidate in (f"{size:.{min(decimals, 30)}f}", f"{size:.0f}"):
        if _digits(candidate) == _digits(shown):
            plain = shown[: found.start()] + candidate + shown[found.end() :]
            return plain if exact >= 0 or re.search("[-−–]", plain) else "-" + plain.strip("()")
    return shown


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())
