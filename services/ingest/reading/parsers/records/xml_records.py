"""XML of any kind: an element whose children hold no further ones is a row of its attributes and their texts; what mixes text and
elements is a paragraph."""

from collections.abc import Iterator
from typing import Any

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.office.package import damaged, parse_xml
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_LONG_TEXT = 300
"""Characters of an element that is no field but a text."""


def parse_xml_file(source: Source, name: str) -> ParsedDocument:
    """Reads the elements. Raises DocumentRejected: FILE_DAMAGED, UNSAFE_XML."""
    root, is_whole = parse_xml(source.read_bytes(), name)
    if root is None:
        raise damaged(name, "it is no XML")
    warnings = () if is_whole else ("the file is damaged; what could be read of it was kept",)
    return ParsedDocument(title_from(name), tuple(_blocks(root)), warnings=warnings)


def _blocks(root: Any) -> Iterator[Block]:
    stack = [root]
    while stack:
        element = stack.pop()
        if _is_mixed(element):
            yield Block(BlockKind.TEXT, " ".join("".join(element.itertext()).split()))
            continue
        yield from _row(element)
        stack.extend(child for child in reversed(element) if len(child) or len(_words(child)) > _LONG_TEXT)


def _row(element: Any) -> Iterator[Block]:
    """The attributes of an element, its own text and its fields."""
    cells = [f"{_name(key)}: {' '.join(value.split())}" for key, value in element.attrib.items() if value.strip()]
    cells += [_words(element)] if not len(element) and _words(element) else []
    for child in element:
        text = _words(child)
        if not len(child) and len(text) <= _LONG_TEXT:
            said = [f"{_name(key)} {' '.join(value.split())}" for key, value in child.attrib.items() if value.strip()]
            shown = ", ".join(filter(None, (text, *said)))
            cells += [f"{_name(child.tag)}: {shown}"] if shown else []
    if cells:
        name = _name(element.tag)
        yield Block(
            BlockKind.ROW, f"{name}: {cells[0]}" if len(cells) == 1 else "; ".join((name, *cells)), label=cells[0][:120]
        )


def _is_mixed(element: Any) -> bool:
    """Whether text stands beside elements."""
    return len(element) > 0 and bool(
        (element.text or "").strip() or any((child.tail or "").strip() for child in element)
    )


def _words(element: Any) -> str:
    return " ".join((element.text or "").split())


def _name(tag: Any) -> str:
    return str(tag).rpartition("}")[2]
