"""Plain text: paragraphs are separated by blank lines; text that was wrapped by hand is unwrapped later, by cleaning."""

import re

from services.ingest.reading.decoding import DecodedText, decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source


def parse_plain(source: Source, name: str) -> ParsedDocument:
    """Reads a text file in whatever encoding."""
    decoded = decode(source.read_bytes())
    return ParsedDocument(title_from(name), tuple(paragraphs(decoded.text)), warnings=encoding_warnings(decoded))


def paragraphs(text: str) -> list[Block]:
    """Blocks between blank lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [Block(BlockKind.TEXT, part) for part in re.split(r"\n[ \t\f\v]*\n\s*", text) if part.strip()]


def encoding_warnings(decoded: DecodedText) -> tuple[str, ...]:
    """What a person should know about how the bytes were read."""
    broken = decoded.text.count("\ufffd")
    warnings = []
    if decoded.guessed:
        warnings.append(f"the file does not say its encoding; read as {decoded.encoding}")
    if broken:
        warnings.append(f"{broken} characters could not be read in encoding {decoded.encoding}")
    return tuple(warnings)
