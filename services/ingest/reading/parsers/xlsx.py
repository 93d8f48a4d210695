"""Spreadsheets, read row by row through openpyxl with the values that the program last computed. Cells are written as they are
shown: dates as dates, percentages as percentages. What a person cannot see (hidden sheets) is left out, and said."""

import bisect
import datetime as dt
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from lxml import etree

from services.ingest.errors import DocumentRejected
from services.ingest.reading.models import Block, ParsedDocument
from services.ingest.reading.parsers.charts import R_ID, read_chart
from services.ingest.reading.parsers.losses import comments_left_out, left_out
from services.ingest.reading.parsers.number_formats import formatted_number
from services.ingest.reading.parsers.package import Package, Relationship, check_xml, damaged, open_package, unsafe_xml
from services.ingest.reading.parsers.sheet_tables import Row, named_sheet, sheet_blocks
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_MAX_CELLS = 2_000_000
_MAX_ROWS = 1_048_576  # what a sheet can have
_MIN_CHARS, _MAX_EXPANSION = 1024 * 1024, 8
"""Characters read of a workbook: so many, or so many times its unpacked bytes. A text is stored once however often it is shown."""
_MAX_MERGED = 20_000
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}sheet"
_MERGED_CELLS = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_SHEET_NAME = re.compile(r"^(sheet|tabelle|feuil|hoja|foglio|лист|גיליון|ورقة)\s?\d*$", re.IGNORECASE)
_BROKEN = (ParseError, zipfile.BadZipFile, etree.LxmlError, KeyError, ValueError, TypeError, AttributeError, IndexError,
           EOFError, OSError, zlib.error)  # fmt: skip


def parse_xlsx(source: Source, name: str) -> ParsedDocument:
    """Reads all visible sheets. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        for part in package.parts():
            if part.startswith("xl/") and part.endswith(".xml"):
                # Bombs and entities are refused before openpyxl meets them.
                check_xml(package.read(part) or b"", name)
        with source.open("rb") as file:
            return _Workbook(package, file, name).read()


def is_usual_sheet_name(name: str) -> bool:
    """Whether a program named a sheet, and no person."""
    return bool(_SHEET_NAME.match(name))


class _Workbook:
    def __init__(self, package: Package, file: BinaryIO, name: str) -> None:
        # A quarter of a second to load: only in the child, only when needed.
        import openpyxl  # noqa: PLC0415
        from openpyxl.utils.exceptions import InvalidFileException  # noqa: PLC0415

        self._package = package
        self._name = name
        self._warnings: list[str] = []
        self._visible: frozenset[str] = frozenset()
        self._read_charts: set[str] = set()
        self._links: list[Relationship] = []
        """Of the sheets read so far."""
        self._pictures: set[tuple[str, str]] = set()
        """By drawing and relationship."""
        self._cells_left = _MAX_CELLS
        self._chars_left = max(_MIN_CHARS, _MAX_EXPANSION * package.size_bytes)
        try:
            self._book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        except DefusedXmlException as error:
            raise unsafe_xml(name) from error
        except (InvalidFileException, *_BROKEN) as error:
            raise damaged(name, "its workbook cannot be read") from error

    def read(self) -> ParsedDocument:
        blocks: list[Block] = []
        failed = 0
        try:
            sheets = [sheet for sheet in self._book.worksheets if sheet.sheet_state == "visible"]
            self._visible = frozenset(sheet.title for sheet in sheets)
            hidden = len(self._book.worksheets) - len(sheets)
            for sheet in sheets:
                try:
                    blocks.extend(self._sheet(sheet, alone=len(sheets) == 1))
                except DefusedXmlException as error:
                    raise unsafe_xml(self._name) from error
                except _BROKEN:
                    failed += 1
                    self._warnings.append(f"the sheet {sheet.title!r} is damaged and was left out")
            blocks.extend(self._chart_sheets())
            title = self._book.properties.title
        finally:
            self._book.close()
        if failed and not blocks:
            raise damaged(self._name, "none of its sheets can be read")
        self._warnings += left_out(hidden, "hidden sheet")
        self._warnings += left_out(len(self._pictures), "picture")
        self._warnings += comments_left_out(self._package, self._links)
        return ParsedDocument(title_or_name(title, self._name), tuple(blocks), warnings=tuple(self._warnings))

    def _sheet(self, sheet: Any, *, alone: bool) -> Iterator[Block]:
        rows, merged = self._rows(sheet), self._merged(sheet)
        spans = {(top, left): right for top, left, _, right in merged if right > left}
        self._fill_down(rows, merged)
        if self._is_full and merged:
            self._warnings.append(f"merged cells of the sheet {sheet.title!r} stand only in the first of their rows")
        blocks = [*sheet_blocks(rows, spans), *self._charts(getattr(sheet, "_worksheet_path", ""))]
        is_named = blocks and not (alone and is_usual_sheet_name(sheet.title))
        yield from named_sheet(sheet.title, blocks) if is_named else blocks

    def _chart_sheets(self) -> Iterator[Block]:
        """Charts that have a sheet of their own, which the library leaves out when it reads row by row."""
        part = self._package.main_part("xl/workbook.xml")
        root, links = self._package.xml(part), self._package.relationships(part)
        for sheet in root.iter(_SHEET) if root is not None else ():
            link = links.get(sheet.get(R_ID) or "")
            if link and link.kind == "chartsheet" and sheet.get("state", "visible") == "visible":
                charts = list(self._charts(link.target))
                if charts:
                    yield from named_sheet(sheet.get("name") or "", charts)

    def _charts(self, part: str) -> Iterator[Block]:
        """Charts drawn on a sheet: with their numbers, unless those stand on sheets that are read."""
        beside = self._package.relationships(part).values()
        self._links += beside
        drawings = [link.target for link in beside if link.kind == "drawing"]
        links = {(each, id_): link for each in drawings for id_, link in self._package.relationships(each).items()}
        self._pictures |= {where for where, link in links.items() if link.kind == "image"}
        for target in [link.target for link in links.values() if link.kind == "chart"]:
            root = None if target in self._read_charts else self._package.xml(target)
            self._read_charts.add(target)
            if root is not None:
                chart = read_chart(root)
                yield from chart.blocks(with_rows=not chart.sheets or not chart.sheets <= self._visible)

    @property
    def _is_full(self) -> bool:
        """Whether the workbook has given as much as one document may hold."""
        return self._cells_left <= 0 or self._chars_left <= 0

    def _rows(self, sheet: Any) -> dict[int, Row]:
        """Cells with text, by row."""
        rows: dict[int, Row] = {}
        last = -1
        try:
            for number, cells in _filled_rows(sheet):
                if number >= _MAX_ROWS or self._is_full:
                    self._warnings.append(f"the sheet {sheet.title!r} was read up to row {last + 1}; split it")
                    break
                if number > last and (row := self._row(cells)):
                    rows[number] = row
                last = max(last, number)
        except (DefusedXmlException, DocumentRejected):
            raise
        except _BROKEN:
            if not rows:
                raise
            self._warnings.append(f"the sheet {sheet.title!r} is damaged; it was read up to row {last + 1}")
        return rows

    def _row(self, cells: Iterable[Any]) -> Row:
        row: Row = {}
        for cell in cells:
            if self._is_full:
                break
            if text := _shown(cell):
                row[cell.column - 1] = text
                self._take(text)
        return dict(sorted(row.items()))

    def _take(self, text: str) -> None:
        self._cells_left -= 1
        self._chars_left -= len(text)

    def _fill_down(self, rows: dict[int, Row], merged: Sequence[tuple[int, int, int, int]]) -> None:
        """Repeats a merged cell's text in all its rows that hold anything."""
        numbers = list(rows)
        for top, left, bottom, _ in merged:
            text = rows.get(top, {}).get(left, "")
            for at in range(bisect.bisect_right(numbers, top), bisect.bisect_right(numbers, bottom) if text else 0):
                if self._is_full:
                    break
                rows[numbers[at]].setdefault(left, text)
                self._take(text)
        for number in numbers if merged else ():
            rows[number] = dict(sorted(rows[number].items()))

    def _merged(self, sheet: Any) -> list[tuple[int, int, int, int]]:
        """Merged cells as first row, first column, last row, last column, from 0. openpyxl leaves them out when it reads row by
        row."""
        part = getattr(sheet, "_worksheet_path", "")
        data = self._package.read(part) or b""
        found = [match.groups() for _, match in zip(range(_MAX_MERGED), _MERGED_CELLS.finditer(data), strict=False)]
        return [(int(r1) - 1, _column(c1), int(r2) - 1, _column(c2)) for c1, r1, c2, r2 in found]


def _filled_rows(sheet: Any) -> Iterator[tuple[int, Iterator[Any]]]:
    """Numbers of the rows from 0, and their cells that the file has. The library's own rows go from the first column to the last
    cell, and from the first row to the last: a sheet with only its diagonal filled would cost its square."""
    from openpyxl.cell.read_only import ReadOnlyCell  # noqa: PLC0415 - see _Workbook
    from openpyxl.worksheet._reader import WorkSheetParser  # noqa: PLC0415

    book = sheet.parent
    with sheet._get_source() as source:
        parser = WorkSheetParser(
            source,
            sheet._shared_strings,
            data_only=True,
            epoch=book.epoch,
            date_formats=book._date_formats,
            timedelta_formats=book._timedelta_formats,
        )
        for number, cells in parser.parse():
            yield number - 1, (ReadOnlyCell(sheet, **cell) for cell in cells)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number - 1


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return formatted_number(value, str(cell.number_format or ""))
    if isinstance(value, dt.datetime):
        whole_day = value.time() == dt.time()
        return value.date().isoformat() if whole_day else value.isoformat(" ", "minutes")
    return str(value)
