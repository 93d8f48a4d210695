"""OpenDocument texts (.odt), read from their XML (ODF 1.3): headings by outline level, lists, tables with their merged cells,
footnotes behind the paragraph that has them. What a reader does not see is left out: deletions that are still tracked, comments,
struck text, running headers and footers, tables of contents."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.office.opendocument_lists import MARKER, mark_numbers
from services.ingest.reading.parsers.office.package import Package, damaged, encrypted, open_package
from services.ingest.reading.parsers.tables.column_headers import SAYS_HEADER
from services.ingest.reading.parsers.tables.rows import SPANNED, table_rows
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TABLE, TEXT = (f"{{{_ODF}{name}:1.0}}" for name in ("office", "table", "text"))
DRAW = f"{{{_ODF}drawing:1.0}}"
_ENCRYPTION = f"{{{_ODF}manifest:1.0}}encryption-data"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_UNSEEN = {OFFICE + "annotation", OFFICE + "annotation-end", OFFICE + "forms", TEXT + "sequence-decls"}
_UNSEEN |= {
    TEXT + name
    for name in ("tracked-changes", "table-of-content", "illustration-index", "table-index", "note-citation")
}
_STYLE = f"{{{_ODF}style:1.0}}"
_STRUCK = TEXT + "struck"
_UNSEEN.add(_STRUCK)
_SHIFT = "shift"
_POSITION = re.compile(r"super|sub|-?[1-9]\d*%")
_BREAKS = {TEXT + "tab": "\t", TEXT + "line-break": "\n"}
PARAGRAPHS = {TEXT + "p", TEXT + "h"}
_MAX_COLUMNS, _MAX_SPACES, _MAX_LIST_DEPTH = 100, 100, 8
_MAX_REPEATED_CHARS = 300
"""Of a cell that reaches over several rows, in each after its first."""
_MAX_CELL_CHARS = 2000


def parse_odt(source: Source, name: str) -> ParsedDocument:
    """Reads the body. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        content = content_of(package)
        body = content.find(f"{OFFICE}body/{OFFICE}text")
        if body is None:
            raise damaged(name, "it has no text body")
        pictures = sum(1 for _ in body.iter(DRAW + "image"))
        warnings = (*package.warnings, *left_out(pictures, "picture"), *annotations_left_out(body))
        return ParsedDocument(title_or_name(title_of(package), name), tuple(flow(body)), warnings=warnings)


def annotations_left_out(body: Any) -> list[str]:
    """How many comments stand in a text, a sheet or a slide."""
    return left_out(sum(1 for _ in body.iter(OFFICE + "annotation")), "comment")


def content_of(package: Package) -> Any:
    """The root of the content. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED."""
    manifest = package.xml("META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter(_ENCRYPTION), None) is not None:
        raise encrypted(package.name)
    package.required("content.xml")
    content = package.xml("content.xml")
    if content is None:
        raise damaged(package.name, "its content is no XML")
    _mark_spans(content)
    mark_numbers(content, package.xml("styles.xml"))
    return content


def _mark_spans(content: Any) -> None:
    """Notes at each span what its style says of its text: whether it is struck out, and whether it is raised or lowered."""
    struck: set[str] = set()
    shifts: dict[str, str] = {}
    for style in content.iter(_STYLE + "style"):
        properties, name = style.find(_STYLE + "text-properties"), style.get(_STYLE + "name", "")
        if properties is None:
            continue
        if properties.get(_STYLE + "text-line-through-style", "none") != "none":
            struck.add(name)
        position = properties.get(_STYLE + "text-position", "")
        if found := _POSITION.match(position):
            shifts[name] = "-1" if found[0].startswith(("sub", "-")) else "1"
    for span in content.iter(TEXT + "span"):
        name = span.get(TEXT + "style-name", "")
        if name in struck:
            span.tag = _STRUCK
        elif name in shifts:
            span.set(_SHIFT, shifts[name])


def title_of(package: Package) -> str | None:
    """The title in the file's properties."""
    meta = package.xml("meta.xml")
    title = next(meta.iter(_DC_TITLE), None) if meta is not None else None
    return title.text if title is not None else None


def words(element: Any) -> str:
    """The text of a paragraph: with its tabs, line breaks and raised digits, without its notes and what a reader does not see."""
    parts = [(element.text or "", 0)]
    stack = list(reversed(element))
    while stack:
        inner = stack.pop()
        if isinstance(inner, str):
            parts.append((inner, 0))
            continue
        stack.append(inner.tail or "")
        if inner.tag == TEXT + "s":
            parts.append((" " * min(number(inner, TEXT + "c", 1), _MAX_SPACES), 0))
        elif inner.tag in _BREAKS:
            parts.append((_BREAKS[inner.tag], 0))
        elif (
            isinstance(inner.tag, str)
            and inner.tag not in _UNSEEN
            and inner.tag not in (TEXT + "note", TABLE + "table")
        ):
            parts.append((" " if inner.tag in PARAGRAPHS and parts[-1][0] else "", 0))  # in a text box
            parts.append((inner.text or "", int(inner.get(_SHIFT, "0"))))
            stack.extend(reversed(inner))
    return with_shifted(part for part in parts if part[0])


def number(element: Any, attribute: str, default: int) -> int:
    """A count that an attribute gives, at least 1."""
    value = element.get(attribute, "")
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 9 else default


def flow(parent: Iterable[Any]) -> Iterator[Block]:
    """Blocks of the elements in `parent`, in reading order."""
    stack: list[tuple[Any, int]] = [(element, 0) for element in reversed(list(parent))]
    while stack:
        element, depth = stack.pop()
        if element.tag in PARAGRAPHS:
            yield from _paragraph(element, depth)
        elif element.tag == TABLE + "table":
            yield from _table(element)
        elif isinstance(element.tag, str) and element.tag not in _UNSEEN:
            inner = depth + (element.tag == TEXT + "list")
            stack.extend((child, inner) for child in reversed(element))


def _paragraph(element: Any, depth: int) -> Iterator[Block]:
    text = words(element).strip()
    level = number(element, TEXT + "outline-level", 1)
    if text and element.tag == TEXT + "h":
        yield Block(BlockKind.HEADING, element.get(MARKER, "") + text, level=level)
    elif text and depth:
        yield Block(BlockKind.LIST, "  " * min(depth - 1, _MAX_LIST_DEPTH) + element.get(MARKER, "- ") + text)
    elif text:
        yield Block(BlockKind.TEXT, text)
    for note in element.iter(TEXT + "note-body"):
        if noted := " ".join(" ".join(words(paragraph) for paragraph in note.iter(*PARAGRAPHS)).split()):
            yield Block(BlockKind.TEXT, f"Footnote: {noted}")


def _table(table: Any) -> Iterator[Block]:
    rows, header_rows = _grid(table)
    widest = max((len(row) for row in rows), default=0)
    if widest < 2 or any(len(cell) > _MAX_CELL_CHARS for row in rows for cell in row):  # a layout, not a table
        for row in _rows(table):
            for cell in row.iterchildren(TABLE + "table-cell", TABLE + "covered-table-cell"):
                yield from flow(cell)
        return
    yield from table_rows(rows, header_rows=header_rows or None, marks=_marks(table))
    for inner in (inner for row in _rows(table) for cell in row for inner in cell.iterchildren(TABLE + "table")):
        yield from _table(inner)


def _marks(table: Any) -> float:
    """What the styles of the first row say: they are for headings of tables, or they are not."""
    first = next(_rows(table), None)
    styles = [each.get(TEXT + "style-name", "") for each in first.iter(*PARAGRAPHS)] if first is not None else []
    return SAYS_HEADER if styles and all("heading" in style.lower() for style in styles) else 0.0


def _grid(table: Any) -> tuple[list[list[str]], int]:
    """Cells by row and column, and how many rows say that they are headers."""
    rows: list[list[str]] = []
    header_rows = 0
    for row in _rows(table):
        rows.append(_cells(row, rows[-1] if rows else []))
        header_rows += row.getparent().tag == TABLE + "table-header-rows"
    return rows, header_rows


def _rows(table: Any) -> Iterator[Any]:
    """Rows of a table, also those in groups, but not those of tables in its cells."""
    stack = list(reversed(table))
    while stack:
        element = stack.pop()
        if element.tag == TABLE + "table-row":
            yield element
        elif element.tag in (TABLE + "table-rows", TABLE + "table-header-rows", TABLE + "table-row-group"):
            stack.extend(reversed(element))


def _cells(row: Any, above: list[str]) -> list[str]:
    cells: list[str] = []
    spanned = 0
    """How many of the cells to come the last one reaches over."""
    for cell in row.iterchildren(TABLE + "table-cell", TABLE + "covered-table-cell"):
        text = " ".join(" ".join(_own_words(cell)).split())
        repeated = number(cell, TABLE + "number-columns-repeated", 1)
        for _ in range(max(bool(text), min(repeated, _MAX_COLUMNS - len(cells)))):
            if cell.tag == TABLE + "table-cell":
                cells.append(text)
            elif spanned:
                cells.append(SPANNED)
                spanned -= 1
            else:
                cells.append(above[len(cells)][:_MAX_REPEATED_CHARS] if len(cells) < len(above) else "")
        if cell.tag == TABLE + "table-cell":
            spanned = number(cell, TABLE + "number-columns-spanned", 1) - 1
    return cells


def _own_words(cell: Any) -> Iterator[str]:
    """The texts of a cell's paragraphs and lists, without those of tables in it."""
    stack = list(reversed(cell))
    while stack:
        element = stack.pop()
        if element.tag in PARAGRAPHS:
            yield words(element)
        elif element.tag != TABLE + "table" and isinstance(element.tag, str) and element.tag not in _UNSEEN:
            stack.extend(reversed(element))
