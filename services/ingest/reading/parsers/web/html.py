"""HTML: the words a reader sees, without navigation and scripts. Headings, lists, code and table rows stay what they are. The walk
keeps its own stack, because a hostile page nests deeper than Python recurses."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.tables.rows import table_rows
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.parsers.web.html_bounds import bounded_html
from services.ingest.reading.parsers.web.html_forms import is_filled_in, print_fields
from services.ingest.reading.parsers.web.html_structures import Grid, OpenList
from services.ingest.reading.source import Source

_DROPPED = (
    "script, style, noscript, template, svg, iframe, object, canvas, nav, footer, aside, form, button, select, dialog, "
    "[hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=contentinfo], [role=search], [style*='display:none'], "
    "[style*='display: none'], .mw-editsection, .navbox, .toc, #toc, .mw-jump-link, .reference, .noprint, .sidebar, "
    ".breadcrumb, .breadcrumbs, .cookie-banner, .share-buttons"
)
_STRUCK = "del, s, strike"
"""Crossed out: what replaces it stands beside it."""
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
_MAX_LAYOUT_DEPTH = 16  # of tables in tables; deeper ones are read through
_LINK_LIST_MIN_ITEMS = 6
_MAX_LIST_ITEMS = 50_000
"""Looked at for menus; an item counts once for each list around it."""
_OF_LISTS = frozenset(("ul", "ol", "li", "dl", "dd"))
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
    struck = left_out(sum(1 for node in tree.css(_STRUCK) if node.text().strip()), "struck-out passage")
    blocks = tuple(_blocks(tree))
    return ParsedDocument(title_or_name(title, name), blocks, warnings=(*encoding_warnings(decoded), *struck))


def without_empty_elements(text: str) -> str:
    """XHTML for a parser of HTML, to which <title/> or <script/> is an element that the rest of the page is in."""
    return _EMPTY_ELEMENT.sub(lambda m: m[0] if m[1].lower() in _VOID else f"<{m[1]}{m[2][:-1]}></{m[1]}>", text)


def blocks_of_html(fragment: str) -> list[Block]:
    """Blocks of a piece of HTML, as found inside Markdown."""
    return list(_blocks(LexborHTMLParser(bounded_html(fragment))))


def _blocks(tree: LexborHTMLParser) -> Iterator[Block]:
    total = len(tree.body.text()) if tree.body else 0
    print_fields(tree)
    for node in tree.css(f"{_DROPPED}, {_STRUCK}"):
        is_form = node.tag == "form" and (2 * len(node.text()) > total or is_filled_in(node))
        if not is_form and node.tag not in ("html", "body"):
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


@dataclass
class _Walk:
    """Collects inline text until a block ends, then emits it as what that block is."""

    blocks: list[Block] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    lists: list["OpenList"] = field(default_factory=list)
    """Those that are open."""
    term: str = ""
    """Of a list of terms: what the next text defines."""
    is_term_said: bool = True
    """Whether the definition that is open has begun."""
    is_defined: bool = True
    pre_depth: int = 0
    tables: list[bool] = field(default_factory=list)
    """For each open table whether it holds data; a layout table is read through."""
    in_data: bool = False
    """Whether one of them does: then a cell is open, or what stands between cells."""
    grid: Grid = field(default_factory=Grid)
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
        elif tag == "pre":
            self.pre_depth += 1
        elif tag in _OF_LISTS:
            self._enter_list(node, tag)
        else:
            self._enter_table(node, tag)

    def _enter_list(self, node: LexborNode, tag: str) -> None:
        if tag in ("ul", "ol"):
            self.lists.append(OpenList.of(node.attributes, _item_count(node)) if tag == "ol" else OpenList())
        elif tag == "li" and self.lists:
            self.lists[-1].begin_item(node.attributes)
        elif tag == "dd":
            self.is_term_said = False

    def _enter_table(self, node: LexborNode, tag: str) -> None:
        if tag == "table":
            shallow = len(self.tables) < _MAX_LAYOUT_DEPTH
            self.tables.append(shallow and not self.in_data and _holds_data(node))
            if self.tables[-1]:
                self.in_data, self.grid = True, Grid()
        elif tag == "tr" and self.in_data:
            self.grid.begin_row()
        elif tag in ("td", "th") and self.in_data:
            self.grid.begin_cell(node.attributes, is_name=tag == "th", is_bold=tag == "th" or _is_bold(node))

    def _leave(self, tag: str) -> None:
        heading = _HEADING.match(tag)
        if tag in ("td", "th", "caption") and self.in_data:
            self._leave_cell(tag)
        elif heading:
            self._flush(BlockKind.HEADING, int(heading[1]))
        elif tag == "dt" and not self.in_data:
            self._name_term(" ".join(self._take().split()))
        elif tag in _BLOCKS:
            self._flush(BlockKind.TEXT)
        if tag in _SHIFTED:
            self._lower(_SHIFTED[tag])
        elif tag in _OF_LISTS:
            self._leave_list(tag)
        elif tag == "pre":
            self.pre_depth -= 1
        elif tag == "table" and self.tables.pop():
            self.blocks.extend(table_rows(self.grid.rows, header_rows=self.grid.header_rows))
            self.in_data = False

    def _leave_cell(self, tag: str) -> None:
        text = " ".join(self._take().split())
        if tag != "caption":
            self.grid.end_cell(text)
        elif text:
            self.blocks.append(Block(BlockKind.TEXT, text))

    def _leave_list(self, tag: str) -> None:
        if tag in ("ul", "ol") and self.lists:
            self.lists.pop()
        elif tag == "dl":
            self._name_term("")

    def _name_term(self, term: str) -> None:
        """Begins a term. Terms in a row have one definition; one that nothing defines is a line of its own."""
        if self.term and not self.is_defined and term:
            term = f"{self.term.rstrip(' :')}, {term}"
        elif self.term and not self.is_defined:
            self.blocks.append(Block(BlockKind.LIST, self.term))
        self.term, self.is_defined = term, False

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
        marker = self.lists[-1].marker(len(self.lists)) if kind is BlockKind.TEXT and self.lists else ""
        is_item = bool(self.lists) and kind is BlockKind.TEXT
        for part in _PARAGRAPH_BREAK.split(text):
            lines = (" ".join(line.split()) for line in part.split(_LINE_BREAK))
            words = "\n".join(line for line in lines if line)
            if not words:
                continue
            if self.term and not self.is_term_said:
                words, kind = f"{self.term.rstrip(' :')}: {words}", BlockKind.LIST
                self.is_term_said = self.is_defined = True
            self.blocks.append(Block(BlockKind.LIST if is_item else kind, marker + words, level=level))
            if is_item:
                self.lists[-1].is_begun = True
                marker = self.lists[-1].marker(len(self.lists))


def _is_bold(cell: LexborNode) -> bool:
    """Whether all that a cell says is in bold type."""
    words = cell.text().split()
    return bool(words) and words == [word for each in cell.css("b, strong") for word in each.text().split()]


def _item_count(node: LexborNode) -> int:
    return sum(1 for each in node.iter() if each.tag == "li")


def _holds_data(table: LexborNode) -> bool:
    """Whether a table is one, and not a page layout: no table in it, several columns, no cell as long as a page."""
    if any(inner.mem_id != table.mem_id for inner in table.css("table")):
        return False
    rows = table.css("tr")
    widest = max((len(row.css("td, th")) for row in rows[:50]), default=0)
    longest = max((len(cell.text()) for cell in table.css("td")), default=0)
    return widest > 1 and (longest < _MAX_CELL_CHARS)
