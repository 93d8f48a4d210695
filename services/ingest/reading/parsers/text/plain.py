"""Plain text: paragraphs are separated by blank lines; text that was wrapped by hand is unwrapped later, by cleaning. Entries of a
log are units of their own: most lines have a time near their beginning."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import PurePath

from kit.language.log_entries import LOG_ENTRY
from services.ingest.reading.decoding import DecodedText, decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.tables.rows import table_rows
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_RULE = re.compile(r"[\s|+:=-]*[-=]{3}[\s|+:=-]*")
_RULE_OF_COLUMNS = re.compile(r"^[ \t]*(?:={2,}|-{2,})(?:[ \t]+(?:={2,}|-{2,}))+[ \t]*$", re.MULTILINE)
_MAX_CELL = 120
"""Characters: a longer one is a paragraph with a bar in it."""
_MAX_LINE = 40
"""Characters of a line with one bar: longer ones may be a wrapped paragraph about bars, which keeps its words."""
_LINE = re.compile(r"^\S", re.MULTILINE)
_MIN_ENTRIES = 3
_MIN_ENTRY_SHARE = 0.5
"""Of the lines. The others belong to the entry before them: stack traces, wrapped messages."""
_MIN_LOG_SHARE = 0.02
"""Of the lines of what is called a log: traces are long."""


def parse_plain(source: Source, name: str) -> ParsedDocument:
    """Reads a text file in whatever encoding."""
    decoded = decode(source.read_bytes())
    is_log = _is_log(name)
    blocks = _entries(decoded.text, LOG_ENTRY, _MIN_LOG_SHARE if is_log else _MIN_ENTRY_SHARE)
    blocks = blocks or (_entries(decoded.text, _LINE, _MIN_ENTRY_SHARE) if is_log else [])
    return ParsedDocument(
        title_from(name), tuple(blocks or paragraphs(decoded.text)), warnings=encoding_warnings(decoded)
    )


def _is_log(name: str) -> bool:
    """Whether a file is called a log: `app.log`, `app.log.2`."""
    return ".log" in PurePath(name).suffixes[-2:]


def paragraphs(text: str) -> list[Block]:
    """Blocks between blank lines; of those that are tables a block a row."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parts = [part for part in re.split(r"\n[ \t\f\v]*\n\s*", text) if part.strip()]
    return [block for part in parts for block in _rows(part) or [Block(BlockKind.TEXT, part)]]


def _rows(part: str) -> list[Block]:
    """Those of a table that somebody typed, cells between bars or tabs; none where the lines differ in their number of cells, or
    are too long for one."""
    rule = _RULE_OF_COLUMNS.search(part)
    of_columns = [_below_rule(rule[0])] if rule else []
    lines = [line for line in part.split("\n") if line.strip() and not _RULE.fullmatch(line)]
    for cells_of in (*of_columns, _between_bars, _between_tabs):
        rows = [cells_of(line) for line in lines]
        width = len(rows[0]) if rows else 0
        cells = [cell for row in rows for cell in row]
        if len(rows) < 2 or width < 2 or {len(row) for row in rows} != {width} or max(map(len, cells)) > _MAX_CELL:
            continue
        is_prose = width == 2 and "|" in part and max(map(len, lines)) > _MAX_LINE and not part.lstrip().startswith("|")
        return [] if is_prose else list(table_rows(rows))
    return []


def _below_rule(rule: str) -> Callable[[str], list[str]]:
    """Cuts a line at the columns of a rule, `=====  =====`. A line with words across gives none."""
    starts = [found.start() for found in re.finditer(r"\S+", rule)]

    def cells_of(line: str) -> list[str]:
        if any(line[start - 1 : start].strip() for start in starts[1:]):
            return []
        return [line[start:stop].strip() for start, stop in pairwise([*starts, None])]

    return cells_of


def _between_bars(line: str) -> list[str]:
    line = line.strip()
    cells = line.strip("|").split("|") if line.startswith("|") else re.split(r"\s\|(?:\s|$)", line)
    return [cell.strip() for cell in cells]


def _between_tabs(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"\t+", line.strip())]


def _entries(text: str, first: "re.Pattern[str]", min_share: float) -> list[Block]:
    """The entries of a log: each begins with `first`. None where it is another text."""
    starts = [found.start() for found in first.finditer(text)]
    lines = sum(1 for line in text.splitlines() if line.strip())
    if len(starts) < _MIN_ENTRIES or len(starts) < min_share * lines:
        return []
    before = [Block(BlockKind.TEXT, text[: starts[0]].strip())] if text[: starts[0]].strip() else []
    spans = pairwise([*starts, len(text)])
    return [*before, *(Block(BlockKind.ROW, text[start:end].strip()) for start, end in spans)]


def encoding_warnings(decoded: DecodedText) -> tuple[str, ...]:
    """What a person should know about how the bytes were read."""
    broken = decoded.text.count("\ufffd")
    warnings = []
    if decoded.guessed:
        warnings.append(f"the file does not say its encoding; read as {decoded.encoding}")
    if broken:
        warnings.append(f"{broken} characters could not be read in encoding {decoded.encoding}")
    return tuple(warnings)
