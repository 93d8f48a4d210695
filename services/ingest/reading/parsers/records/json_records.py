"""JSON and JSON Lines: each object becomes a row of its values behind their names, so that one found by search makes sense without
the file around it. Long texts in it become paragraphs under the row."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from services.ingest.errors import DocumentRejected
from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.messages.telegram import parse_telegram
from services.ingest.reading.parsers.office.package import damaged
from services.ingest.reading.parsers.tables.rows import MAX_COLUMN_NAME_CHARS
from services.ingest.reading.parsers.text.plain import encoding_warnings, paragraphs
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_LONG_TEXT = 300
"""Characters of a value that is no field but a text."""
_MAX_DEPTH = 100
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*+")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL)
"""What settings in JSON have beyond the standard: comments, and commas before a closing bracket. Texts are skipped."""
_NAMING = ("name", "title", "id", "label", "key")


def parse_json(source: Source, name: str) -> ParsedDocument:
    """Reads one value. Raises DocumentRejected: FILE_DAMAGED, TOO_DEEPLY_NESTED."""
    decoded = decode(source.read_bytes())
    try:
        value = _loads(decoded.text)
    except ValueError as error:
        if "\n" in decoded.text.strip():  # JSON Lines under another name
            document = _lines(decoded.text, name)
            if document.blocks and not document.warnings:
                return document
        with contextlib.suppress(ValueError):
            value = _loads(_COMMENT.sub(lambda found: found[1] or "", decoded.text))
            return ParsedDocument(title_from(name), tuple(_blocks(value, ())), warnings=encoding_warnings(decoded))
        raise damaged(name, f"it is no JSON ({error})") from error
    return ParsedDocument(title_from(name), tuple(_blocks(value, ())), warnings=encoding_warnings(decoded))


def parse_json_lines(source: Source, name: str) -> ParsedDocument:
    """Reads a value on each line. Raises DocumentRejected: FILE_DAMAGED, TOO_DEEPLY_NESTED."""
    decoded = decode(source.read_bytes())
    document = _lines(decoded.text, name)
    if document.warnings and not document.blocks:
        raise damaged(name, "none of its lines is JSON")
    return ParsedDocument(document.title, document.blocks, warnings=encoding_warnings(decoded) + document.warnings)


def parse_telegram_or_json(source: Source, name: str) -> ParsedDocument:
    """Reads what begins like an export of Telegram. Raises DocumentRejected as its parsers do."""
    try:
        return parse_telegram(source, name)
    except DocumentRejected as rejected:
        if rejected.reason != "UNSUPPORTED_TYPE":
            raise
    return parse_json(source, name)


def _lines(text: str, name: str) -> ParsedDocument:
    blocks: list[Block] = []
    broken = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            blocks.extend(_blocks(_loads(line), ()))
        except ValueError:
            broken += 1
    warnings = (f"{broken} lines are no JSON and were left out",) if broken else ()
    return ParsedDocument(title_from(name), tuple(blocks), warnings=warnings)


def _loads(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str)  # as they are written; an integer may have a million digits


def _blocks(value: Any, path: tuple[str, ...]) -> Iterator[Block]:
    if len(path) > _MAX_DEPTH:
        raise RecursionError(f"more than {_MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        yield from _object(value, path)
    elif isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value):
        for item in value:
            yield from _blocks(item, path)
    elif text := _text(value):
        yield Block(BlockKind.ROW, ": ".join(filter(None, (_dotted(path), text))))


def _object(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Block]:
    """One row of what is short, then the long texts, then the objects in lists."""
    fields: list[tuple[str, str]] = []
    texts: list[tuple[str, str]] = []
    further: list[tuple[tuple[str, ...], Any]] = []
    _sort(value, (), fields, texts, further)
    if fields:
        cells = [f"{name}: {text}" for name, text in fields]
        naming = next(
            (cell for key in _NAMING for cell, (name, _) in zip(cells, fields, strict=True) if name.lower() == key),
            cells[0],
        )
        above = _dotted(path)
        yield Block(BlockKind.ROW, "; ".join([above, *cells] if above else cells), label=naming[:120])
    for name, text in texts:
        first, *rest = paragraphs(text)
        yield Block(BlockKind.TEXT, f"{name}: {first.text}")
        yield from rest
    for inner, items in further:
        yield from _blocks(items, (*path, *inner))


def _sort(
    value: Mapping[str, Any],
    path: tuple[str, ...],
    fields: list[tuple[str, str]],
    texts: list[tuple[str, str]],
    further: list[tuple[tuple[str, ...], Any]],
) -> None:
    """Values of an object and of those within it by what becomes of them."""
    if len(path) > _MAX_DEPTH:
        raise RecursionError(f"more than {_MAX_DEPTH} levels")
    for key, item in value.items():
        inner = (*path, " ".join(str(key).split())[:MAX_COLUMN_NAME_CHARS])
        if isinstance(item, Mapping):
            if any(isinstance(each, (Mapping, list)) for each in item.values()):
                further.append((inner, item))
            else:
                _sort(item, inner, fields, texts, further)
        elif isinstance(item, list) and any(isinstance(each, (Mapping, list)) for each in item):
            further.append((inner, item))
        elif text := _text(item):
            (texts if len(text) > _LONG_TEXT and isinstance(item, str) else fields).append((_dotted(inner), text))


def _text(value: Any) -> str:
    """A value as it is written; of a list, all of them."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if len(str(value)) > _LONG_TEXT else " ".join(str(value).split())


def _dotted(path: Sequence[str]) -> str:
    return ".".join(path)[-MAX_COLUMN_NAME_CHARS:]
