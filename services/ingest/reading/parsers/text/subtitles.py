"""Subtitles (SubRip, WebVTT): what is said, with the speaker where the file names one, and the time at which a paragraph begins."""

import re
from collections.abc import Iterator

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_TIMES = re.compile(r"^\s*((?:\d+:)?\d{1,2}:\d{2})[.,]\d{1,3}\s*-->")
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^>]+)>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|\{\\[^{}]*\}")
_PARAGRAPH = 300
"""Characters from which a paragraph ends with the next sentence."""


def parse_subtitles(source: Source, name: str) -> ParsedDocument:
    """Reads the cues."""
    decoded = decode(source.read_bytes())
    return ParsedDocument(title_from(name), tuple(_blocks(decoded.text)), warnings=encoding_warnings(decoded))


def _blocks(text: str) -> Iterator[Block]:
    begins, said = "", ""
    for time, words in _cues(text):
        said, begins = (f"{said} {words}", begins) if said else (words, time)
        if len(said) >= _PARAGRAPH and said.endswith((".", "!", "?", "…", "。")):
            yield Block(BlockKind.TEXT, f"{begins} {said}".strip())
            said = ""
    if said:
        yield Block(BlockKind.TEXT, f"{begins} {said}".strip())


def _cues(text: str) -> Iterator[tuple[str, str]]:
    """The time and the words of each cue; notes and titles of the file have no time."""
    for part in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n").replace("\r", "\n")):
        lines = part.strip("\n\ufeff").split("\n")
        at = next((at for at, line in enumerate(lines) if _TIMES.match(line)), None)
        times = _TIMES.match(lines[at]) if at is not None else None
        shown = (
            lines[at + 1 :] if at is not None else [line for line in lines if not line.startswith(("WEBVTT", "STYLE"))]
        )
        words = " ".join(_TAG.sub("", _VOICE.sub(r"\1: ", line)).strip() for line in shown)
        if words.strip():
            yield times[1] if times else "", " ".join(words.split())
