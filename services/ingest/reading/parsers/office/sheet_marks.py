"""What the XML of a worksheet says beside its cells, which openpyxl leaves out when it reads row by row: merged cells, hidden rows
and columns, filters, formulas without a value."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_MERGED = 20_000
_REF = rb"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"
_MERGED_CELLS = re.compile(rb'<(?:\w+:)?mergeCell\s[^<>]*?ref="' + _REF + rb'"')
_FILTER = re.compile(rb'<(?:\w+:)?(?:autoFilter|table)\s[^<>]*?\bref="' + _REF + rb'"')
_NO_HEADER = re.compile(rb'<(?:\w+:)?table\s[^<>]*?headerRowCount="0"')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\s(?=[^<>]*?\bhidden="(?:1|true)")[^<>]*?>\s*<')
_EMPTY_ROW = re.compile(rb"/>\s*<$")
_HIDDEN_COLUMNS = re.compile(rb'<(?:\w+:)?col\s(?=[^<>]*?\bhidden="(?:1|true)")([^<>]*)>')
_BOUND = re.compile(rb'\b(min|max)="(\d{1,6})"')
_NO_VALUE = re.compile(
    rb"<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


@dataclass(frozen=True)
class Area:
    """Cells from the first to the last row and column, all from 0."""

    top: int
    left: int
    bottom: int
    right: int


def merged_areas(data: bytes) -> list[Area]:
    """Merged cells of a worksheet, up to a bound."""
    return [_area(match) for _, match in zip(range(_MAX_MERGED), _MERGED_CELLS.finditer(data), strict=False)]


def header_rows(data: bytes) -> Iterator[int]:
    """Rows from 0 that a filter or a table of the workbook has for its header."""
    if not _NO_HEADER.search(data):
        yield from (_area(match).top for match in _FILTER.finditer(data))


def hidden_parts(data: bytes, last_column: int) -> Iterator[str]:
    """`2 hidden rows`, `1 hidden column`: those with cells. `last_column` from 0 is the last that has any."""
    rows = sum(1 for match in _HIDDEN_ROW.finditer(data) if not _EMPTY_ROW.search(match[0]))
    columns = 0
    for match in _HIDDEN_COLUMNS.finditer(data):
        bounds = {key: int(value) for key, value in _BOUND.findall(match[1])}
        columns += max(0, min(bounds.get(b"max", 0), last_column + 1) - bounds.get(b"min", 1) + 1)
    yield from (
        f"{count} hidden {what}{'s' * (count > 1)}" for count, what in ((rows, "row"), (columns, "column")) if count
    )


def unvalued_formulas(data: bytes) -> int:
    """How many formulas have no value: the program that wrote the file computed none."""
    return sum(1 for _ in _NO_VALUE.finditer(data)) if b"<f" in data or b":f" in data else 0


def _area(match: "re.Match[bytes]") -> Area:
    left, top, right, bottom = match.groups()
    return Area(int(top) - 1, _column(left), int(bottom) - 1, _column(right))


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number - 1
