"""Plain text: paragraphs are separated by blank lines; text that was wrapped by hand is unwrapped later, by cleaning. Entries of a
log are units of their own: most lines have a time near their beginning."""

import re
from itertools import pairwise

from services.ingest.reading.decoding import DecodedText, decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_ENTRY = re.compile(r"^(?=.{0,48}?(?<!\d)\d{1,2}:\d{2}:\d{2}(?!\d))\S", re.MULTILINE)
"""The first character of a line with a time of day, to the second, in its first 48 characters: syslog, ISO 8601, access logs."""
_MIN_ENTRIES = 3
_MIN_ENTRY_SHARE = 0.5
"""Of the lines. The others belong to the entry before them: stack traces, wrapped messages."""


def parse_plain(source: Source, name: str) -> ParsedDocument:
    """Reads a text file in whatever encoding."""
    decoded = decode(source.read_bytes())
    return ParsedDocument(
        title_from(name), tuple(_entries(decoded.text) or paragraphs(decoded.text)), warnings=encoding_warnings(decoded)
    )


def paragraphs(text: str) -> list[Block]:
    """Blocks between blank lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [Block(BlockKind.TEXT, part) for part in re.split(r"\n[ \t\f\v]*\n\s*", text) if part.strip()]


def _entries(text: str) -> list[Block]:
    """Those of a log; none where it is another text."""
    starts = [found.start() for found in _ENTRY.finditer(text)]
    lines = sum(1 for line in text.splitlines() if line.strip())
    if len(starts) < _MIN_ENTRIES or len(starts) < _MIN_ENTRY_SHARE * lines:
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
