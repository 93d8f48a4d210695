"""AsciiDoc, reStructuredText, Org and wiki texts: their headings, numbered items, tables and listings. All other text is kept as
it is written, marks included."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.tables.rows import table_rows
from services.ingest.reading.parsers.text.plain import encoding_warnings, paragraphs
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_ASCIIDOC, _ORG, _WIKI, _RST = "asciidoc", "org", "wiki", "rst"
_DIALECTS = {
    **dict.fromkeys((".adoc", ".asciidoc"), _ASCIIDOC), ".org": _ORG,
    **dict.fromkeys((".wiki", ".mediawiki"), _WIKI), ".rst": _RST, ".rest": _RST,
}  # fmt: skip
_HEADINGS = {
    _ASCIIDOC: re.compile(r"^(={1,6})[ \t]+(\S.*?)(?:[ \t]+=+)?[ \t]*$"),
    _ORG: re.compile(r"^(\*{1,6})[ \t]+(\S.*?)[ \t]*$"),
    _WIKI: re.compile(r"^(={1,6})[ \t]*([^=\s].*?)[ \t]*\1[ \t]*$"),
}
_ADORNMENT = re.compile(r"^([=\-`:.'\"~^_*+#])\1{2,}[ \t]*$")
_FENCES = {
    _ASCIIDOC: re.compile(r"^(-{4,}|\.{4,}|\+{4,})[ \t]*$"),
    _ORG: re.compile(r"^#\+(?:begin_(?:src|example)|end_(?:src|example))\b", re.IGNORECASE),
}
_NUMBERED = {_ASCIIDOC: re.compile(r"^(\.{1,5})[ \t]+(?=\S)"), _WIKI: re.compile(r"^(#{1,5})[ \t]*(?=[^#\s])")}
"""Items whose numbers are counted when they are shown."""
_TITLE = re.compile(r"^#\+title:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_TABLE_FENCE = re.compile(r"^\|={3,}[ \t]*$")
_MAX_HEADING_CHARS = 300
_ROW = re.compile(r"^[ \t]*\|")
_RULE = re.compile(r"^[ \t]*\|[-+|]+[ \t]*$")


def parse_markup(source: Source, name: str) -> ParsedDocument:
    """Reads a text of the dialect that its extension names. Its title is its own, or that of a heading at the very top."""
    decoded = decode(source.read_bytes())
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = tuple(_Reader(_DIALECTS.get(PurePath(name).suffix.lower(), _RST)).read(text.split("\n")))
    own = _TITLE.search(text)
    top = blocks[0].text if blocks and blocks[0].kind is BlockKind.HEADING else None
    return ParsedDocument(title_or_name(own[1] if own else top, name), blocks, warnings=encoding_warnings(decoded))


class _Reader:
    """Reads the lines of a text from the top."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._levels: list[tuple[str, bool]] = []
        """Adornments of headings by level, in the order in which they came."""
        self._counters: list[int] = []
        """Of the numbered items that are open, by depth."""
        self._is_below_empty = False

    def read(self, lines: Sequence[str]) -> Iterator[Block]:
        held: list[str] = []
        at = 0
        while at < len(lines):
            found = self._structure(lines, at)
            if found is None:
                held.append(self._numbered(lines[at]))
                at += 1
                continue
            yield from paragraphs("\n".join(held))
            blocks, at = found
            held, self._counters = [], []
            yield from blocks
        yield from paragraphs("\n".join(held))

    def _structure(self, lines: Sequence[str], at: int) -> tuple[list[Block], int] | None:
        """What begins at a line, and the line behind it; None where ordinary text does."""
        if (heading := self._heading(lines, at)) is not None:
            return heading
        fence = _FENCES.get(self._dialect)
        if fence and fence.match(lines[at]):
            mark = lines[at].strip() if self._dialect == _ASCIIDOC else None
            end = _first(lines, at + 1, lambda line: line.strip() == mark if mark else bool(fence.match(line)))
            return [Block(BlockKind.CODE, code)] if (
                code := "\n".join(lines[at + 1 : end]).strip("\n")
            ) else [], end + 1
        if self._dialect == _ASCIIDOC and _TABLE_FENCE.match(lines[at]):
            end = _first(lines, at + 1, lambda line: bool(_TABLE_FENCE.match(line)))
            return list(_asciidoc_table(lines[at + 1 : end])), end + 1
        if self._dialect == _ORG and _ROW.match(lines[at]):
            end = _first(lines, at, lambda line: not _ROW.match(line))
            return list(_org_table(lines[at:end])), end
        return None

    def _heading(self, lines: Sequence[str], at: int) -> tuple[list[Block], int] | None:
        if len(lines[at]) > _MAX_HEADING_CHARS:
            return None
        if self._dialect == _RST:
            return self._underlined(lines, at)
        found = _HEADINGS[self._dialect].match(lines[at])
        return ([Block(BlockKind.HEADING, found[2], level=len(found[1]))], at + 1) if found else None

    def _underlined(self, lines: Sequence[str], at: int) -> tuple[list[Block], int] | None:
        """A heading of reStructuredText: a line with one of marks below it that is as long, and maybe one above."""
        is_above = bool(_ADORNMENT.match(lines[at])) and at + 2 < len(lines)
        title, below = (
            (lines[at + 1], lines[at + 2]) if is_above else (lines[at], lines[at + 1] if at + 1 < len(lines) else "")
        )
        if is_above and below.strip() != lines[at].strip():
            return None
        if (
            not title.strip()
            or _ADORNMENT.match(title)
            or not _ADORNMENT.match(below)
            or len(below.strip()) < len(title.strip())
        ):
            return None
        look = (below[0], is_above)
        if look not in self._levels:
            self._levels.append(look)
        level = min(self._levels.index(look) + 1, 6)
        return [Block(BlockKind.HEADING, title.strip(), level=level)], at + 2 + is_above

    def _numbered(self, line: str) -> str:
        """A line with its number where it is an item of a list that is numbered when it is shown."""
        pattern = _NUMBERED.get(self._dialect)
        found = pattern.match(line) if pattern else None
        is_below_empty, self._is_below_empty = self._is_below_empty, not line.strip()
        if found is None:
            if is_below_empty and line[:1].strip():  # a paragraph of its own ends the lists
                self._counters = []
            return line
        depth = len(found[1])
        self._counters = [*self._counters[:depth], *[0] * (depth - len(self._counters))]
        self._counters[-1] += 1
        return f"{'  ' * (depth - 1)}{self._counters[-1]}. {line[found.end() :]}"


def _first(lines: Sequence[str], start: int, ends: Callable[[str], bool]) -> int:
    """The first line from `start` that ends something; behind the last where none does."""
    return next((at for at in range(start, len(lines)) if ends(lines[at])), len(lines))


def _asciidoc_table(lines: Sequence[str]) -> Iterator[Block]:
    """Rows of as many cells as the first line has. The first row is the header where an empty line follows."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    width = lines[filled[0]].count("|") if filled else 0
    before, *cells = (" ".join(cell.split()) for cell in "\n".join(lines).split("|"))
    if before:
        yield Block(BlockKind.TEXT, before)
    rows = [cells[at : at + width] for at in range(0, len(cells), width)] if width else [[cell] for cell in cells]
    has_header = len(filled) > 1 and filled[1] - filled[0] > 1
    yield from table_rows(rows, header_rows=1 if has_header else None)


def _org_table(lines: Sequence[str]) -> Iterator[Block]:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if not _RULE.match(line)]
    yield from table_rows(rows, header_rows=1 if len(lines) > 1 and _RULE.match(lines[1]) else None)
