"""Rich text (RTF 1.9), with striprtf: paragraphs and the rows of tables. Styles, pictures and notes are not in what it gives.
What the type says of a text (raised, struck out, hidden) is marked in the code before, and read from these marks."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.tables.rows import table_rows
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_CELL_END = "|"
_TITLE = re.compile(r"\{\\title ([^{}\\]{1,300})\}")
_FIELD = re.compile(r"\{\\field(?=\{)", re.IGNORECASE)
_FONT_TABLE = re.compile(r"\{[^{}]*\\fonttbl")
_FONT = re.compile(r"\\f(\d{1,5})(?!\d)")
_CHARSET = re.compile(r"\\fcharset(\d{1,3})(?!\d)")
_BRACE = re.compile(r"[{}]")
_SHIFTED, _UNSHIFTED = {"super": 1, "up": 1, "sub": -1, "dn": -1}, ("nosupersub", "plain")
_UNSEEN = {
    "strike": "struck-out passage",
    "striked": "struck-out passage",
    "deleted": "deleted passage",
    "v": "hidden passage",
}
_TYPED = re.compile(rf"\\(?:{'|'.join([*_SHIFTED, *_UNSEEN])})(?![a-z])")
_TOKEN = re.compile(
    rf"\\[\\{{}}]|[{{}}]|\\({'|'.join([*_SHIFTED, *_UNSHIFTED, *_UNSEEN])})(-?\d{{1,6}})?(?![a-z0-9]) ?"
)
_RAISED, _LOWERED, _ON_LINE, _NOT_SHOWN = "\x01\x02\x03\x04"
"""Stand in the text for what its type says from there on."""
_MARKS = re.compile(f"([{_RAISED}-{_NOT_SHOWN}])")
_LOST = {"picture": re.compile(r"\\pict\b"), "footnote": re.compile(r"\\footnote\b")}


def parse_rtf(source: Source, name: str) -> ParsedDocument:
    """Reads a document."""
    code = source.read_bytes()
    blocks, warnings = read_rtf(code)
    title = _TITLE.search(code.decode("latin-1"))
    return ParsedDocument(title_or_name(title[1] if title else None, name), blocks, warnings=warnings)


def read_rtf(data: bytes) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The blocks of rich text, and what is not in them. Raises ValueError, LookupError or OverflowError where it is damaged."""
    from striprtf import striprtf  # noqa: PLC0415 - only the child that meets such a file pays for it

    code = data.decode("latin-1")  # each byte is a character: other letters are written as numbers
    # Its own pass over pictures is done before what is bounded below, and finds nothing more to do.
    bare = striprtf.remove_pict_groups(code).replace("\\bin", "\\bits").replace("\\pntext", "\\listtext")
    marked, unseen = _with_marks(bare) if _TYPED.search(bare) else (bare, Counter[str]())
    text = striprtf.rtf_to_text(_easily_read(marked), errors="replace").replace("\0", "")
    lost = Counter({what: sum(1 for _ in mark.finditer(code)) for what, mark in _LOST.items()}) + unseen
    losses = (left_out(count, what) for what, count in lost.items())
    return tuple(_blocks(_as_shown(text))), tuple(itertools.chain.from_iterable(losses))


@dataclass(frozen=True)
class _Type:
    """What the type of a text says of it."""

    shift: int = 0
    unseen: str = ""
    """Why a reader does not see it, or sees it crossed out; empty otherwise."""

    @property
    def mark(self) -> str:
        return _NOT_SHOWN if self.unseen else _ON_LINE if not self.shift else _RAISED if self.shift > 0 else _LOWERED

    def changed_by(self, word: str, value: str | None) -> "_Type":
        """The type behind a control word; a value of 0 switches it off."""
        if word == "plain":
            return _Type()
        if word in _UNSEEN:
            return replace(self, unseen="" if value == "0" else _UNSEEN[word])
        return replace(self, shift=0 if value == "0" else _SHIFTED.get(word, 0))


def _with_marks(code: str) -> tuple[str, "Counter[str]"]:
    """The code with marks where its type changes, which the library hands on as text; and how many passages are not shown."""
    code = _MARKS.sub("", code)
    parts: list[str] = []
    unseen: Counter[str] = Counter()
    groups: list[_Type] = []
    now, written = _Type(), 0
    for token in _TOKEN.finditer(code):
        before = now
        if token[0] == "{":
            groups.append(now)
        elif token[0] == "}":
            now = groups.pop() if groups else now
        elif token[1]:
            now = now.changed_by(token[1], token[2])
        if now.mark != before.mark:
            parts += [code[written : token.end()], now.mark]
            written = token.end()
            unseen[now.unseen] += 1
    return "".join([*parts, code[written:]]), Counter({what: count for what, count in unseen.items() if what})


def _as_shown(text: str) -> str:
    """A text with its raised and lowered digits apart from the number before them, and without what is not shown."""
    if not _MARKS.search(text):
        return text
    first, *rest = _MARKS.split(text)
    shifts = {_RAISED: 1, _LOWERED: -1, _ON_LINE: 0}
    parts = [(part, shifts[mark]) for mark, part in zip(rest[::2], rest[1::2], strict=True) if mark in shifts]
    return with_shifted([(first, 0), *parts])


def _easily_read(code: str) -> str:
    """The same text without what the library would search to the end of the file for each font and each link. The addresses of
    links are lost."""
    code = _FIELD.sub(r"\g<0>\n", code)
    start = _FONT_TABLE.search(code)
    if not start:
        return code
    depth, end = 1, len(code)
    for brace in _BRACE.finditer(code, start.end()):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            end = brace.start()
            break
    fonts = _FONT.split(code[start.end() : end])[1:]
    numbers, parts = fonts[::2], fonts[1::2]
    charsets = ((number, _CHARSET.search(part)) for number, part in zip(numbers, parts, strict=True))
    kept = "".join(f"{{\\f{number}\\fcharset{found[1]} a;}}" for number, found in charsets if found)
    return f"{code[: start.end()]}{kept}{code[end:]}"


def _blocks(text: str) -> Iterator[Block]:
    """A paragraph or a row of a table on each line."""
    for is_table, lines in itertools.groupby(text.split("\n"), key=lambda line: line.endswith(_CELL_END)):
        if is_table:
            yield from table_rows([[" ".join(cell.split()) for cell in line.split(_CELL_END)[:-1]] for line in lines])
        else:
            yield from (Block(BlockKind.TEXT, line.strip()) for line in lines if line.strip())
