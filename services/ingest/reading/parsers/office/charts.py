"""Charts of office files (DrawingML, ECMA-376 part 1, 21.2): the numbers that the program drew them from, as it last stored them
with the chart. A row for each category, a column for each series."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.ingest.reading.models import Block, BlockKind
from services.ingest.reading.parsers.tables.number_formats import formatted_number
from services.ingest.reading.parsers.tables.rows import MAX_COLUMN_NAME_CHARS, table_rows

R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart"
"""Where a chart stands on a page, a slide or a sheet: an element with the id of its part, R_ID."""
_A_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"
_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_CATEGORIES, _VALUES = ("cat", "xVal"), ("val", "yVal", "bubbleSize")
_VALUE_NAMES = {"bubbleSize": "size"}
_DATE_FORMAT = re.compile(r"y{2,4}|mmm|d{1,2}[-/.]m|m[-/.]d", re.IGNORECASE)
_EPOCHS = {False: dt.date(1899, 12, 30), True: dt.date(1904, 1, 1)}
_SHEET = re.compile(r"^\(?'?(?P<name>[^!]+?)'?!")
_MAX_DAYS = 2_958_465  # 9999-12-31
_MAX_SERIES, _MAX_ROWS, _MAX_LEVELS = 255, 32_000, 8
"""The first two are what the program draws."""


@dataclass(frozen=True)
class Chart:
    """What a chart shows."""

    title: str
    axes: tuple[str, ...]
    """Titles of its axes."""
    columns: tuple[str, ...]
    """Names of its series; "" for one without a name."""
    rows: tuple[tuple[str, ...], ...]
    """Each with its category first, then a value for each column, "" for none."""
    sheets: frozenset[str]
    """Names of the sheets that its numbers come from, as far as it says."""
    is_whole: bool = True
    """False when it has more series or points than charts can show, and only the first are here."""

    def blocks(self, *, with_rows: bool = True, page: int = 0) -> Iterator[Block]:
        """The title and the titles of the axes as a line, then the rows."""
        words = list(dict.fromkeys(word for word in (self.title, *self.axes) if word))
        if not with_rows:
            words += [name for name in dict.fromkeys(self.columns) if name and name not in words]
        if words:
            yield Block(BlockKind.TEXT, "; ".join(words), page=page)
        if with_rows:
            header = [("", *self.columns)] if any(self.columns) else []
            rows = table_rows([*header, *self.rows], header_rows=len(header))
            yield from (Block(row.kind, row.text, page=page, label=row.label) for row in rows)


def read_chart(root: Any) -> Chart:
    """From the root of a chart's part. Its rows are empty where the program stored no numbers with it."""
    space = next(root.iter(_C + "date1904"), None)
    epoch = _EPOCHS[space is not None and space.get("val", "1") in ("1", "true")]
    title = next(
        (_words(element) for element in root.iter(_C + "title") if element.getparent().tag == _C + "chart"), ""
    )
    axes = tuple(_words(element) for element in root.iter(_C + "title") if element.getparent().tag.endswith("Ax"))
    categories: dict[int, str] = {}
    columns: list[tuple[str, Mapping[int, str]]] = []
    every = list(root.iter(_C + "ser"))
    for series in every[:_MAX_SERIES]:
        name = " ".join(_points(series.find(_C + "tx"), epoch).values()) or _words(series.find(_C + "tx"))
        for tag in _CATEGORIES:
            for at, text in _points(series.find(_C + tag), epoch).items():
                categories.setdefault(at, text)
        for tag in _VALUES:
            points = _points(series.find(_C + tag), epoch)
            if points:
                columns.append((" ".join(filter(None, (name, _VALUE_NAMES.get(tag, "")))), points))
    places = sorted({at for _, points in columns for at in points})
    rows = tuple((categories.get(at, ""), *(points.get(at, "") for _, points in columns)) for at in places[:_MAX_ROWS])
    is_whole = len(every) <= _MAX_SERIES and len(places) <= _MAX_ROWS
    return Chart(title, axes, tuple(name for name, _ in columns), rows, frozenset(_sheets(root)), is_whole)


def _points(source: Any, epoch: dt.date) -> dict[int, str]:
    """Texts of a series' names, categories or values by their places. Of categories in several levels, the outer ones come first
    and hold until the next."""
    if source is None:
        return {}
    levels = list(source.iter(_C + "lvl"))
    if levels:
        return _joined_levels([_cache(level, epoch) for level in reversed(levels[:_MAX_LEVELS])])
    plain = source.find(_C + "v")
    return {0: " ".join((plain.text or "").split())} if plain is not None else _cache(source, epoch)


def _cache(source: Any, epoch: dt.date) -> dict[int, str]:
    default = next((element.text or "" for element in source.iter(_C + "formatCode")), "")
    is_number = next(source.iter(_C + "numCache", _C + "numLit"), None) is not None
    found = {}
    for point in source.iter(_C + "pt"):
        place, text = point.get("idx", ""), " ".join((point.findtext(_C + "v") or "").split())
        if text and place.isascii() and place.isdigit() and len(place) < 10:
            found[int(place)] = _shown(text, point.get("formatCode") or default, epoch) if is_number else text
    return found


def _joined_levels(levels: Sequence[Mapping[int, str]]) -> dict[int, str]:
    joined: dict[int, str] = {}
    held = [""] * len(levels)
    for place in sorted({place for level in levels for place in level}):
        for depth, level in enumerate(levels):
            held[depth] = level.get(place, held[depth])[:MAX_COLUMN_NAME_CHARS]
        joined[place] = " / ".join(filter(None, held))
    return joined


def _shown(text: str, number_format: str, epoch: dt.date) -> str:
    try:
        value = float(text)
    except ValueError:
        return text  # "#N/A"
    if _DATE_FORMAT.search(number_format) and 0 < value < _MAX_DAYS:
        return (epoch + dt.timedelta(days=int(value))).isoformat()
    return formatted_number(int(value) if value.is_integer() and abs(value) < 1e15 else value, number_format)


def _sheets(root: Any) -> Iterator[str]:
    for formula in root.iter(_C + "f"):
        found = _SHEET.match((formula.text or "").strip()[:300])
        if found:
            yield found["name"].replace("''", "'")


def _words(element: Any) -> str:
    """Rich text, or a title that is taken from a cell."""
    if element is None:
        return ""
    texts = [text.text or "" for text in element.iter(_A_TEXT)] or [
        value.text or "" for value in element.iter(_C + "v")
    ]
    return " ".join("".join(texts).split())
