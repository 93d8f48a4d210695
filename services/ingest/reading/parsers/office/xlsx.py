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
from services.ingest.reading.parsers.losses import comments_left_out, left_out
from services.ingest.reading.parsers.office.charts import R_ID, read_chart
from services.ingest.reading.parsers.office.package import (
    Package,
    Relationship,
    check_xml,
    damaged,
    open_package,
    unsafe_xml,
)
from services.ingest.reading.parsers.office.sheet_marks import (
    Area,
    header_rows,
    hidden_parts,
    merged_areas,
    unvalued_formulas,
)
from services.ingest.reading.parsers.office.sheet_tables import Row, named_sheet, sheet_blocks
from services.ingest.reading.parsers.tables.column_headers import SAYS_HEADER, SAYS_NONE
from services.ingest.reading.parsers.tables.number_formats import formatted_number
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_MAX_CELLS = 2_000_000
_MAX_ROWS = 1_048_576  # what a sheet can have
_MIN_CHARS, _MAX_EXPANSION = 1024 * 1024, 8
"""Characters read of a workbook: so many, or so many times its unpacked bytes. A text is stored once however often it is shown."""
_ALL_BOLD, _LABEL_BOLD, _MIXED = 1, 2, 3
"""Of the cells in a row: all of them, only the first, the first and others."""
_MARKED_TEXT = re.compile(rb"<(?:\w+:)?rPr\b[^<>]*>(?:(?!</).){0,1000}?<(?:\w+:)?(?:vertAlign|strike)\b", re.DOTALL)
"""Text of a cell that is raised, lowered or crossed out in part. To know which part, the library takes longer."""
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}sheet"
_SHEET_NAME = re.compile(r"^(sheet|tabelle|feuil|hoja|foglio|лист|גיליון|ورقة)\s?\d*$", re.IGNORECASE)
_BROKEN = (ParseError, zipfile.BadZipFile, etree.LxmlError, KeyError, ValueError, TypeError, AttributeError, IndexError,
           EOFError, OSError, zlib.error)  # fmt: skip


def parse_xlsx(source: Source, name: str) -> ParsedDocument:
    """Reads all visible sheets. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        has_rich_text = False
        for part in package.parts():
            if part.startswith("xl/") and part.endswith(".xml"):
                data = package.read(part) or b""
                # Bombs and entities are refused before openpyxl meets them.
                check_xml(data, name)
                has_rich_text = has_rich_text or bool(_MARKED_TEXT.search(data))
        with source.open("rb") as file:
            return _Workbook(package, file, name, has_rich_text=has_rich_text).read()


def is_usual_sheet_name(name: str) -> bool:
    """Whether a program named a sheet, and no person."""
    return bool(_SHEET_NAME.match(name))


class _Workbook:
    def __init__(self, package: Package, file: BinaryIO, name: str, *, has_rich_text: bool) -> None:
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
        self._bold_styles: dict[int, bool] = {}
        self._bold_rows: dict[int, int] = {}
        """Of the sheet that is read: which of the cells in a row, from 0, are in bold type."""
        self._cells_left = _MAX_CELLS
        self._chars_left = max(_MIN_CHARS, _MAX_EXPANSION * package.size_bytes)
        self._has_rich_text = has_rich_text
        self._struck_count = 0
        try:
            self._book = openpyxl.load_workbook(
                file, read_only=True, data_only=True, keep_links=False, rich_text=self._has_rich_text
            )
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
        self._warnings += left_out(self._struck_count, "struck-out passage")
        self._warnings += comments_left_out(self._package, self._links)
        return ParsedDocument(title_or_name(title, self._name), tuple(blocks), warnings=tuple(self._warnings))

    def _sheet(self, sheet: Any, *, alone: bool) -> Iterator[Block]:
        part = getattr(sheet, "_worksheet_path", "")
        data = self._package.read(part) or b""
        self._bold_rows = {}
        rows, merged = self._rows(sheet), merged_areas(data)
        spans = {(area.top, area.left): area.right for area in merged if area.right > area.left}
        self._fill_down(rows, merged)
        if self._is_full and merged:
            self._warnings.append(f"merged cells of the sheet {sheet.title!r} stand only in the first of their rows")
        self._warn_of_unseen(sheet.title, data, max((max(row) for row in rows.values()), default=0))
        blocks = [*sheet_blocks(rows, spans, self._marks(part, data)), *self._charts(part)]
        is_named = blocks and not (alone and is_usual_sheet_name(sheet.title))
        yield from named_sheet(sheet.title, blocks) if is_named else blocks

    def _warn_of_unseen(self, title: str, data: bytes, last_column: int) -> None:
        if hidden := " and ".join(hidden_parts(data, last_column)):
            self._warnings.append(f"the sheet {title!r} has {hidden}; what is in them was read")
        if count := unvalued_formulas(data):
            formulas = (
                f"1 formula of the sheet {title!r} has"
                if count == 1
                else f"{count} formulas of the sheet {title!r} have"
            )
            were = "was" if count == 1 else "were"
            self._warnings.append(
                f"{formulas} no stored value and {were} left out; open the file in its program, save it and upload that"
            )

    def _marks(self, part: str, data: bytes) -> dict[int, float]:
        """Rows that filters, tables or bold type mark as headers, or as rows of a form."""
        marks = {}
        for number, bold in self._bold_rows.items():
            below = self._bold_rows.get(number + 1)
            if bold == _ALL_BOLD and below != _ALL_BOLD:
                marks[number] = SAYS_HEADER
            elif bold == below == _LABEL_BOLD:
                marks[number] = SAYS_NONE
        tables = (link.target for link in self._package.relationships(part).values() if link.kind == "table")
        for source in (data, *(self._package.read(table) or b"" for table in tables)):
            marks.update(dict.fromkeys(header_rows(source), 2 * SAYS_HEADER))
        return marks

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
            for number, cells in _filled_rows(sheet, rich_text=self._has_rich_text):
                if number >= _MAX_ROWS or self._is_full:
                    self._warnings.append(f"the sheet {sheet.title!r} was read up to row {last + 1}; split it")
                    break
                if number > last and (row := self._row(number, cells)):
                    rows[number] = row
                last = max(last, number)
        except (DefusedXmlException, DocumentRejected):
            raise
        except _BROKEN:
            if not rows:
                raise
            self._warnings.append(f"the sheet {sheet.title!r} is damaged; it was read up to row {last + 1}")
        return rows

    def _row(self, number: int, cells: Iterable[Any]) -> Row:
        row: Row = {}
        bold: list[bool] = []
        for cell in cells:
            if self._is_full:
                break
            if text := self._text(cell):
                row[cell.column - 1] = text
                bold.append(self._is_bold(cell._style_id))
                self._take(text)
        if bold and bold[0]:
            self._bold_rows[number] = _ALL_BOLD if all(bold) else _MIXED if any(bold[1:]) else _LABEL_BOLD
        return dict(sorted(row.items()))

    def _text(self, cell: Any) -> str:
        """What a cell shows; of a text that is raised, lowered or crossed out in part, with its digits apart."""
        if not isinstance(cell.value, (list, tuple)):
            return _shown(cell)
        self._struck_count += sum(1 for part in cell.value if _is_struck(part))
        return " ".join(with_shifted((str(part), _shift(part)) for part in cell.value if not _is_struck(part)).split())

    def _is_bold(self, style_id: int) -> bool:
        if style_id not in self._bold_styles:
            try:
                font = self._book._fonts[self._book._cell_styles[style_id].fontId]
            except IndexError:
                font = None
            self._bold_styles[style_id] = bool(font is not None and font.b)
        return self._bold_styles[style_id]

    def _take(self, text: str) -> None:
        self._cells_left -= 1
        self._chars_left -= len(text)

    def _fill_down(self, rows: dict[int, Row], merged: Sequence[Area]) -> None:
        """Repeats a merged cell's text in all its rows that hold anything."""
        numbers = list(rows)
        for area in merged:
            text = rows.get(area.top, {}).get(area.left, "")
            stop = bisect.bisect_right(numbers, area.bottom) if text else 0
            for at in range(bisect.bisect_right(numbers, area.top), stop):
                if self._is_full:
                    break
                rows[numbers[at]].setdefault(area.left, text)
                self._take(text)
        for number in numbers if merged else ():
            rows[number] = dict(sorted(rows[number].items()))


def _shift(part: Any) -> int:
    """1 where a part of a rich text stands raised, -1 where it stands lowered, else 0."""
    return {"superscript": 1, "subscript": -1}.get(getattr(getattr(part, "font", None), "vertAlign", None) or "", 0)


def _is_struck(part: Any) -> bool:
    """Whether a part of a rich text is crossed out: what replaces it stands beside it."""
    return bool(getattr(getattr(part, "font", None), "strike", None))


def _filled_rows(sheet: Any, *, rich_text: bool) -> Iterator[tuple[int, Iterator[Any]]]:
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
            rich_text=rich_text,
        )
        for number, cells in parser.parse():
            yield number - 1, (ReadOnlyCell(sheet, **cell) for cell in cells)


def _shown(cell: Any) -> str:
    value = cell.value
    if value is None or isinstance(value, str):
        return " ".join((value or "").split())
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return formatted_number(value, str(cell.number_format or ""))
    if isinstance(value, dt.datetime):
        whole_day = value.time() == dt.time()
        return value.date().isoformat() if whole_day else value.isoformat(" ", "minutes")
    if isinstance(value, dt.timedelta):
        return _duration(value)
    return str(value)


def _duration(value: dt.timedelta) -> str:
    """Hours, however many, minutes and seconds, as the program shows them: `26:30:00`."""
    seconds = round(abs(value.total_seconds()))
    return f"{'-' * (value < dt.timedelta())}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
