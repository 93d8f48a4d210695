"""Presentations: a slide is a page. Its title is a heading; then the shapes in their order, tables and the numbers of charts as
rows, the text of diagrams, and the speaker's notes. Dates, footers and slide numbers are left out."""

import re
from collections.abc import Iterator, Set
from typing import Any

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import comments_left_out, left_out
from services.ingest.reading.parsers.office.charts import CHART, R_ID, read_chart
from services.ingest.reading.parsers.office.docx_styles import numeral
from services.ingest.reading.parsers.office.package import Package, Relationship, damaged, open_package
from services.ingest.reading.parsers.tables.column_headers import SAYS_HEADER, SAYS_NONE, marks_of_type
from services.ingest.reading.parsers.tables.rows import SPANNED, table_rows
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_DIAGRAM_DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_TITLES = ("title", "ctrTitle")
_FURNITURE = ("dt", "ftr", "hdr", "sldNum", "sldImg")
_BODIES = ("body", "obj", "half", "quarter")
_NUMERALS = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
_INTEGER = re.compile(r"^\d{1,5}$")
_MAX_SLIDES = 5000
_MAX_REPEATED_CHARS = 300
"""Of a merged cell, in each row after its first."""


def parse_pptx(source: Source, name: str) -> ParsedDocument:
    """Reads the slides. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        part = package.main_part("ppt/presentation.xml")
        package.required(part)
        slides = _slide_parts(package, part)
        if not slides:
            raise damaged(name, "it has no slides")
        reader = _Reader(package)
        pages = [reader.slide(slide, number) for number, slide in enumerate(slides, 1)]
        statuses = tuple(status for status, _ in pages)
        if set(statuses) == {"failed"}:
            raise damaged(name, "none of its slides can be read")
        blocks = tuple(block for _, page in pages for block in page)
        title = package.core_title() or next((block.text for block in blocks if block.kind is BlockKind.HEADING), None)
        losses = [*left_out(reader.picture_count, "picture"), *left_out(reader.struck_count, "struck-out passage")]
        losses += [*comments_left_out(package, reader.links)]
        warnings = (*package.warnings, *losses)
        return ParsedDocument(title_or_name(title, name), blocks, statuses, warnings, flowing=True)


def _slide_parts(package: Package, part: str) -> list[str]:
    root = package.xml(part)
    links = package.relationships(part)
    ids = [element.get(R_ID) for element in root.iter(_P + "sldId")] if root is not None else []
    return list(dict.fromkeys(links[link_id].target for link_id in ids if link_id in links))[:_MAX_SLIDES]


class _Reader:
    """Reads the slides of a presentation, and each chart, diagram and page of notes where it is first referred to."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._read_parts: set[str] = set()
        self.picture_count = 0
        """On the slides read so far; those of their layouts, such as a logo, are not counted."""
        self.struck_count = 0
        """Texts that are crossed out, on the slides read so far."""
        self.links: list[Relationship] = []
        """Of the slides read so far."""

    def slide(self, part: str, number: int) -> tuple[str, list[Block]]:
        """A slide's status and its blocks."""
        root = self._package.xml(part)
        if root is None:
            self._package.warnings.append(f"slide {number} could not be read")
            return "failed", []
        if root.get("show") in ("0", "false"):
            self._package.warnings.append(f"slide {number} is hidden; what is on it was read")
        links = self._package.relationships(part)
        self.links += links.values()
        self.struck_count += sum(_is_struck(text) for text in root.iter(_A + "t"))
        self.picture_count += sum(1 for _ in _outermost(root, {_P + "pic"}))
        titles: list[Block] = []
        rest: list[Block] = []
        for shape in _shapes(root):
            kind = _placeholder(shape)
            if kind in _TITLES:
                text = " ".join(" ".join(_paragraph_text(paragraph) for paragraph in shape.iter(_A + "p")).split())
                titles.extend([Block(BlockKind.HEADING, text, level=1, page=number)] if text else [])
            elif kind not in _FURNITURE:
                rest.extend(self._shape(links, shape, number, kind))
        rest.extend(self._speaker_notes(links, number))
        blocks = titles + rest
        return "text" if blocks else "empty", blocks

    def _shape(self, links: dict[str, Relationship], shape: Any, number: int, placeholder: str) -> Iterator[Block]:
        for table in _outermost(shape, {_A + "tbl"}):
            for row in table_rows(_grid(table), marks=_marks(table)):
                yield Block(row.kind, row.text, page=number, label=row.label)
        for element in shape.iter(_DIAGRAM, CHART):
            link = links.get(element.get(R_ID if element.tag == CHART else _DIAGRAM_DATA) or "")
            root = self._once(link.target) if link else None
            if root is not None:
                yield from self._chart(root, number) if element.tag == CHART else _diagram(root, number)
        if shape.tag == _P + "sp":
            yield from _text(shape, number, placeholder)

    def _chart(self, root: Any, number: int) -> Iterator[Block]:
        chart = read_chart(root)
        if not chart.rows:
            self._package.warnings.append(f"a chart on slide {number} has no numbers in the file")
        elif not chart.is_whole:
            self._package.warnings.append(
                f"a chart on slide {number} has more numbers than charts show; the first were kept"
            )
        yield from chart.blocks(page=number)

    def _speaker_notes(self, links: dict[str, Relationship], number: int) -> Iterator[Block]:
        for link in links.values():
            root = self._once(link.target) if link.kind == "notesSlide" else None
            for shape in _shapes(root) if root is not None else ():
                if _placeholder(shape) not in _FURNITURE:
                    yield from _text(shape, number, "notes")

    def _once(self, part: str) -> Any:
        """The root element of a part, or None when it was read before."""
        if part in self._read_parts:
            return None
        self._read_parts.add(part)
        return self._package.xml(part)


def _shapes(root: Any) -> Iterator[Any]:
    """Shapes with text, tables and graphics in their order, also those in groups."""
    return _outermost(root, {_P + "sp", _P + "graphicFrame"})


def _outermost(root: Any, tags: Set[str]) -> Iterator[Any]:
    """Elements of these kinds in their order, but for those within another."""
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag in tags:
            yield element
        elif element.tag != _FALLBACK:
            stack.extend(reversed(element))


def _text(shape: Any, number: int, placeholder: str) -> Iterator[Block]:
    paragraphs = [(_paragraph_text(each).strip(), each) for each in shape.iter(_A + "p")]
    paragraphs = [(text, each) for text, each in paragraphs if text]
    bullets = placeholder in _BODIES and len(paragraphs) > 1
    counters: dict[int, int] = {}
    """Of the numbered paragraphs that follow each other, by depth."""
    for text, paragraph in paragraphs:
        depth, numbering = _depth(paragraph), paragraph.find(f"{_A}pPr/{_A}buAutoNum")
        counters = {each: count for each, count in counters.items() if each < depth + (numbering is not None)}
        if numbering is not None:
            start = int(numbering.get("startAt", "1")) if _INTEGER.match(numbering.get("startAt", "1")) else 1
            counters[depth] = counters.get(depth, start - 1) + 1
            yield Block(BlockKind.LIST, "  " * depth + f"{_numbered(counters[depth], numbering)} {text}", page=number)
        elif bullets or depth:
            yield Block(BlockKind.LIST, "  " * depth + f"- {text}", page=number)
        else:
            yield Block(BlockKind.TEXT, text, page=number)


def _numbered(number: int, numbering: Any) -> str:
    """A number as a slide shows it: `arabicPeriod`, `alphaLcParenR`, `romanUcParenBoth` … (ECMA-376, 20.1.10.61)."""
    scheme = numbering.get("type", "")
    kind = next((kind for name, kind in _NUMERALS.items() if scheme.startswith(name)), "")
    shown = numeral(number, kind)
    return f"({shown})" if scheme.endswith("Both") else f"{shown})" if scheme.endswith("ParenR") else f"{shown}."


def _diagram(root: Any, number: int) -> Iterator[Block]:
    """The words of a diagram."""
    words = (" ".join(_paragraph_text(paragraph).split()) for paragraph in root.iter(_A + "p"))
    if text := "; ".join(dict.fromkeys(word for word in words if word)):
        yield Block(BlockKind.TEXT, text, page=number)


def _grid(table: Any) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in table.findall(_A + "tr"):
        cells: list[str] = []
        for column, cell in enumerate(row.findall(_A + "tc")):
            if cell.get("vMerge") in ("1", "true") and rows and column < len(rows[-1]):
                cells.append(rows[-1][column][:_MAX_REPEATED_CHARS])
            elif cell.get("hMerge") in ("1", "true"):
                cells.append(SPANNED)
            else:
                cells.append(" ".join(" ".join(_paragraph_text(p) for p in cell.iter(_A + "p")).split()))
        rows.append(cells)
    return rows


def _marks(table: Any) -> float:
    """What a table's style and bold type say of its first row: for a header, or against one."""
    typed = marks_of_type([_bold_cells(row) for row in table.findall(_A + "tr")])
    properties = table.find(_A + "tblPr")
    if typed or properties is None:
        return typed
    return {"1": SAYS_HEADER, "true": SAYS_HEADER, "": SAYS_NONE / 2}.get(properties.get("firstRow", ""), SAYS_NONE)


def _bold_cells(row: Any) -> list[bool]:
    """For each cell of a row with text whether all of it is bold."""
    of_cells = [[run for run in cell.iter(_A + "r") if (run.findtext(_A + "t") or "").strip()] for cell in row]
    return [
        all((run.find(_A + "rPr") is not None and run.find(_A + "rPr").get("b") in ("1", "true")) for run in runs)
        for runs in of_cells
        if runs
    ]


def _placeholder(shape: Any) -> str:
    """What the layout calls a shape: "title", "body" …; empty for a shape of its own."""
    element = next(shape.iter(_P + "ph"), None)
    return "" if element is None else element.get("type", "obj")


def _depth(paragraph: Any) -> int:
    properties = paragraph.find(_A + "pPr")
    level = properties.get("lvl", "0") if properties is not None else "0"
    return int(level) if level.isascii() and level.isdigit() and int(level) < 9 else 0


def _paragraph_text(paragraph: Any) -> str:
    breaks = {_A + "br": "\n", _A + "tab": "\t"}
    elements = (each for each in paragraph.iter(_A + "t", *breaks) if each.tag in breaks or not _is_struck(each))
    return with_shifted(
        (breaks.get(each.tag) or each.text or "", 0 if each.tag in breaks else _shift(each)) for each in elements
    )


def _is_struck(text: Any) -> bool:
    """Whether a text is crossed out: what replaces it stands beside it."""
    properties = text.getparent().find(_A + "rPr")
    return properties is not None and properties.get("strike", "noStrike") != "noStrike"


def _shift(text: Any) -> int:
    """1 where a text stands raised, -1 where it stands lowered, else 0."""
    properties = text.getparent().find(_A + "rPr")
    baseline = properties.get("baseline", "0") if properties is not None else "0"
    return 0 if not baseline.strip("0%") else -1 if baseline.startswith("-") else 1
