"""PDF through PDFium: the text layer of each page, or the text in its picture where the layer is missing or cannot be believed.
PDFium is not thread-safe and may crash on hostile files: only the parsing child process imports it."""

import ctypes
import io
import itertools
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from services.ingest.errors import DocumentRejected
from services.ingest.reading.misreading import has_misread_words, with_misread_lines_unread
from services.ingest.reading.models import Block, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.pages.lost_ligatures import with_ligatures
from services.ingest.reading.parsers.pages.pdf_annotations import (
    Annotations,
    read_annotations,
    with_buttons,
    with_fields_printed,
)
from services.ingest.reading.parsers.pages.pdf_rules import Rules, read_rules
from services.ingest.reading.parsers.pages.pdf_tables import CarriedHeader, find_tables
from services.ingest.reading.parsers.pages.pdf_text import read_text_layer
from services.ingest.reading.parsers.pages.pdf_view import PageView
from services.ingest.reading.parsers.pages.printed_page import (
    PageResult,
    check_page_count,
    nothing_recognized,
    page_of,
    page_warnings,
    recognized_fragments,
    verdict,
)
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.recognition import OcrBudget, Picture, RecognitionFailed, RecognizerMissing
from services.ingest.reading.source import Source
from services.ingest.reading.text_quality import (
    WRONG_ENCODING,
    garbage_reason,
    is_partly_readable,
    with_encoding_repaired,
)

_ERROR_PASSWORD = 4  # FPDF_ERR_PASSWORD
_ERROR_SECURITY = 5  # FPDF_ERR_SECURITY: an encryption that PDFium does not know
_POINTS_PER_INCH = 72
_SCAN_DPI = 200
"""Letters of 8 points are 22 pixels high, about what the recogniser was trained on; 300 cost twice the time and read no better."""
_MAX_PIXELS = 8_000_000  # A3 at 200 dpi; a poster is read at less
_FEW_CHARS = 100
_LARGE_PICTURE = 0.5
_PICTURE_SHARE, _BACKGROUND_SHARE = 0.03, 0.8
_MAX_PICTURES = 1000
_MUCH_MORE = 1.5
_POORLY_RECOGNISED = "its text was recognised by another program (OCR), and many of its words are misread"
_THUMBNAIL_DPI = 24
_MAX_TEXTS = 50_000
"""Texts on one page that are painted one by one. A page whose letters are has 5 000. The library takes time with the square of
their number where each stands to the left of the one before."""
_MAX_FORM_DEPTH = 15


def parse_pdf(source: Source, name: str, ocr: OcrBudget | None = None) -> ParsedDocument:
    """Reads the pages. Raises DocumentRejected: PDF_ENCRYPTED, PDF_BROKEN, TOO_MANY_PAGES, OCR_SCRIPT_UNSUPPORTED,
    NO_TEXT."""
    import pypdfium2  # noqa: PLC0415 - loads a native library: only in the child, only when needed

    try:
        document = pypdfium2.PdfDocument(_mapped(source))
    except pypdfium2.PdfiumError as error:
        raise _rejected(name, getattr(error, "err_code", None)) from error
    try:
        return _read(document, name, ocr)
    finally:
        document.close()


def _mapped(source: Source) -> Any:
    """The file's bytes without a copy. By path, the library would look for a name that the child's file has not got."""
    with source.open("rb") as file:
        try:
            mapping: Any = mmap.mmap(
                file.fileno(), 0, access=mmap.ACCESS_COPY
            )  # ctypes takes nothing that cannot be written to
        except io.UnsupportedOperation:  # it is in memory
            mapping = bytearray(file.read())
    return (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)


def _rejected(name: str, code: int | None) -> DocumentRejected:
    if code == _ERROR_PASSWORD:
        return DocumentRejected(
            "PDF_ENCRYPTED", f"{name} is protected by a password; remove the protection and upload it again"
        )
    if code == _ERROR_SECURITY:
        return DocumentRejected(
            "PDF_ENCRYPTED", f"{name} is encrypted in a way that cannot be read; save it without and upload it again"
        )
    return DocumentRejected(
        "PDF_BROKEN", f"{name} is damaged or not a PDF; open it in a viewer, save it again and upload that"
    )


def _read(document: Any, name: str, ocr: OcrBudget | None) -> ParsedDocument:
    if len(document) == 0:
        raise DocumentRejected("PDF_BROKEN", f"{name} is a PDF without pages; export it again and upload that")
    check_page_count(len(document), name)  # a file of a kilobyte may claim a million
    title = document.get_metadata_dict().get("Title")
    if document.get_formtype():
        document.init_forms()  # before any page is opened; shows what fields hold also where the file has no picture of it
    carried = CarriedHeader()
    pages = with_ligatures([_read_page(document, index, ocr, carried) for index in range(len(document))])
    statuses = tuple(page.status for page in pages)
    blocks = tuple(block for page in pages for block in page.blocks)
    if not blocks:
        raise (nothing_recognized(name, pages, ocr) if ocr else None) or _nothing_read(name, pages)
    return ParsedDocument(title_or_name(title, name), blocks, statuses, tuple(page_warnings(pages)))


def _nothing_read(name: str, pages: Sequence[PageResult]) -> DocumentRejected:
    if all(page.status == "failed" and not page.warning for page in pages):
        none = "the only page" if len(pages) == 1 else f"none of the {len(pages)} pages"
        verb = "cannot" if len(pages) == 1 else "can"
        return DocumentRejected("PDF_BROKEN", f"{none} of {name} {verb} be read; save it again and upload that")
    count = "only page" if len(pages) == 1 else f"{len(pages)} pages"
    why = next((page.warning for page in pages if page.warning), "nothing is printed there")
    return DocumentRejected(
        "NO_TEXT", f"{name} has no readable text on its {count}: {why}; upload a version with a text layer"
    )


def _read_page(document: Any, index: int, ocr: OcrBudget | None, carried: CarriedHeader) -> PageResult:
    import pypdfium2  # noqa: PLC0415

    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return PageResult("failed")
    try:
        annotations = read_annotations(page, document.formenv)
        if annotations.shows_text:
            page = with_fields_printed(document, index, page)
        result = _read_open_page(page, index + 1, ocr, annotations, carried)
    except pypdfium2.PdfiumError:
        return PageResult("failed")
    finally:
        page.close()
    lost = left_out(annotations.comment_count, "comment") if result.blocks else []
    return replace(result, warning="; ".join(filter(None, (result.warning, *lost))))


def _read_open_page(
    page: Any, number: int, ocr: OcrBudget | None, annotations: Annotations, carried: CarriedHeader
) -> PageResult:
    if _has_countless_texts(page):
        return _from_picture(page, number, ocr, (), f"it is made of more than {_MAX_TEXTS} pieces")
    view = PageView.of(page)
    rules = read_rules(page, view)
    layer = read_text_layer(page.get_textpage(), view, rules)
    text = " ".join(fragment.text for fragment in layer.fragments)
    garbage = garbage_reason(text, layer.unmapped_count)
    repaired = ""
    if garbage == WRONG_ENCODING and (texts := with_encoding_repaired([each.text for each in layer.fragments])):
        mended = (replace(each, text=right) for each, right in zip(layer.fragments, texts, strict=True))
        layer, garbage, repaired = replace(layer, fragments=tuple(mended)), "", f"{garbage}, which was put right"
    if not text and not _has_ink(page):
        return PageResult("empty")
    if annotations.buttons and layer.turn == 0:
        layer = replace(layer, fragments=with_buttons(layer.fragments, annotations.buttons, view))
    # The rules of a page that lies on its side are not turned with its text.
    ruled, fragments = find_tables(rules if layer.turn == 0 else Rules(), layer.fragments)
    # What is written into fields comes last in the file.
    is_form = annotations.shows_text
    blocks = page_of(fragments, number, turn=layer.turn, trust_order=not is_form, tables=ruled, carried=carried)
    if text and not garbage and not _looks_scanned(page, view, text):
        doubt = _POORLY_RECOGNISED if has_misread_words(text) and _is_recognised_layer(page, view) else ""
        warning = "; ".join(filter(None, (repaired, doubt)))
        return PageResult("text", blocks, warning, picture_count=_picture_count(page, view))
    return _from_picture(page, number, ocr, blocks, garbage)


def _has_countless_texts(page: Any) -> bool:
    import pypdfium2  # noqa: PLC0415

    texts = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_TEXT], max_depth=_MAX_FORM_DEPTH)
    return next(itertools.islice(texts, _MAX_TEXTS, None), None) is not None


def _from_picture(page: Any, number: int, ocr: OcrBudget | None, layer: tuple[Block, ...], garbage: str) -> PageResult:
    """The page as recognised from its picture; its text layer where that says no less, or where there is nothing better."""
    text = "\n".join(block.text for block in layer)
    instead = PageResult("text", layer) if layer and not garbage else None
    unread = f"its text layer cannot be used ({garbage})" if garbage else "it is a picture"
    lost = PageResult("failed")
    if garbage and is_partly_readable(text):
        lost = PageResult("text", layer)
        unread = f"its text layer is partly unreadable ({garbage})"
    if ocr is None or ocr.spent:
        why = ocr.spent if ocr else "text recognition (OCR) is off"
        return instead or replace(lost, warning=f"{unread}, and {why}")
    try:
        picture, points_per_pixel = _rendered(page)
        found = with_misread_lines_unread(ocr.read(picture), ocr.scripts)
    except RecognizerMissing as missing:
        return instead or replace(lost, warning=f"{unread}, and {missing}")
    except RecognitionFailed:
        return instead or replace(lost, warning=f"{unread}, and text recognition (OCR) failed on it")
    blocks = page_of(recognized_fragments(found, points_per_pixel), number, turn=found.turn, trust_order=False)
    if instead and sum(len(block.text) for block in blocks) < _MUCH_MORE * len(text):
        return instead
    judged = verdict(found, ocr.scripts)
    if judged.status == "ocr":
        return PageResult("ocr", blocks, judged.text, found.scripts_seen())
    status = lost.status if garbage else judged.status
    return replace(lost, status=status, warning=f"{unread}, and {judged.text}", is_foreign=judged.is_foreign)


def _looks_scanned(page: Any, view: PageView, text: str) -> bool:
    """Whether what little text there is stands on a large picture: a scan with a stamp, a header, a page number."""
    if sum(1 for char in text if not char.isspace()) >= _FEW_CHARS:
        return False
    return any(_area(bounds) > _LARGE_PICTURE * view.area for bounds in _picture_bounds(page))


def _is_recognised_layer(page: Any, view: PageView) -> bool:
    """Whether the text is not painted, over a picture of the page: as programs for text recognition write it."""
    import pypdfium2  # noqa: PLC0415

    if not any(_area(bounds) > _LARGE_PICTURE * view.area for bounds in _picture_bounds(page)):
        return False
    texts = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_TEXT], max_depth=_MAX_FORM_DEPTH)
    modes = [pypdfium2.raw.FPDFTextObj_GetTextRenderMode(text.raw) for text in itertools.islice(texts, _MAX_TEXTS)]
    return 2 * modes.count(pypdfium2.raw.FPDF_TEXTRENDERMODE_INVISIBLE) > len(modes)


def _picture_count(page: Any, view: PageView) -> int:
    """Pictures that may say something: larger than a logo, smaller than a background."""
    shares = (_area(bounds) / max(view.area, 1.0) for bounds in itertools.islice(_picture_bounds(page), _MAX_PICTURES))
    return sum(1 for share in shares if _PICTURE_SHARE < share < _BACKGROUND_SHARE)


def _picture_bounds(page: Any) -> Iterator[tuple[float, float, float, float]]:
    import pypdfium2  # noqa: PLC0415

    for picture in page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE], max_depth=3):
        try:
            yield picture.get_bounds()
        except pypdfium2.PdfiumError:
            continue


def _area(bounds: tuple[float, float, float, float]) -> float:
    left, bottom, right, top = bounds
    return max(0.0, right - left) * max(0.0, top - bottom)


def _has_ink(page: Any) -> bool:
    """Whether anything is painted on the page."""
    thumbnail = page.render(scale=_scale(page, _THUMBNAIL_DPI), grayscale=True).to_numpy()
    return bool(np.ptp(thumbnail) > 32)


def _rendered(page: Any) -> tuple[Picture, float]:
    """The page as a picture, and points per pixel."""
    scale = _scale(page, _SCAN_DPI)
    pixels = page.render(scale=scale).to_numpy()
    return np.ascontiguousarray(pixels[:, :, :3]), 1 / scale


def _scale(page: Any, dpi: int) -> float:
    width, height = page.get_size()
    return float(min(dpi / _POINTS_PER_INCH, (_MAX_PIXELS / max(width * height, 1.0)) ** 0.5))
