"""What lies upon a page of a PDF and is no text of it: what somebody wrote into its fields or typed across it, which is read as if
it were printed, and comments, which are counted."""

from dataclasses import dataclass
from typing import Any

_MAX_ANNOTATIONS = 2000
"""Of one page. A dense form has some hundred fields."""
_MAX_COMMENT_BYTES = 1_000_000
"""Of a page: comments may all be one long text, and each is measured anew."""


@dataclass(frozen=True)
class Annotations:
    """Of one page."""

    shows_text: bool = False
    """Whether it has fields or text boxes."""
    comment_count: int = 0


def read_annotations(page: Any) -> Annotations:
    """Looks at the first of many."""
    import pypdfium2.raw as pdfium  # noqa: PLC0415 - loads a native library: only in the child

    boxes = {pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_FREETEXT}
    comments = {
        pdfium.FPDF_ANNOT_TEXT,
        pdfium.FPDF_ANNOT_HIGHLIGHT,
        pdfium.FPDF_ANNOT_UNDERLINE,
        pdfium.FPDF_ANNOT_SQUIGGLY,
        pdfium.FPDF_ANNOT_STRIKEOUT,
    }
    shows_text, count, read_bytes = False, 0, 0
    for at in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, at)
        if not annotation:
            continue
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        shows_text = shows_text or kind in boxes
        if kind in comments and read_bytes < _MAX_COMMENT_BYTES:
            size = pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
            read_bytes += size
            count += size > len("\0".encode("utf-16-le"))
        pdfium.FPDFPage_CloseAnnot(annotation)
    return Annotations(shows_text, count)


def with_fields_printed(document: Any, index: int, page: Any) -> Any:
    """The page as it is printed, with what its fields show; `page` is closed. Raises PdfiumError, and then `page` stays open."""
    import pypdfium2.raw as pdfium  # noqa: PLC0415

    if pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) != pdfium.FLATTEN_SUCCESS:
        return page
    printed = document[index]
    page.close()
    return printed
