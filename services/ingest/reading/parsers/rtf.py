"""Rich text (RTF 1.9), with striprtf: paragraphs and the rows of tables. Styles, pictures and notes are not in what it gives."""

import itertools
import re
from collections.abc import Iterator

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.tables import table_rows
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_CELL_END = "|"
_TITLE = re.compile(r"\{\\title ([^{}\\]{1,300})\}")
_FIELD = re.compile(r"\{\\field(?=\{)", re.IGNORECASE)
_FONT_TABLE = re.compile(r"\{[^{}]*\\fonttbl")
_FONT = re.compile(r"\\f(\d{1,5})(?!\d)")
_CHARSET = re.compile(r"\\fcharset(\d{1,3})(?!\d)")
_BRACE = re.compile(r"[{}]")
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
    bare = striprtf.remove_pict_groups(code).replace("\\bin", "\\bits")
    text = striprtf.rtf_to_text(_easily_read(bare), errors="replace").replace("\0", "")
    losses = (left_out(sum(1 for _ in mark.finditer(code)), what) for what, mark in _LOST.items())
    return tuple(_blocks(text)), tuple(itertools.chain.from_iterable(losses))


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
