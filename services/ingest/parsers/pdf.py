"""PDF with a text layer, through PDFium: the text of each page with the place of each line. Scanned pages have no text; reading
them needs OCR. PDFium is not thread-safe and may crash on hostile files: only the parsing child process imports it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.ingest.errors import DocumentRejected
from services.ingest.models import Block, BlockKind, LineBox, ParsedDocument
from services.ingest.parsers.titles import title_or_name

_ERROR_PASSWORD = 4  # FPDF_ERR_PASSWORD
_ERROR_SECURITY = 5  # FPDF_ERR_SECURITY: an encryption that PDFium does not know
_MAX_LISTED = 20


def parse_pdf(path: Path, name: str) -> ParsedDocument:
    """Reads the pages, each as one block of lines. Raises DocumentRejected: PDF_ENCRYPTED, PDF_BROKEN, NO_TEXT."""
    import pypdfium2  # noqa: PLC0415 - loads a native library: only in the child, only when needed

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise _rejected(name, getattr(error, "err_code", None)) from error
    try:
        return _read(document, name)
    finally:
        document.close()


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


def _read(document: Any, name: str) -> ParsedDocument:
    if len(document) == 0:
        raise DocumentRejected("PDF_BROKEN", f"{name} is a PDF without pages; export it again and upload that")
    title = document.get_metadata_dict().get("Title")
    pages = [_read_page(document, index) for index in range(len(document))]
    statuses = tuple(status for status, _ in pages)
    blocks = tuple(block for _, block in pages if block is not None)
    if not blocks:
        raise _nothing_read(name, statuses)
    return ParsedDocument(title_or_name(title, name), blocks, statuses, tuple(_warnings(statuses)))


def _nothing_read(name: str, statuses: tuple[str, ...]) -> DocumentRejected:
    if all(status == "failed" for status in statuses):
        none = "the only page" if len(statuses) == 1 else f"none of the {len(statuses)} pages"
        verb = "cannot" if len(statuses) == 1 else "can"
        return DocumentRejected("PDF_BROKEN", f"{none} of {name} {verb} be read; save it again and upload that")
    pages = "only page" if len(statuses) == 1 else f"{len(statuses)} pages"
    return DocumentRejected(
        "NO_TEXT",
        f"{name} has no text on its {pages}: it looks scanned. Text recognition (OCR) is not available yet; "
        "upload a version with a text layer",
    )


def _read_page(document: Any, index: int) -> tuple[str, Block | None]:
    import pypdfium2  # noqa: PLC0415

    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return "failed", None
    try:
        text_page = page.get_textpage()
        raw = text_page.get_text_range()
    except pypdfium2.PdfiumError:
        return "failed", None
    if not raw.strip():
        return "empty", None
    lines = tuple(_line_boxes(page, text_page, raw, index + 1))
    return "text", Block(BlockKind.TEXT, raw.replace("\r\n", "\n"), page=index + 1, lines=lines)


def _line_boxes(page: Any, text_page: Any, raw: str, number: int) -> Iterator[LineBox]:
    """One box a line. Pages that are turned, or whose characters PDFium counts differently, go without."""
    if page.get_rotation() != 0 or text_page.count_chars() != len(raw):
        return
    left, _, _, top = page.get_cropbox()
    start = out = 0
    for line in raw.split("\r\n"):
        count = text_page.count_rects(start, len(line)) if line.strip() else 0
        rects = [text_page.get_rect(i) for i in range(count)]
        if rects:
            box = (
                min(r[0] for r in rects) - left,
                top - max(r[3] for r in rects),
                max(r[2] for r in rects) - left,
                top - min(r[1] for r in rects),
            )
            yield LineBox(out, out + len(line), number, box)
        start += len(line) + 2
        out += len(line) + 1


def _warnings(statuses: tuple[str, ...]) -> Iterator[str]:
    odd = [(number, status) for number, status in enumerate(statuses, 1) if status != "text"]
    for number, status in odd[:_MAX_LISTED]:
        yield f"page {number} has no text" if status == "empty" else f"page {number} could not be read"
    if len(odd) > _MAX_LISTED:
        yield f"{len(odd) - _MAX_LISTED} more pages without text"
