"""What lies upon a page of a PDF and is no text of it: what somebody wrote into its fields or typed across it, which is read as if
it were printed, check boxes and radio buttons with their state, and comments, which are counted."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from services.ingest.reading.parsers.pages.pdf_view import PageView
from services.ingest.reading.reading_order import Fragment

_MAX_ANNOTATIONS = 2000
"""Of one page. A dense form has some hundred fields."""
_MAX_COMMENT_BYTES = 1_000_000
"""Of a page: comments may all be one long text, and each is measured anew."""


CHECKED, UNCHECKED = "[x]", "[ ]"


@dataclass(frozen=True)
class Button:
    """A check box or radio button."""

    is_checked: bool
    left: float
    bottom: float
    right: float
    top: float


@dataclass(frozen=True)
class Annotations:
    """Of one page."""

    shows_text: bool = False
    """Whether it has fields or text boxes."""
    comment_count: int = 0
    buttons: tuple[Button, ...] = ()


def read_annotations(page: Any, form: Any = None) -> Annotations:
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
    buttons: list[Button] = []
    for at in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, at)
        if not annotation:
            continue
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        shows_text = shows_text or kind in boxes
        if kind == pdfium.FPDF_ANNOT_WIDGET and form and (button := _button(annotation, form)):
            buttons.append(button)
        if kind in comments and read_bytes < _MAX_COMMENT_BYTES:
            size = pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
            read_bytes += size
            count += size > len("\0".encode("utf-16-le"))
        pdfium.FPDFPage_CloseAnnot(annotation)
    return Annotations(shows_text, count, tuple(buttons))


def _button(annotation: Any, form: Any) -> Button | None:
    """A field as a button that can be on; None for other fields, and for one that is not shown."""
    import pypdfium2.raw as pdfium  # noqa: PLC0415

    kinds = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
    place = pdfium.FS_RECTF()
    unseen = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
    if (
        pdfium.FPDFAnnot_GetFormFieldType(form, annotation) not in kinds
        or pdfium.FPDFAnnot_GetFlags(annotation) & unseen
    ):
        return None
    if not pdfium.FPDFAnnot_GetRect(annotation, ctypes.byref(place)):
        return None
    return Button(bool(pdfium.FPDFAnnot_IsChecked(form, annotation)), place.left, place.bottom, place.right, place.top)


def with_buttons(fragments: Iterable[Fragment], buttons: Sequence[Button], view: PageView) -> tuple[Fragment, ...]:
    """The page's fragments with a sign at each button, in place of the mark that is drawn there."""
    signs = [
        Fragment(CHECKED if each.is_checked else UNCHECKED, view.box(each.left, each.bottom, each.right, each.top))
        for each in buttons
    ]

    def lies_on_button(fragment: Fragment) -> bool:
        x, y = (fragment.box[0] + fragment.box[2]) / 2, (fragment.box[1] + fragment.box[3]) / 2
        return len(fragment.text) == 1 and any(
            sign.box[0] <= x <= sign.box[2] and sign.box[1] <= y <= sign.box[3] for sign in signs
        )

    return (*(fragment for fragment in fragments if not lies_on_button(fragment)), *signs)


def with_fields_printed(document: Any, index: int, page: Any) -> Any:
    """The page as it is printed, with what its fields show; `page` is closed. Raises PdfiumError, and then `page` stays open."""
    import pypdfium2.raw as pdfium  # noqa: PLC0415

    if pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) != pdfium.FLATTEN_SUCCESS:
        return page
    printed = document[index]
    page.close()
    return printed
