"""From parsed blocks to the one cleaned text of a document. Everything later refers to it by character positions."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from services.ingest.reading import page_lines
from services.ingest.reading.headings import PrintedPage, heading_levels
from services.ingest.reading.models import Block, BlockKind, CleanDocument, LineBox, ParsedDocument, Section
from services.ingest.reading.page_lines import Line

_HEADING_CHARS = 300
"""Of a heading as it is repeated with each chunk below it. What is longer is no heading."""
_SEPARATOR = "\n\n"
# Line breaks of all kinds become \n; everything else invisible goes: control characters, marks of direction (they can show a text
# other than the one that is searched), zero-width spaces, soft hyphens, lone surrogates, private noncharacters.
_BREAKS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc\ud800-\udfff\uffff]"
)
_SPACES = re.compile(r"[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_MAX_STACKED_MARKS = 30
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_PDF_HYPHEN = re.compile("(?<![^\\W\\d_])([^\\W\\d_]++)[\ufffe\x02]([^\\W\\d_]+)")
_BROKEN_WORD = re.compile("(?<!\\w)\\w++(?:[\ufffe\x02]|-\\n)\\w+")
_LINE_HYPHEN = re.compile(r"(?<![^\W\d_])([^\W\d_]{2,}+)-$")
_STARTS_LOWER = re.compile(r"^[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_CELLS = " | "
"""Between the cells of a row: such lines are no wrapped paragraph."""
_WRAPPED_MIN, _WRAPPED_MAX = 40, 120
_TAIL_CHARS = 1000
"""Of a paragraph that is being joined: they decide how the next line joins it. Or a full line's, where that is more."""


def clean(parsed: ParsedDocument) -> CleanDocument:
    """Normalises characters, removes page furniture, undoes hyphenation and line wrapping, and notes where each block is."""
    builder = _Builder(parsed.title)
    if parsed.page_statuses and not parsed.flowing:
        _add_pages(builder, parsed)
    else:
        for block in parsed.blocks:
            text = _clean_block(block)
            if text:
                builder.add(block, text)
    return builder.document()


def clean_characters(text: str) -> str:
    """NFC, plain spaces, no invisible characters. Line breaks stay."""
    text = _INVISIBLE.sub("", _BREAKS.sub("\n", text))
    if text.isascii():
        return text
    text = _stacked_marks().sub(r"\1", text)
    return unicodedata.normalize("NFC", text.translate(_LIGATURES))


@cache
def _stacked_marks() -> "re.Pattern[str]":
    """More marks on one letter than any script has: putting them in order takes time with the square of their number. The bound is
    that of the Stream-Safe Text Format (UAX #15, D4)."""
    marks = "".join(char for char in map(chr, range(0x300, 0x1E94B)) if unicodedata.combining(char))
    return re.compile(f"([{marks}]{{{_MAX_STACKED_MARKS}}})[{marks}]+")


def _one_line(text: str) -> str:
    return " ".join(clean_characters(text).split())


def _clean_block(block: Block) -> str:
    text = clean_characters(block.text).strip("\n")
    if block.kind is BlockKind.CODE:
        return "\n".join(line.rstrip() for line in text.expandtabs(4).split("\n")).strip("\n")
    if block.kind is BlockKind.MESSAGE:
        return "\n".join(line for line in (_SPACES.sub(" ", line).strip() for line in text.split("\n")) if line)
    indent = "" if block.kind is not BlockKind.LIST else text[: len(text) - len(text.lstrip(" "))]
    lines = [_SPACES.sub(" ", line).strip() for line in text.split("\n")]
    lines = [line for line in lines if line]
    if block.kind is BlockKind.HEADING:
        return " ".join(lines)
    return indent + _unwrapped(lines) if lines else ""


def _unwrapped(lines: Sequence[str]) -> str:
    """Joins the lines of a paragraph that was wrapped at a column; keeps those of an address, a poem or a listing."""
    longest = max(len(line) for line in lines)
    wrapped = (
        len(lines) > 1
        and _WRAPPED_MIN <= longest <= _WRAPPED_MAX
        and all(len(line) >= 0.6 * longest for line in lines[:-1])
        and not all(_CELLS in line for line in lines)
    )
    if not wrapped:
        return "\n".join(lines)
    parts = [lines[0]]
    for before, after in itertools.pairwise(lines):
        parts += [page_lines.joint(before, after, longest), after]
    return "".join(parts)


class _Builder:
    """Appends blocks to the cleaned text and keeps the headings above the current one."""

    def __init__(self, title: str) -> None:
        self._title = _one_line(title)
        self._parts: list[str] = []
        self._length = 0
        self._sections: list[Section] = []
        self._lines: list[LineBox] = []
        self._path: list[tuple[str, int, int]] = []

    def add(self, block: Block, text: str, lines: Iterable[LineBox] = ()) -> None:
        if self._parts:
            self._append(_SEPARATOR if not self._continues(block) else "\n")
        start = self._length
        self._append(text)
        if block.kind is BlockKind.HEADING:
            heading = text[:_HEADING_CHARS]
            self._path = [*(above for above in self._path if above[2] < block.level), (heading, start, block.level)]
        headings = tuple((heading, at) for heading, at, _ in self._path)
        context = tuple((_one_line(name), -1) for name in block.context)  # above the text, never in it
        # A function is within its section, a section within its message.
        path = (*headings, *context) if block.kind is BlockKind.CODE else (*context, *headings)
        metadata = {key: _one_line(value) for key, value in block.metadata.items()}
        label = _one_line(block.label)
        place = (block.kind, start, self._length, block.page, path, block.level)
        self._sections.append(Section(*place, label, metadata, block.begins_part))
        self._lines.extend(LineBox(start + line.start, start + line.end, line.page, line.box) for line in lines)

    def document(self) -> CleanDocument:
        return CleanDocument(self._title, "".join(self._parts), tuple(self._sections), tuple(self._lines))

    def _continues(self, block: Block) -> bool:
        tight = (BlockKind.LIST, BlockKind.ROW, BlockKind.TABLE)
        return block.kind in tight and bool(self._sections) and self._sections[-1].kind is block.kind

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _add_pages(builder: _Builder, parsed: ParsedDocument) -> None:
    vocabulary = _vocabulary(parsed.blocks)
    pages = [list(page) for _, page in itertools.groupby(parsed.blocks, key=lambda block: block.page)]
    numbered = [page_lines.without_line_numbers(_printed_lines(page, vocabulary)) for page in pages]
    kept = page_lines.without_page_furniture(numbered)
    exact = [parsed.page_statuses[page[0].page - 1] == "text" for page in pages]
    grouped = [_paragraphs(*of_page) for of_page in zip(pages, kept, exact, strict=True)]
    printed = [
        # A row of a table has no paragraphs.
        PrintedPage([group for part in parts for group in part or [[]]], is_exact)
        for parts, is_exact in zip(grouped, exact, strict=True)
    ]
    for page, lines, parts, levels in zip(pages, kept, grouped, heading_levels(printed), strict=True):
        full = page_lines.full_width(lines) if lines else 0
        left = iter(levels)
        for block, part in zip(page, parts, strict=True):
            if block.kind is not BlockKind.TEXT:
                _add_table_row(builder, block)
            if not part:
                next(left)
            for group in part:
                text, boxes = _joined(group, full, vocabulary)
                if level := next(left):
                    text = text.replace("\n", " ")
                    found = Block(BlockKind.HEADING, text, page=block.page, level=level)
                else:
                    found = Block(BlockKind.TEXT, text, page=block.page)
                builder.add(found, text, boxes)


def _paragraphs(page: Sequence[Block], lines: Sequence[Line], exact: bool) -> list[list[list[Line]]]:
    """For each block of a page its paragraphs; none for the row of a table."""
    by_part = {part: list(those) for part, those in itertools.groupby(lines, key=lambda line: line.part)}
    return [page_lines.paragraphs(by_part.get(part, ()), exact=exact) for part in range(len(page))]


def _printed_lines(page: Sequence[Block], vocabulary: set[str]) -> list[Line]:
    lines = [
        _clean_line(line, vocabulary)
        for part, block in enumerate(page)
        if block.kind is BlockKind.TEXT
        for line in page_lines.lines_of(block, part)
    ]
    return [line for line in lines if line.text]


def _add_table_row(builder: _Builder, block: Block) -> None:
    text = _SPACES.sub(" ", clean_characters(block.text)).strip()
    if text:
        places = [LineBox(0, len(text), line.page, line.box) for line in block.lines]
        builder.add(block, text, places)


def _vocabulary(blocks: Sequence[Block]) -> set[str]:
    """The document's unbroken words, in lower case."""
    words: set[str] = set()
    for block in blocks:
        words.update(_WORD.findall(_BROKEN_WORD.sub(" ", block.text).lower()))
    return words


def _clean_line(line: Line, vocabulary: set[str]) -> Line:
    text = _PDF_HYPHEN.sub(lambda m: m[1] + _hyphen(m[1], m[2], vocabulary) + m[2], line.text)
    text = clean_characters(text.replace("\ufffe", "-").replace("\x02", "-")).replace("\n", " ")
    return replace(line, text=_SPACES.sub(" ", text).strip())


def _hyphen(before: str, after: str, vocabulary: set[str]) -> str:
    """Whether a word broken at a line's end had its hyphen before: the document's other words know."""
    if f"{before}-{after}".lower() in vocabulary or not after[0].islower():
        return "-"
    if f"{before}{after}".lower() in vocabulary:
        return ""
    both_are_words = len(before) > 2 and len(after) > 2 and {before.lower(), after.lower()} <= vocabulary
    return "-" if both_are_words else ""


def _joined(group: Sequence[Line], full: float, vocabulary: set[str]) -> tuple[str, list[LineBox]]:
    parts: list[str] = []
    boxes: list[LineBox] = []
    length = 0
    tail = ""
    """The end of what has been joined without a line break."""
    reach = max(_TAIL_CHARS, int(full))
    for line in group:
        broken, word = _LINE_HYPHEN.search(tail), _STARTS_LOWER.match(line.text)
        if broken and word and word[0][0].islower():
            parts[-1], tail, length = parts[-1][:-1], tail[:-1], length - 1
            between = _hyphen(broken[1], word[0], vocabulary)
        else:
            between = page_lines.joint(tail, line.text, full) if parts else ""
        start = length + len(between)
        parts += [between, line.text]
        length = start + len(line.text)
        tail = (line.text if between == "\n" else tail + between + line.text)[-reach:]
        if line.place:
            boxes.append(LineBox(start, length, line.page, line.place))
    return "".join(parts), boxes
