"""What a paragraph of a Word document shows: its words with tabs, breaks, symbols and raised digits, and what is anchored in it.
What is deleted, hidden or crossed out is left out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from services.ingest.reading.parsers.office.charts import CHART, R_ID
from services.ingest.reading.parsers.office.docx_styles import W
from services.ingest.reading.parsers.tables.table_values import with_shifted

FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
UNSEEN = {
    W + tag for tag in ("del", "moveFrom", "pPr", "rPr", "instrText", "delText", "sectPr", "tblPr", "trPr", "tcPr")
}
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_M_TEXT = _M + "t"
_CHARACTERS = {W + "tab": "\t", W + "br": "\n", W + "cr": "\n", W + "noBreakHyphen": "-"}
_NOTES = {W + "footnoteReference": "footnotes", W + "endnoteReference": "endnotes"}
_OFF = ("0", "false", "off")
_SYMBOL = dict(
    zip(
        "abgdezhqiklmnxoprstufcywjvABGDEZHQIKLMNXOPRSTUFCYW",
        "αβγδεζηθικλμνξοπρστυφχψωϕϖΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ",
        strict=True,
    )
)
_SYMBOL |= dict(
    zip("\xa3\xa5\xae\xb0\xb1\xb3\xb4\xb6\xb7\xb8\xb9\xbb\xc5\xd5\xd6\xde\xe5", "≤∞→°±≥×∂•÷≠≈⊕∏√⇒∑", strict=True)
)
_WINGDINGS = dict(
    zip("\x6c\x6e\x6f\x71\xa7\xa8\xd8\xdf\xe0\xe1\xe2\xe8\xfb\xfc\xfd\xfe", "●■□❑▪□➢←→↑↓➔✗✓☒☑", strict=True)
)
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}
_CHECK_BOX = {True: "[x]", False: "[ ]"}


@dataclass(frozen=True)
class Inline:
    """What a paragraph holds: its text, its notes as (part, id), the text boxes and charts anchored in it."""

    text: str
    notes: tuple[tuple[str, str], ...]
    boxes: tuple[Any, ...]
    charts: tuple[str, ...]
    """Ids of the relationships to their parts."""


def read_inline(*paragraphs: Any) -> Inline:
    """Reads a paragraph, or several whose marks between were deleted."""
    text: list[tuple[str, int]] = []
    notes: list[tuple[str, str]] = []
    boxes: list[Any] = []
    charts: list[str] = []
    stack = [element for paragraph in reversed(paragraphs) for element in reversed(paragraph)]
    while stack:
        element = stack.pop()
        tag = element.tag
        if tag in UNSEEN or tag == FALLBACK or (tag == W + "r" and (is_hidden(element) or is_struck(element))):
            continue
        if tag in (W + "t", _M_TEXT):
            text.append((element.text or "", _shift(element)))
        elif tag in _NOTES:
            notes.append((_NOTES[tag], element.get(W + "id") or ""))
        elif tag == W + "txbxContent":
            boxes.append(element)
        elif tag == CHART:
            charts.append(element.get(R_ID) or "")
        elif character := _character(element):
            text.append((character, 0))
        else:
            stack.extend(reversed(element))
    return Inline(with_shifted(text), tuple(notes), tuple(boxes), tuple(charts))


def _character(element: Any) -> str:
    """The character that an element stands for; "" for others."""
    if element.tag == W + "sym":
        return _symbol(element.get(W + "font") or "", element.get(W + "char") or "")
    if element.tag == W + "checkBox":
        state = next((found for tag in ("checked", "default") for found in element.findall(W + tag)), None)
        return _CHECK_BOX[state is not None and state.get(W + "val") not in _OFF]
    return _CHARACTERS.get(element.tag, "")


def _symbol(font: str, code: str) -> str:
    """A character of a font for symbols: those have their own at U+F000 and above."""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    char = chr(number - 0xF000) if 0xF000 <= number <= 0xF0FF else chr(number) if number < 0xD800 else ""
    return next((chars.get(char, "") for name, chars in _FONTS.items() if font.lower().startswith(name)), char)


def _shift(text: Any) -> int:
    """1 where a text stands raised, -1 where it stands lowered, else 0: in a formula, or by the properties of its run."""
    run = text.getparent()
    if text.tag == _M_TEXT:
        return {_M + "sup": 1, _M + "sub": -1}.get(run.getparent().tag, 0)
    properties = run.find(W + "rPr")
    if properties is None:
        return 0
    aligned = properties.find(W + "vertAlign")
    if aligned is not None:
        return {"superscript": 1, "subscript": -1}.get(aligned.get(W + "val"), 0)
    position = properties.find(W + "position")
    moved = position.get(W + "val", "") if position is not None else ""
    return 0 if not moved.lstrip("-").isdigit() else (int(moved) > 0) - (int(moved) < 0)


def is_on(run: Any, tag: str) -> bool:
    """Whether a run has a property, such as bold type."""
    element = run.find(f"{W}rPr/{W}{tag}")
    return element is not None and element.get(W + "val") not in _OFF


def is_struck(run: Any) -> bool:
    """Whether a run is crossed out: what replaces it stands beside it."""
    return is_on(run, "strike") or is_on(run, "dstrike")


def is_hidden(run: Any) -> bool:
    """Whether a run is hidden text."""
    return is_on(run, "vanish")


def passage_count(body: Any, is_unseen: Callable[[Any], bool]) -> int:
    """How many passages are crossed out or hidden: runs that follow each other are one."""
    runs = [
        run for run in body.iter(W + "r") if is_unseen(run) and any((t.text or "").strip() for t in run.iter(W + "t"))
    ]
    follows: Iterable[Any] = (run.getprevious() for run in runs)
    return sum(1 for before in follows if before is None or before.tag != W + "r" or not is_unseen(before))
