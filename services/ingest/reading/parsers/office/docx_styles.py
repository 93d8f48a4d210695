"""What Word's styles and numbering say about a paragraph: whether it is a heading, its level, and which number stands in
front of it. Word stores neither in the text."""

import re
from dataclasses import dataclass
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING_NAME = re.compile(r"^heading ([1-9])$", re.IGNORECASE)
_MAX_STYLE_DEPTH = 16
_LEVELS = 9
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


@dataclass(frozen=True)
class Style:
    """A paragraph style with what it inherits. `outline` is 0 for the first heading level; None for body text."""

    name: str = ""
    outline: int | None = None
    numbering: tuple[str, int] | None = None

    @property
    def is_title(self) -> bool:
        return self.name.lower() == "title"

    @property
    def is_contents(self) -> bool:
        """Of a line in a table of contents."""
        return bool(re.match(r"^(toc \d|table of figures$)", self.name, re.IGNORECASE))

    def heading_level(self, properties: Any) -> int:
        """Level of the heading from 1; 0 for body text. The paragraph's own outline level (9: body) counts first."""
        own = _number(properties, "outlineLvl")
        level = self.outline if own is None else own
        return 0 if level is None or level >= _LEVELS else level + 1


class Styles:
    """The styles part of a document, by id."""

    def __init__(self, root: Any) -> None:
        found = root.findall(W + "style") if root is not None else []
        self._elements = {element.get(W + "styleId"): element for element in found}
        self._resolved: dict[str | None, Style] = {}
        defaults = (e for e in found if e.get(W + "type") == "paragraph" and e.get(W + "default") in ("1", "true"))
        self._default: str | None = next((element.get(W + "styleId") for element in defaults), None)

    def of(self, properties: Any) -> Style:
        """The style of a paragraph with these properties."""
        style_id = _value(properties, "pStyle") or self._default
        if style_id not in self._resolved:
            self._resolved[style_id] = self._resolve(style_id)
        return self._resolved[style_id]

    def marks_first_row(self, properties: Any) -> bool:
        """Whether the style of a table with these properties shows the first row otherwise than the others."""
        style_id = _value(properties, "tblStyle")
        for _ in range(_MAX_STYLE_DEPTH):
            element = self._elements.get(style_id)
            if element is None:
                return False
            if any(each.get(W + "type") == "firstRow" and len(each) for each in element.findall(W + "tblStylePr")):
                return True
            style_id = _value(element, "basedOn")
        return False

    def _resolve(self, style_id: str | None) -> Style:
        name, outline, numbering = "", None, None
        for _ in range(_MAX_STYLE_DEPTH):  # styles may be based on each other in a circle
            element = self._elements.get(style_id)
            if element is None:
                break
            own_name = _value(element, "name") or ""
            name = name or own_name
            properties = element.find(W + "pPr")
            if outline is None:
                by_name = _HEADING_NAME.match(own_name)
                outline = _number(properties, "outlineLvl") if not by_name else int(by_name[1]) - 1
            numbering = numbering or _numbered(properties)
            style_id = _value(element, "basedOn")
        return Style(name, outline, numbering)


class Numbering:
    """Counts the numbered paragraphs of a document as Word does, while it is read."""

    def __init__(self, root: Any) -> None:
        self._lists: dict[str, str] = {}
        self._levels: dict[str, dict[int, tuple[str, str, int]]] = {}
        self._counters: dict[str, list[int | None]] = {}
        if root is None:
            return
        for element in root.findall(W + "abstractNum"):
            self._levels[element.get(W + "abstractNumId") or ""] = dict(map(_level, element.findall(W + "lvl")))
        for element in root.findall(W + "num"):
            self._lists[element.get(W + "numId") or ""] = _value(element, "abstractNumId") or ""

    def next(self, properties: Any, style: Style) -> tuple[str, int]:
        """The mark in front of the next paragraph, "-" for any bullet, empty where there is none; and its depth from 0."""
        list_id, depth = _numbered(properties) or style.numbering or ("0", 0)
        definition = self._lists.get(list_id)
        if definition is None or list_id == "0":
            return "", 0
        levels = self._levels.get(definition, {})
        kind, text, _ = levels.get(depth, ("bullet", "", 1))
        counters = self._counters.setdefault(definition, [None] * _LEVELS)
        before = counters[depth]
        counters[depth] = levels[depth][2] if before is None and depth in levels else (before or 0) + 1
        counters[depth + 1 :] = [None] * (_LEVELS - depth - 1)
        if kind == "none":
            return "", depth
        if kind == "bullet" or "%" not in text:
            return "-", depth

        def shown(found: "re.Match[str]") -> str:
            at = int(found[1]) - 1
            level_kind, _, start = levels.get(at, ("decimal", "", 1))
            counter = counters[at]
            return numeral(start if counter is None else counter, level_kind)

        return re.sub(r"%([1-9])", shown, text), depth


def _level(element: Any) -> tuple[int, tuple[str, str, int]]:
    start = _number(element, "start")
    shown = (_value(element, "numFmt") or "decimal", _value(element, "lvlText") or "", 1 if start is None else start)
    depth = element.get(W + "ilvl") or "0"
    return (int(depth) if depth.isascii() and depth.isdigit() else 0), shown


def _numbered(properties: Any) -> tuple[str, int] | None:
    numbering = properties.find(W + "numPr") if properties is not None else None
    list_id = _value(numbering, "numId")
    return (list_id, min(_number(numbering, "ilvl") or 0, _LEVELS - 1)) if list_id else None


def numeral(number: int, kind: str) -> str:
    """A number as lists show it: `lowerLetter`, `upperRoman` …; in digits otherwise."""
    if kind in ("lowerLetter", "upperLetter") and 0 < number <= 26:
        letter = chr(ord("a") + number - 1)
        return letter if kind == "lowerLetter" else letter.upper()
    if kind in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        numeral = ""
        for value, sign in _ROMAN:
            numeral += sign * (number // value)
            number %= value
        return numeral if kind == "lowerRoman" else numeral.upper()
    return str(number)


def _value(parent: Any, tag: str) -> str | None:
    element = parent.find(W + tag) if parent is not None else None
    return element.get(W + "val") if element is not None else None


def _number(parent: Any, tag: str) -> int | None:
    value = _value(parent, tag)
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 6 else None
