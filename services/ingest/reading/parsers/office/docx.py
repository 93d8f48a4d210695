"""Word documents, read from their XML: headings by style and outline level, numbered lists with their numbers, tables with their
merged cells, charts, footnotes behind the paragraph that has them. What a reader does not see is left out: deletions that are still
tracked, hidden text, comments, running headers and footers, tables of contents. (python-docx has no footnotes, and drops text in
tracked insertions and content controls.)"""

import re
from collections.abc import Iterator
from typing import Any

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import comments_left_out, left_out
from services.ingest.reading.parsers.office.charts import read_chart
from services.ingest.reading.parsers.office.docx_inline import (
    FALLBACK,
    UNSEEN,
    Inline,
    is_hidden,
    is_on,
    is_struck,
    passage_count,
    read_inline,
)
from services.ingest.reading.parsers.office.docx_styles import Numbering, Styles, W
from services.ingest.reading.parsers.office.package import Package, damaged, open_package
from services.ingest.reading.parsers.tables.column_headers import SAYS_HEADER, SAYS_NONE, marks_of_type
from services.ingest.reading.parsers.tables.rows import SPANNED, merged_header, spread, table_rows
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_PICTURES = {
    "{http://schemas.openxmlformats.org/drawingml/2006/picture}pic",
    "{urn:schemas-microsoft-com:vml}imagedata",
}
_FIRST_ROW, _HEX = 0x20, re.compile(r"^[0-9A-Fa-f]{1,4}$")
"""The bit of a table's look that says that its style has a first row (ECMA-376, 17.7.6)."""
_MAX_CELL_CHARS = 2000
_MAX_HEADER_ROWS = 8
_MAX_COLUMNS = 63  # the program's own limit


def parse_docx(source: Source, name: str) -> ParsedDocument:
    """Reads the body. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        part = package.main_part("word/document.xml")
        package.required(part)
        root = package.xml(part)
        body = root.find(W + "body") if root is not None else None
        if body is None:
            raise damaged(name, "it has no text body")
        reader = _Reader(package, part)
        blocks = tuple(reader.blocks(body))
        title = package.core_title() or reader.title
        losses = [*left_out(_picture_count(body), "picture")]
        losses += left_out(passage_count(body, is_struck), "struck-out passage")
        losses += left_out(passage_count(body, is_hidden), "hidden passage")
        losses += _left_out_beside(package, part)
        return ParsedDocument(title_or_name(title, name), blocks, warnings=(*package.warnings, *losses))


def _left_out_beside(package: Package, part: str) -> Iterator[str]:
    """What stands in parts of its own: comments, and the headers and footers that say anything."""
    links = package.relationships(part).values()
    yield from comments_left_out(package, links)
    for kind in ("header", "footer"):
        roots = (package.xml(target) for target in sorted({link.target for link in links if link.kind == kind}))
        said = sum(1 for root in roots if root is not None and any((t.text or "").strip() for t in root.iter(W + "t")))
        yield from left_out(said, f"page {kind}")


def _picture_count(body: Any) -> int:
    """Of DrawingML, and of VML, which older programs write. What stands in both is counted once."""
    stack, count = [body], 0
    while stack:
        element = stack.pop()
        if element.tag in _PICTURES:
            count += 1
        elif element.tag != FALLBACK:
            stack.extend(element)
    return count


class _Reader:
    def __init__(self, package: Package, part: str) -> None:
        self._package = package
        every = package.relationships(part)
        links = {link.kind: link.target for link in every.values()}
        self._charts = {key: link.target for key, link in every.items() if link.kind == "chart"}
        """Those that were not read yet."""
        self._styles = Styles(package.xml(links.get("styles", "word/styles.xml")))
        self._numbering = Numbering(package.xml(links.get("numbering", "word/numbering.xml")))
        self._notes = {
            kind: _notes(package.xml(links.get(kind, f"word/{kind}.xml")), tag)
            for kind, tag in (("footnotes", W + "footnote"), ("endnotes", W + "endnote"))
        }
        self.title: str | None = None
        """Of the first paragraph in the style Title."""

    def blocks(self, body: Any) -> Iterator[Block]:
        """Blocks of the body, a cell or a text box. Paragraphs whose marks between were deleted are one."""
        held: list[Any] = []
        for element in _flow(body):
            if element.tag == W + "tbl":
                yield from self._paragraph(*held) if held else ()
                yield from self._table(element)
                held = []
                continue
            held.append(element)
            if not _is_mark_deleted(element):
                yield from self._paragraph(*held)
                held = []
        yield from self._paragraph(*held) if held else ()

    def _paragraph(self, *elements: Any) -> Iterator[Block]:
        inline = read_inline(*elements)
        properties = elements[-1].find(W + "pPr")  # those of the mark that is left
        style = self._styles.of(properties)
        if inline.text.strip() and not style.is_contents:
            yield self._styled(inline.text, properties)
        yield from self._anchored(inline)
        for box in inline.boxes:
            yield from self.blocks(box)

    def _anchored(self, inline: Inline) -> Iterator[Block]:
        """The notes and charts of a paragraph that were not read yet: a note stands where it is first referred to."""
        for kind, note_id in inline.notes:
            if text := self._notes[kind].pop(note_id, ""):
                yield Block(BlockKind.TEXT, f"Footnote: {text}")
        for chart_id in inline.charts:
            root = self._package.xml(self._charts.pop(chart_id, ""))
            yield from read_chart(root).blocks() if root is not None else ()

    def _styled(self, text: str, properties: Any) -> Block:
        style = self._styles.of(properties)
        number, depth = self._numbering.next(properties, style)
        level = style.heading_level(properties)
        if style.is_title:
            self.title = self.title or text
            return Block(BlockKind.HEADING, text, level=1)
        if level:
            return Block(BlockKind.HEADING, f"{number} {text}".strip(), level=level + (self.title is not None))
        if number:
            return Block(BlockKind.LIST, "  " * depth + f"{number} {text.strip()}")
        return Block(BlockKind.TEXT, text)

    def _table(self, table: Any) -> Iterator[Block]:
        rows, header_rows = _grid(table)
        cells = list(_own_cells(table))
        widest = max((len(row) for row in rows), default=0)
        if widest < 2 or any(len(cell) > _MAX_CELL_CHARS for row in rows for cell in row):  # a layout, not a table
            for cell in cells:
                yield from self.blocks(cell)
            return
        if header_rows:
            names = merged_header([spread(row) for row in rows[:header_rows]])
            yield from table_rows([names, *rows[header_rows:]], header_rows=1)
        else:
            yield from table_rows(rows, marks=_marks(table, self._styles))
        for element in (element for cell in cells for element in _flow(cell)):
            if element.tag == W + "tbl":
                yield from self._table(element)
            else:
                yield from self._anchored(read_inline(element))


def _own_cells(table: Any) -> Iterator[Any]:
    """The cells of a table that no deleted row holds, without those of tables in them."""
    for row in _children(table, W + "tr"):
        if row.find(f"{W}trPr/{W}del") is None:
            yield from _children(row, W + "tc")


def _is_mark_deleted(paragraph: Any) -> bool:
    """Whether a tracked change takes the end of a paragraph away: what follows belongs to it."""
    properties = paragraph.find(f"{W}pPr/{W}rPr")
    return properties is not None and any(properties.find(W + tag) is not None for tag in ("del", "moveFrom"))


def _marks(table: Any, styles: Styles) -> float:
    """What a table's style and bold type say of its first row: for a header, or against one."""
    look = table.find(f"{W}tblPr/{W}tblLook")
    typed = marks_of_type([_bold_cells(row) for row in _children(table, W + "tr")])
    if typed or look is None:
        return typed
    bits = look.get(W + "val") or "0"
    says = look.get(W + "firstRow") in ("1", "true", "on") or bool(
        int(bits, 16) & _FIRST_ROW if _HEX.match(bits) else 0
    )
    is_styled = styles.marks_first_row(table.find(f"{W}tblPr"))
    if says:
        return SAYS_HEADER if is_styled else 0.0
    return SAYS_NONE if is_styled or bits.strip("0") else 0.0


def _bold_cells(row: Any) -> list[bool]:
    """For each cell of a row with text whether all of it is bold, or in a style for headings of tables."""
    cells = []
    for cell in _children(row, W + "tc"):
        runs = [run for run in cell.iter(W + "r") if any((text.text or "").strip() for text in run.iter(W + "t"))]
        if runs:
            styles = [(each.get(W + "val") or "").lower() for each in cell.iter(W + "pStyle")]
            is_named = bool(styles) and all("head" in style and "table" in style for style in styles)
            cells.append(is_named or all(is_on(run, "b") for run in runs))
    return cells


def _flow(parent: Any) -> Iterator[Any]:
    """Paragraphs and tables in reading order, also those inside content controls and tracked insertions."""
    stack = [parent]
    while stack:
        element = stack.pop()
        if element.tag in (W + "p", W + "tbl"):
            yield element
        elif element.tag not in UNSEEN and element.tag != FALLBACK:
            stack.extend(reversed(element))


def _grid(table: Any) -> tuple[list[list[str]], int]:
    """Cells by row and column, merged ones filled in downwards; and how many rows say that they are headers."""
    rows: list[list[str]] = []
    header_rows = 0
    for row in _children(table, W + "tr"):
        properties = row.find(W + "trPr")
        if properties is not None and properties.find(W + "del") is not None:
            continue
        is_header = properties is not None and properties.find(W + "tblHeader") is not None
        if is_header and header_rows == len(rows) < _MAX_HEADER_ROWS:
            header_rows += 1
        cells: list[str] = [""] * min(_integer(properties, "gridBefore", 0), _MAX_COLUMNS)
        for cell in _children(row, W + "tc"):
            cells.extend(_cells(cell, rows[-1] if rows else [], len(cells)))
        rows.append(cells)
    return rows, header_rows


def _cells(cell: Any, above: list[str], column: int) -> list[str]:
    """A cell's text, followed by SPANNED for each further column that it reaches over."""
    properties = cell.find(W + "tcPr")
    span = min(_integer(properties, "gridSpan", 1), _MAX_COLUMNS)
    merge = properties.find(W + "vMerge") if properties is not None else None
    if merge is not None and merge.get(W + "val", "continue") == "continue":
        text = above[column] if column < len(above) else ""
    else:
        text = " ".join(word for word in _words(cell) if word)
    return [text] + [SPANNED] * (span - 1)


def _words(parent: Any) -> Iterator[str]:
    """The texts of a cell's paragraphs and text boxes, without those of tables in it."""
    for element in _flow(parent):
        if element.tag == W + "p":
            inline = read_inline(element)
            yield " ".join(inline.text.split())
            for box in inline.boxes:
                yield from _words(box)


def _children(parent: Any, tag: str) -> Iterator[Any]:
    """The rows of a table or the cells of a row, also those inside content controls and tracked insertions."""
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag == tag:
            yield element
        elif element.tag not in UNSEEN and element.tag not in (W + "tbl", W + "p"):
            stack.extend(reversed(element))


def _integer(properties: Any, tag: str, default: int) -> int:
    element = properties.find(W + tag) if properties is not None else None
    value = element.get(W + "val", "") if element is not None else ""
    return int(value) if value.isascii() and value.isdigit() and int(value) < 1024 else default


def _notes(root: Any, tag: str) -> dict[str, str]:
    """Texts of foot- or endnotes by id; separators have none."""
    found = {}
    for note in root.iter(tag) if root is not None else ():
        text = " ".join(" ".join(read_inline(paragraph).text for paragraph in note.iter(W + "p")).split())
        found[note.get(W + "id") or ""] = text
    return found
