"""HTML: the words a reader sees, without navigation and scripts. Headings, lists, code and table rows stay what they are. The walk
keeps its own stack, because a hostile page nests deeper than Python recurses."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.html_bounds import bounded_html
from services.ingest.reading.parsers.plain import encoding_warnings
from services.ingest.reading.parsers.table_values import with_shifted
from services.ingest.reading.parsers.tables import SPANNED, table_rows
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_DROPPED = (
    "script, style, noscript, template, svg, iframe, object, canvas, nav, footer, aside, form, button, select, dialog, "
    "[hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=contentinfo], [role=search], [style*='display:none'], "
    "[style*='display: none'], .mw-editsection, .navbox, .toc, #toc, .mw-jump-link, .reference, .noprint, .sidebar, "
    ".breadcrumb, .breadcrumbs, .cookie-banner, .share-buttons"
)
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article blockquote body caption center dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 h6 header "
        "hr html li main ol p pre section summary table tbody td tfoot th thead tr ul",
    )
)
_LINE_BREAK = "\u2028"
_PARAGRAPH_BREAK = re.compile(r"\u2028\s*\u2028\s*")
_MAX_CELL_CHARS = 2000
_MAX_INDENT = 8
_MAX_COLUMNS, _MAX_ROWS_OF_A_CELL, _MAX_HEADER_ROWS = 1000, 1000, 3  # the first is that of HTML (4.9.11)
_MAX_REPEATED_CHARS = 300
"""Of a cell that reaches over several rows, in each after its first."""
_MAX_FILLED = 50_000
"""Places of one table that cells reach into from elsewhere: a few words of code may claim millions."""
_MAX_LAYOUT_DEPTH = 16  # of tables in tables; deeper ones are read through
_LINK_LIST_MIN_ITEMS = 6
_MAX_LIST_ITEMS = 50_000
"""Looked at for menus; an item counts once for each list around it."""
_SHIFTED = {"sup": 1, "sub": -1}
_HEADING = re.compile(r"^h([1-6])$")
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w:.-]*+)([^<>]*+)(?<=/)>")
_VOID = frozenset(re.findall(r"\w+", "area base br col embed hr img input link meta param source track wbr"))
_XHTML_START = re.compile(r"\s*(?:<\?xml\b|<!doctype[^>]*xhtml)", re.IGNORECASE)


def parse_html(source: Source, name: str) -> ParsedDocument:
    """Reads a page. Its title is <title>, else the first heading, else the file's name."""
    decoded = decode(source.read_bytes(), is_html=True)
    text = without_empty_elements(decoded.text) if _XHTML_START.match(decoded.text) else decoded.text
    tree = LexborHTMLParser(bounded_html(text))
    title_node = tree.css_first("head title") or tree.css_first("h1")
    title = title_node.text() if title_node else None
    blocks = tuple(_blocks(tree))
    return ParsedDocument(title_or_name(title, name), blocks, warnings=encoding_warnings(decoded))


def without_empty_elements(text: str) -> str:
    """XHTML for a parser of HTML, to which <title/> or <script/> is an element that the rest of the page is in."""
    return _EMPTY_ELEMENT.sub(lambda m: m[0] if m[1].lower() in _VOID else f"<{m[1]}{m[2][:-1]}></{m[1]}>", text)


def blocks_of_html(fragment: str) -> list[Block]:
    """Blocks of a piece of HTML, as found inside Markdown."""
    return list(_blocks(LexborHTMLParser(bounded_html(fragment))))


def _blocks(tree: LexborHTMLParser) -> Iterator[Block]:
    for node in tree.css(_DROPPED):
        if node.tag not in ("html", "body"):
            node.decompose()
    _drop_link_lists(tree)
    root = _main_part(tree)
    if root is not None:
        yield from _Walk().run(root)


def _drop_link_lists(tree: LexborHTMLParser) -> None:
    """Removes menus that do not call themselves so: long lists of nothing but short links (link density, Kohlschütter et al.,
    WSDM 2010). A page that is mostly such lists is a list of links, and keeps them."""
    menus = []
    budget = _MAX_LIST_ITEMS
    for node in tree.css("ul, ol"):
        items = node.css("li")
        budget -= len(items)
        if budget < 0:
            break
        if _is_link_list(node, len(items)):
            menus.append(node)
    size = sum(len(node.text()) for node in menus)
    if tree.body is None or size > 0.5 * len(tree.body.text()):
        return
    for node in menus:
        node.decompose()


def _is_link_list(node: LexborNode, item_count: int) -> bool:
    if item_count < _LINK_LIST_MIN_ITEMS:
        return False
    text = len("".join(node.text().split()))
    linked = sum(len("".join(link.text().split())) for link in node.css("a"))
    return text < 40 * item_count and linked > 0.9 * text


def _main_part(tree: LexborHTMLParser) -> LexborNode | None:
    """<main> or a lone <article> where it holds most of the page's words; else the body."""
    body = tree.body
    if body is None:
        return None
    total = len(body.text())
    for selector in ("main", "[role=main]", "article"):
        found = tree.css(selector)
        if len(found) == 1 and len(found[0].text()) > 0.5 * total:
            return found[0]
    return body


class _Grid:
    """The cells of a table by row and column, with those that reach over several."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._names: list[int] = []
        """For each row how many more of its cells are names than are not."""
        self._hanging: dict[int, tuple[int, str]] = {}
        """By column: the last row that a cell reaches down to, and its text."""
        self._span = (1, 1)
        self._filled_left = _MAX_FILLED

    @property
    def header_rows(self) -> int:
        """Rows at the top of which most cells are marked as names."""
        return sum(1 for _ in itertools.takewhile(lambda more: more > 0, self._names[:_MAX_HEADER_ROWS]))

    def begin_row(self) -> None:
        self.rows.append([])
        self._names.append(0)
        self._fill()

    def begin_cell(self, attributes: Mapping[str, str | None], *, is_name: bool) -> None:
        if not self.rows:
            self.begin_row()
        self._names[-1] += 1 if is_name else -1
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
class _Walk:
    """Collects inline text until a block ends, then emits it as what that block is."""

    blocks: list[Block] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    list_depth: int = 0
    pre_depth: int = 0
    tables: list[bool] = field(default_factory=list)
    """For each open table whether it holds data; a layout table is read through."""
    in_data: bool = False
    """Whether one of them does: then a cell is open, or what stands between cells."""
    grid: _Grid = field(default_factory=_Grid)
    raised_at: int = -1
    """Where in `words` a superscript or subscript begins; -1 outside one."""

    def run(self, root: LexborNode) -> list[Block]:
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._leave(node.tag or "")
                continue
            if node.is_text_node:
                self.words.append(node.text_content or "")
                continue
            self._enter(node, node.tag or "")
            stack.append((node, True))
            child = node.last_child
            while child is not None:
                if child.is_text_node or child.is_element_node:
                    stack.append((child, False))
                child = child.prev
        self._flush(BlockKind.TEXT)
        return self.blocks

    def _enter(self, node: LexborNode, tag: str) -> None:
        if tag == "br":
            self.words.append("\n" if self.pre_depth else _LINE_BREAK)
        elif tag in _BLOCKS:
            self._flush(BlockKind.TEXT)
        if tag in _SHIFTED:
            self.raised_at = len(self.words)
        elif tag in ("ul", "ol"):
            self.list_depth += 1
        elif tag == "pre":
            self.pre_depth += 1
        elif tag == "table":
            shallow = len(self.tables) < _MAX_LAYOUT_DEPTH
            self.tables.append(shallow and not self.in_data and _holds_data(node))
            if self.tables[-1]:
                self.in_data, self.grid = True, _Grid()
        elif tag == "tr" and self.in_data:
            self.grid.begin_row()
        elif tag in ("td", "th") and self.in_data:
            self.grid.begin_cell(node.attributes, is_name=tag == "th")

    def _leave(self, tag: str) -> None:
        heading = _HEADING.match(tag)
        if tag in ("td", "th") and self.in_data:
            self.grid.end_cell(" ".join(self._take().split()))
        elif heading:
            self._flush(BlockKind.HEADING, int(heading[1]))
        elif tag in _BLOCKS:
            self._flush(BlockKind.TEXT)
        if tag in _SHIFTED:
            self._lower(_SHIFTED[tag])
        elif tag in ("ul", "ol"):
            self.list_depth -= 1
        elif tag == "pre":
            self.pre_depth -= 1
        elif tag == "table" and self.tables.pop():
            self.blocks.extend(table_rows(self.grid.rows, header_rows=self.grid.header_rows))
            self.in_data = False

    def _lower(self, shift: int) -> None:
        """Keeps a superscript or subscript apart from the number before it, which it would else make another number."""
        before, raised = "".join(self.words[: self.raised_at][-1:]), "".join(self.words[self.raised_at :])
        if self.raised_at >= 0 and before and raised.strip():
            self.words[self.raised_at :] = [with_shifted([(before, 0), (raised.strip(), shift)])[len(before) :]]
        self.raised_at = -1

    def _take(self) -> str:
        text, self.words = "".join(self.words), []
        return text

    def _flush(self, kind: BlockKind, level: int = 0) -> None:
        if self.in_data:
            self.words.append(" ")  # a paragraph in a cell belongs to the cell
            return
        text = self._take()
        if self.pre_depth:
            if text.strip():
                self.blocks.append(Block(BlockKind.CODE, text.strip("\n")))
            return
        marker = (
            "  " * min(self.list_depth - 1, _MAX_INDENT) + "- " if kind is BlockKind.TEXT and self.list_depth else ""
        )
        for part in _PARAGRAPH_BREAK.split(text):
            lines = (" ".join(line.split()) for line in part.split(_LINE_BREAK))
            words = "\n".join(line for line in lines if line)
            if words:
                self.blocks.append(Block(BlockKind.LIST if marker else kind, marker + words, level=level))


def _holds_data(table: LexborNode) -> bool:
    """Whether a table is one, and not a page layout: no table in it, several columns, no cell as long as a page."""
    if any(inner.mem_id != table.mem_id for inner in table.css("table")):
        return False
    rows = table.css("tr")
    widest = max((len(row.css("td, th")) for row in rows[:50]), default=0)
    longest = max((len(cell.text()) for cell in table.css("td")), default=0)
    return widest > 1 and (longest < _MAX_CELL_CHARS)
