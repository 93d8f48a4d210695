"""OpenDocument presentations (.odp), read from their XML (ODF 1.3): a slide is a page. Its title is a heading; then texts, lists
and tables in their order, and the speaker's notes. Dates, footers and slide numbers are left out; so are pictures and charts, whose
numbers lie in files of their own, and that is said."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.office.opendocument import (
    DRAW,
    OFFICE,
    PARAGRAPHS,
    annotations_left_out,
    content_of,
    flow,
    title_of,
    words,
)
from services.ingest.reading.parsers.office.package import damaged, open_package
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_PRESENTATION = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_CLASS = _PRESENTATION + "class"
_NOTES = _PRESENTATION + "notes"
_FURNITURE = {"date-time", "footer", "header", "page-number", "page"}
_MAX_SLIDES = 5000


def parse_odp(source: Source, name: str) -> ParsedDocument:
    """Reads the slides. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        body = content_of(package).find(f"{OFFICE}body/{OFFICE}presentation")
        slides = list(body.iterchildren(DRAW + "page"))[:_MAX_SLIDES] if body is not None else []
        if not slides:
            raise damaged(name, "it has no slides")
        pages = [_slide(slide, number) for number, slide in enumerate(slides, 1)]
        blocks = tuple(block for page in pages for block in page)
        title = title_of(package) or next((each.text for each in blocks if each.kind is BlockKind.HEADING), None)
        statuses = tuple("text" if page else "empty" for page in pages)
        warnings = (*package.warnings, *_losses(slides), *annotations_left_out(body))
        return ParsedDocument(title_or_name(title, name), blocks, statuses, warnings, flowing=True)


def _slide(slide: Any, number: int) -> list[Block]:
    titles: list[Block] = []
    rest: list[Block] = []
    notes: list[Block] = []
    for element in slide:
        if element.tag == _NOTES:
            for frame in element:
                notes.extend(flow([frame]) if _class_of(frame) not in _FURNITURE else ())
        elif _class_of(element) == "title":
            text = " ".join(" ".join(words(paragraph) for paragraph in element.iter(*PARAGRAPHS)).split())
            titles.extend([Block(BlockKind.HEADING, text, level=1)] if text else [])
        elif _class_of(element) not in _FURNITURE:
            rest.extend(flow([element]))
    return [replace(block, page=number) for block in (*titles, *rest, *notes)]


def _class_of(element: Any) -> str:
    """What the layout calls a frame: "title", "outline", "notes" …; empty for one of its own."""
    return str(element.get(_CLASS) or "")


def _losses(slides: list[Any]) -> Iterator[str]:
    """Pictures, and objects such as charts: each has a picture of itself beside it."""
    frames = [frame for slide in slides for frame in slide.iter(DRAW + "frame")]
    objects = sum(1 for frame in frames if frame.find(DRAW + "object") is not None)
    pictures = sum(1 for frame in frames if frame.find(DRAW + "image") is not None)
    yield from left_out(max(0, pictures - objects), "picture")
    yield from left_out(objects, "chart or other object")
