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
_LOST = {"picture": re.compile(r"\\pict\b"), "footnote": re.compile(r"\\footnote\b")}


def parse_rtf(source: Source, name: str) -> ParsedDocument:
    """Reads a document."""
    from striprtf.striprtf import rtf_to_text  # noqa: PLC0415 - only the child that meets such a file pays for it

    code = source.read_bytes().decode("latin-1")  # each byte is a character: other letters are written as numbers
    text = rtf_to_text(code, errors="replace").replace("\0", "")
    title = _TITLE.search(code)
    losses = (left_out(sum(1 for _ in mark.finditer(code)), what) for what, mark in _LOST.items())
    warnings = tuple(itertools.chain.from_iterable(losses))
    return ParsedDocument(title_or_name(title[1] if title else None, name), tuple(_blocks(text)), warnings=warnings)


def _blocks(text: str) -> Iterator[Block]:
    """A paragraph or a row of a table on each line."""
    for is_table, lines in itertools.groupby(text.split("\n"), key=lambda line: line.endswith(_CELL_END)):
        if is_table:
            yield from table_rows([[" ".join(cell.split()) for cell in line.split(_CELL_END)[:-1]] for line in lines])
        else:
            yield from (Block(BlockKind.TEXT, line.strip()) for line in lines if line.strip())
