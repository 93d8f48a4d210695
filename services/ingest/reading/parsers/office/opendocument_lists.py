"""Numbers of the lists of OpenDocument texts (ODF 1.3, 5.3 and 16.30): the file has only their styles, no number is in its text."""

from collections.abc import Iterator
from typing import Any

from services.ingest.reading.parsers.office.docx_styles import numeral

_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _STYLE = (f"{{{_ODF}{name}:1.0}}" for name in ("text", "style"))
_LIST, _ITEM = _TEXT + "list", _TEXT + "list-item"
_PARAGRAPHS = (_TEXT + "p", _TEXT + "h")
_NUMERALS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_SHOWN, _DEPTH, _NAME = "shown", "depth", "list"
"""Attributes that are noted at items and lists while they are read."""
_MAX_LEVELS = 10

MARKER = "marker"
"""The attribute of a paragraph that says what stands in front of it."""


def mark_numbers(content: Any, styles: Any) -> None:
    """Notes at each paragraph of a numbered list what stands in front of it. `styles`: the root of the part with common styles, or
    None."""
    levels = dict(_levels(styles)) if styles is not None else {}
    levels |= dict(_levels(content))
    counters: dict[tuple[str, int], int] = {}
    for each in content.iter(_LIST):
        outer = next(each.iterancestors(_LIST), None)
        depth = 1 if outer is None else int(outer.get(_DEPTH, "1")) + 1
        name = each.get(_TEXT + "style-name") or (outer.get(_NAME, "") if outer is not None else "")
        each.set(_DEPTH, str(min(depth, _MAX_LEVELS)))
        each.set(_NAME, name)
        level = levels.get((name, depth))
        if level is not None:
            goes_on = each.get(_TEXT + "continue-numbering") == "true" or each.get(_TEXT + "continue-list")
            start = counters.get((name, depth)) if goes_on else None
            counters[name, depth] = _mark_items(
                each, level, _integer(level, "start-value", 1) if start is None else start
            )


def _levels(root: Any) -> Iterator[tuple[tuple[str, int], Any]]:
    """Styles of numbered levels by the name of the list's style and the level from 1."""
    for style in root.iter(_TEXT + "list-style"):
        for level in style.iterchildren(_TEXT + "list-level-style-number"):
            if level.get(_STYLE + "num-format"):
                yield (style.get(_STYLE + "name", ""), _integer(level, "level", 1)), level


def _mark_items(numbered: Any, level: Any, number: int) -> int:
    """Numbers the items of a list from `number`; the number that comes next."""
    outer = numbered.getparent()
    shown_levels = _integer(level, "display-levels", 1)
    for item in numbered.iterchildren(_ITEM):
        number = _integer(item, "start-value", number)
        shown = numeral(number, _NUMERALS.get(level.get(_STYLE + "num-format"), ""))
        above = outer.get(_SHOWN, "") if outer is not None and shown_levels > 1 else ""
        shown = ".".join([*[part for part in above.split(".") if part][1 - shown_levels :], shown])
        item.set(_SHOWN, shown)
        mark = f"{level.get(_STYLE + 'num-prefix', '')}{shown}{level.get(_STYLE + 'num-suffix', '')} "
        for paragraph in item.iterchildren(*_PARAGRAPHS):
            paragraph.set(MARKER, mark)
            mark = ""
        number += 1
    return number


def _integer(element: Any, attribute: str, default: int) -> int:
    value = element.get(_TEXT + attribute, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else default
