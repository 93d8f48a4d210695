"""From parsed blocks to the one cleaned text of a document. Everything later refers to it by character positions."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

from services.ingest import page_lines
from services.ingest.models import Block, BlockKind, CleanDocument, LineBox, ParsedDocument, Section
from services.ingest.page_lines import Line

_SEPARATOR = "\n\n"
# Line breaks of all kinds become \n; everything else invisible goes: control characters, marks of direction (they can show a text
# other than the one that is searched), zero-width spaces, soft hyphens, lone surrogates, private noncharacters.
_BREAKS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc\ud800-\udfff\uffff]"
)
_SPACES = re.compile(r"[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_PDF_HYPHEN = re.compile("([^\\W\\d_]+)[\ufffe\x02]([^\\W\\d_]+)")
_BROKEN_WORD = re.compile("\\w+[\ufffe\x02]\\w+|\\w+-\\n\\w+")
_LINE_HYPHEN = re.compile(r"([^\W\d_]{2,})-$")
_STARTS_LOWER = re.compile(r"^[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_WRAPPED_MIN, _WRAPPED_MAX = 40, 120


def clean(parsed: ParsedDocument) -> CleanDocument:
    """Normalises characters, removes page furniture, undoes hyphenation and line wrapping, and notes where each block is."""
    builder = _Builder(parsed.title)
    if parsed.page_statuses:
        _add_pages(builder, parsed.blocks)
    else:
        for block in parsed.blocks:
            text = _clean_block(block)
            if text:
                builder.add(block, text)
    return builder.document()


def clean_characters(text: str) -> str:
    """NFC, plain spaces, no invisible characters. Line breaks stay."""
    text = _INVISIBLE.sub("", _BREAKS.sub("\n", text))
    return unicodedata.normalize("NFC", text.translate(_LIGATURES))


def _clean_block(block: Block) -> str:
    text = clean_characters(block.text).strip("\n")
    if block.kind is BlockKind.CODE:
        return "\n".join(line.rstrip() for line in text.expandtabs(4).split("\n")).strip("\n")
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
    )
    text = lines[0]
    for before, after in itertools.pairwise(lines):
        text += (page_lines.joint(before, after, longest) if wrapped else "\n") + after
    return text


class _Builder:
    """Appends blocks to the cleaned text and keeps the headings above the current one."""

    def __init__(self, title: str) -> None:
        self._title = " ".join(clean_characters(title).split())
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
            self._path = [*(above for above in self._path if above[2] < block.level), (text, start, block.level)]
        path = tuple((heading, at) for heading, at, _ in self._path)
        label = " ".join(clean_characters(block.label).split())
        self._sections.append(Section(block.kind, start, self._length, block.page, path, block.level, label))
        self._lines.extend(LineBox(start + line.start, start + line.end, line.page, line.box) for line in lines)

    def document(self) -> CleanDocument:
        return CleanDocument(self._title, "".join(self._parts), tuple(self._sections), tuple(self._lines))

    def _continues(self, block: Block) -> bool:
        tight = (BlockKind.LIST, BlockKind.ROW, BlockKind.TABLE)
        return block.kind in tight and bool(self._sections) and self._sections[-1].kind is block.kind

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _add_pages(builder: _Builder, blocks: Sequence[Block]) -> None:
    vocabulary = _vocabulary(blocks)
    pages = [[_clean_line(line, vocabulary) for line in page_lines.lines_of(block)] for block in blocks]
    numbered = [page_lines.without_line_numbers([line for line in page if line.text]) for page in pages]
    kept = page_lines.without_page_furniture(numbered)
    for page in kept:
        full = page_lines.full_width(page) if page else 0
        for group in page_lines.paragraphs(page):
            text, boxes = _joined(group, full, vocabulary)
            builder.add(Block(BlockKind.TEXT, text, page=group[0].page), text, boxes)


def _vocabulary(blocks: Sequence[Block]) -> set[str]:
    """The document's unbroken words, in lower case."""
    words: set[str] = set()
    for block in blocks:
        words.update(_WORD.findall(_BROKEN_WORD.sub(" ", block.text).lower()))
    return words


def _clean_line(line: Line, vocabulary: set[str]) -> Line:
    text = _PDF_HYPHEN.sub(lambda m: m[1] + _hyphen(m[1], m[2], vocabulary) + m[2], line.text)
    text = clean_characters(text.replace("\ufffe", "-").replace("\x02", "-")).replace("\n", " ")
    return Line(_SPACES.sub(" ", text).strip(), line.page, line.box)


def _hyphen(before: str, after: str, vocabulary: set[str]) -> str:
    """Whether a word broken at a line's end had its hyphen before: the document's other words know."""
    if f"{before}-{after}".lower() in vocabulary or not after[0].islower():
        return "-"
    if f"{before}{after}".lower() in vocabulary:
        return ""
    both_are_words = len(before) > 2 and len(after) > 2 and {before.lower(), after.lower()} <= vocabulary
    return "-" if both_are_words else ""


def _joined(group: Sequence[Line], full: float, vocabulary: set[str]) -> tuple[str, list[LineBox]]:
    text, boxes = "", []
    for line in group:
        broken, word = _LINE_HYPHEN.search(text), _STARTS_LOWER.match(line.text)
        if broken and word and word[0][0].islower():
            text = text[:-1] + _hyphen(broken[1], word[0], vocabulary)
        elif text:
            text += page_lines.joint(text.rpartition("\n")[2], line.text, full)
        start = len(text)
        text += line.text
        if line.box:
            boxes.append(LineBox(start, len(text), line.page, line.box))
    return text, boxes
