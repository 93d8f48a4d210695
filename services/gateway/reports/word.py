"""A Word document (.docx) of text in Markdown. A paragraph runs from right to left where its text does."""

import io
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CODE_FONT = "Courier New"
_DEEPEST_LIST = 3
"""Levels of lists that Word's styles have; deeper ones look like the third."""
_DEEPEST_HEADING = 9
_BEHIND_DIRECTION = (
    "w:adjustRightInd",
    "w:snapToGrid",
    "w:spacing",
    "w:ind",
    "w:contextualSpacing",
    "w:jc",
    "w:outlineLvl",
)
"""Elements that stand behind `w:bidi` in the properties of a paragraph: Word insists on their order."""


def markdown_reader() -> MarkdownIt:
    """Reads Markdown that others wrote: HTML, links and pictures in it are shown as they are written."""
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink", "reference"])


def is_right_to_left(text: str) -> bool:
    """By the first letter that has a direction."""
    kinds = (unicodedata.bidirectional(char) for char in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


class WordDocument:
    """Written from the top to the bottom."""

    def __init__(self) -> None:
        from docx import Document  # noqa: PLC0415 - with lxml it takes memory that few gateways need

        self._document = Document()
        self._reader = markdown_reader()

    def add_heading(self, text: str, level: int) -> None:
        """`level` 0 is the title of the document."""
        heading = self._document.add_heading(level=min(level, _DEEPEST_HEADING))
        self._write(heading, text, is_bold=True)

    def add_paragraph(self, text: str, style: str | None = None) -> None:
        """`text` is no Markdown: it is written as it is."""
        self._write(self._document.add_paragraph(style=style), text)

    def add_table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A row of headings, then `rows`; no cell is Markdown."""
        self._fill_table([columns, *rows])

    def add_markdown(self, text: str, heading_level: int = 0) -> None:
        """`heading_level` is added to the level of each heading."""
        tokens = self._reader.parse(text)
        lists = _Lists()
        rows: list[list[Token]] = []
        for token, inline in zip(tokens, [*tokens[1:], None], strict=True):
            lists.see(token)
            match token.type:
                case "heading_open" if inline is not None:
                    level = int(token.tag[1]) + heading_level
                    heading = self._document.add_heading(level=min(level, _DEEPEST_HEADING))
                    self._write_inline(heading, inline, is_bold=True)
                case "paragraph_open" if inline is not None:
                    self._write_inline(self._document.add_paragraph(style=lists.style), inline, lists.take_mark())
                case "fence" | "code_block":
                    self._add_code(token.content)
                case "tr_open":
                    rows.append([])
                case "th_open" | "td_open" if inline is not None:
                    rows[-1].append(inline)
                case "table_close":
                    self._fill_table(rows)
                    rows = []

    def to_bytes(self) -> bytes:
        written = io.BytesIO()
        self._document.save(written)
        return written.getvalue()

    def _add_code(self, text: str) -> None:
        for line in text.rstrip("\n").split("\n"):
            self._document.add_paragraph().add_run(_plain(line)).font.name = _CODE_FONT

    def _fill_table(self, rows: Sequence[Sequence[str | Token]]) -> None:
        width = max(len(row) for row in rows)
        table = self._document.add_table(rows=len(rows), cols=width, style="Table Grid")
        first = rows[0][0] if rows[0] else ""
        if is_right_to_left(first if isinstance(first, str) else first.content):
            from docx.enum.table import WD_TABLE_DIRECTION  # noqa: PLC0415 - as in __init__

            table.table_direction = WD_TABLE_DIRECTION.RTL
        for number, (row, values) in enumerate(zip(table.rows, rows, strict=True)):
            for cell, value in zip(row.cells, values, strict=False):
                paragraph = cell.paragraphs[0]
                if isinstance(value, str):
                    self._write(paragraph, value, is_bold=number == 0)
                else:
                    self._write_inline(paragraph, value, is_bold=number == 0)

    def _write(self, paragraph: Any, text: str, *, is_bold: bool = False) -> None:
        is_rtl = _set_direction(paragraph, text)
        _add_run(paragraph, text, is_rtl, is_bold=is_bold)

    def _write_inline(self, paragraph: Any, inline: Token, mark: str = "", *, is_bold: bool = False) -> None:
        is_rtl = _set_direction(paragraph, inline.content)
        if mark:
            _add_run(paragraph, mark, is_rtl)
        bold, italic = int(is_bold), 0
        for token in inline.children or ():
            match token.type:
                case "strong_open" | "strong_close":
                    bold += token.nesting
                case "em_open" | "em_close":
                    italic += token.nesting
                case "softbreak":
                    _add_run(paragraph, " ", is_rtl)
                case "hardbreak":
                    paragraph.add_run().add_break()
                case "code_inline":
                    _add_run(paragraph, token.content, is_rtl=False).font.name = _CODE_FONT
                case _:
                    _add_run(paragraph, token.content, is_rtl, is_bold=bold > 0, is_italic=italic > 0)


class _Lists:
    """The lists around a place in Markdown. Numbers are written as text: a numbered style would count on from list to list."""

    def __init__(self) -> None:
        self._next: list[int | None] = []
        """Of each list, from the outermost: the number of its next item; None where items have none."""
        self._mark = ""

    def see(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._next.append(None)
            case "ordered_list_open":
                self._next.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._next.pop()
            case "list_item_open" if (number := self._next[-1]) is not None:
                self._mark = f"{number}. "
                self._next[-1] = number + 1

    def take_mark(self) -> str:
        """The number of an item, for its first paragraph."""
        mark, self._mark = self._mark, ""
        return mark

    @property
    def style(self) -> str | None:
        if not self._next:
            return None
        name = "List Bullet" if self._next[-1] is None else "List"
        depth = min(len(self._next), _DEEPEST_LIST)
        return name if depth == 1 else f"{name} {depth}"


def _set_direction(paragraph: Any, text: str) -> bool:
    """Whether the paragraph runs from right to left, as is then written into it."""
    is_rtl = is_right_to_left(text)
    if is_rtl:
        from docx.oxml import OxmlElement  # noqa: PLC0415 - as in WordDocument

        properties = paragraph._p.get_or_add_pPr()
        properties.insert_element_before(OxmlElement("w:bidi"), *_BEHIND_DIRECTION)
    return is_rtl


def _add_run(paragraph: Any, text: str, is_rtl: bool, *, is_bold: bool = False, is_italic: bool = False) -> Any:
    run = paragraph.add_run(_plain(text))
    if is_rtl:
        run.font.rtl = True
    if is_bold:
        run.font.bold = run.font.cs_bold = True
    if is_italic:
        run.font.italic = run.font.cs_italic = True
    return run


def _plain(text: str) -> str:
    """Without characters that XML 1.0 forbids."""
    return _NOT_XML.sub("", text)
