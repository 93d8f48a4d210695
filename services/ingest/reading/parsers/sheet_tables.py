"""Finds the tables on a spreadsheet's grid: people put captions above, notes below, gaps between and several tables on one sheet.
Rows become blocks with column names; a line that is alone in its row becomes text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.ingest.models import Block, BlockKind
from services.ingest.reading.parsers.tables import merged_header
from services.ingest.reading.parsers.tabular import NUMBER, row_blocks

_MAX_HEADER_ROWS = 3
_GAP_COLUMNS = 2
"""Empty columns that separate two tables side by side; a single one is a spacer."""

Row = list[str]
Spans = Mapping[tuple[int, int], int]
"""Merged cells that reach over several columns: (row, first column) to last column, all from 0."""


@dataclass(frozen=True)
class _Region:
    """A part of the sheet without an empty row in it."""

    top: int
    left: int
    rows: list[Row]

    @property
    def columns(self) -> range:
        return range(self.left, self.left + max(len(row) for row in self.rows))


@dataclass(frozen=True)
class _Header:
    names: list[str]
    columns: range


def sheet_blocks(rows: Sequence[Row], spans: Spans) -> Iterator[Block]:
    """Blocks of one sheet. `rows` holds the cells as text, empty ones as ""."""
    header: _Header | None = None
    for region in _regions(rows):
        captions, table = _split_captions(region)
        yield from (Block(BlockKind.TEXT, text) for text in captions)
        if not table.rows:
            continue
        count = _header_rows(table, spans)
        if count:
            header = _Header(_names(table, count, spans), table.columns)
        elif header and not set(header.columns) >= set(table.columns):
            header = None
        yield from _table(table, count, header)


def _regions(rows: Sequence[Row]) -> Iterator[_Region]:
    start = 0
    while start < len(rows):
        if not any(rows[start]):
            start += 1
            continue
        stop = start
        while stop < len(rows) and any(rows[stop]):
            stop += 1
        for left, right in _bands(rows[start:stop]):
            band = [(at, row[left:right]) for at, row in enumerate(rows[start:stop], start)]
            filled = [at for at, row in band if any(row)]
            yield _Region(filled[0], left, [row for at, row in band if filled[0] <= at <= filled[-1] and any(row)])
        start = stop


def _bands(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Column ranges that hold something, cut at wide gaps where a table stands on both sides."""
    used = sorted({i for row in rows for i, cell in enumerate(row) if cell})
    bands = [[used[0], used[0] + 1]]
    for column in used[1:]:
        if column - bands[-1][1] >= _GAP_COLUMNS:
            bands.append([column, column + 1])
        else:
            bands[-1][1] = column + 1
    if any(right - left < 2 for left, right in bands):  # a lone column belongs to what is beside it
        return [(used[0], used[-1] + 1)]
    return [(left, right) for left, right in bands]


def _split_captions(region: _Region) -> tuple[list[str], _Region]:
    """Lines above the table, and the rest. A region without two cells in a row is all lines."""
    first = next((i for i, row in enumerate(region.rows) if _filled(row) > 1), len(region.rows))
    captions = [cell for row in region.rows[:first] for cell in row if cell]
    return captions, _Region(region.top + first, region.left, region.rows[first:])


def _header_rows(table: _Region, spans: Spans) -> int:
    if not _names_columns(table.rows[0]):
        return 0
    count = 1
    while count < min(len(table.rows), _MAX_HEADER_ROWS):
        row, above = table.rows[count], table.rows[count - 1]
        spread = any((table.top + count - 1, table.left + i) in spans for i, cell in enumerate(above) if cell)
        continues = spread or (above[0] and not row[0] and _filled(row) > 1)
        if not continues or any(NUMBER.match(cell) for cell in row if cell):
            break
        count += 1
    return count


def _names_columns(row: Row) -> bool:
    """Whether a row can be a header: several different texts, no numbers or dates."""
    named = [cell for cell in row if cell]
    return len(named) > 1 and len(set(named)) == len(named) and not any(NUMBER.match(cell) for cell in named)


def _names(table: _Region, count: int, spans: Spans) -> list[str]:
    levels = []
    for i, row in enumerate(table.rows[:count]):
        level = list(row)
        for j, cell in enumerate(row):
            last = spans.get((table.top + i, table.left + j), 0) - table.left
            if cell and last > j:
                level[j : last + 1] = [cell] * (min(last + 1, len(row)) - j)
        levels.append(level)
    return merged_header(levels)


def _table(table: _Region, header_rows: int, header: _Header | None) -> Iterator[Block]:
    names = header.names[table.left - header.columns.start :] if header else []
    width = len(table.columns)
    for row in table.rows[header_rows:]:
        if _filled(row) == 1 and width > 2:  # a subheading, a note, a total's caption
            yield Block(BlockKind.TEXT, next(cell for cell in row if cell))
        else:
            yield from row_blocks([*names, *[""] * (len(row) - len(names))], [row])


def _filled(row: Row) -> int:
    return sum(1 for cell in row if cell)
