"""Finds the tables on a spreadsheet's grid: people put captions above, notes below, gaps between and several tables on one sheet.
Rows become blocks with column names; a line that is alone in its row becomes text. Only cells with text are looked at: a grid of
17 billion may hold two."""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from services.ingest.reading.models import Block, BlockKind
from services.ingest.reading.parsers.records.tabular import ColumnNames, may_repeat
from services.ingest.reading.parsers.tables.column_headers import ROWS_LOOKED_AT, header_score
from services.ingest.reading.parsers.tables.forms import form_rows_below, is_form_below, label_pairs
from services.ingest.reading.parsers.tables.rows import MAX_COLUMN_NAME_CHARS, labelled_cells
from services.ingest.reading.parsers.tables.table_values import (
    can_name_columns,
    column_name,
    is_value,
    with_joined_signs,
)

_MAX_HEADER_ROWS = 3
_GAP_COLUMNS = 2
"""Empty columns that separate two tables side by side; a single one is a spacer."""

Row = dict[int, str]
"""Texts by column, from 0 and in order; empty cells are not in it."""
Marks = Mapping[int, float]
"""Rows from 0, with what their type or the workbook says for a header (above zero) or against one."""
Spans = Mapping[tuple[int, int], int]
"""Merged cells that reach over several columns: (row, first column) to last column, all from 0."""


@dataclass(frozen=True)
class _Region:
    """A part of the sheet without an empty row in it."""

    left: int
    rows: Sequence[tuple[int, Row]]
    """With their numbers, from 0."""

    @property
    def columns(self) -> range:
        return range(self.left, 1 + max(next(reversed(row)) for _, row in self.rows))


@dataclass(frozen=True)
class _Header:
    names: ColumnNames
    columns: range
    rows: Sequence[tuple[int, Row]]
    numeric: dict[int, bool] = field(default_factory=dict)
    """Columns, with whether all that stands in them so far are numbers."""
    records: list[Row] = field(default_factory=list)
    """The first rows below."""

    def covers(self, columns: range) -> bool:
        return self.columns.start <= columns.start and columns.stop <= self.columns.stop

    def note_records(self, rows: Sequence[tuple[int, Row]]) -> None:
        """Remembers what records look like, and which columns hold numbers."""
        self.records.extend(row for _, row in rows[: ROWS_LOOKED_AT - len(self.records)])
        for _, row in rows:
            for column, cell in row.items():
                self.numeric[column] = self.numeric.get(column, True) and is_value(cell)

    def fits(self, rows: Sequence[tuple[int, Row]]) -> bool:
        """Whether rows further down can be of the same table: what stands in the columns of numbers are mostly numbers."""
        cells = [cell for _, row in rows for column, cell in row.items() if self.numeric.get(column)]
        return 2 * sum(map(is_value, cells)) >= len(cells)

    def has_form_below(self, table: _Region) -> bool:
        """Whether rows further down are a form of labels and values."""
        records = [row for _, row in self.rows[-1:]] + self.records
        return is_form_below(
            _leading((row for _, row in table.rows), table.left), _leading(records, self.columns.start)
        )

    def unsaid(self) -> Iterator[Block]:
        """The names that no row below has repeated."""
        return self.names.unsaid(row for _, row in self.rows)


def sheet_blocks(rows: Mapping[int, Row], spans: Spans, marks: Marks = MappingProxyType({})) -> Iterator[Block]:
    """Blocks of one sheet. `rows` holds those with text, by their number from 0 and in order; `marks` what the file says of those
    that it marks as a header, or as none."""
    header: _Header | None = None
    parted = (part for region in map(_split_captions, _regions(rows)) for part in _split_form(*region, spans, marks))
    regions = [(captions, table) for captions, table in parted if captions or table.rows]
    for at, (captions, found) in enumerate(regions):
        yield from (Block(BlockKind.TEXT, text) for text in captions)
        if not found.rows:
            continue
        following = regions[at + 1] if at + 1 < len(regions) else ([], _Region(0, []))
        is_header = _is_header_of(found, *following, spans, marks)
        table = found if is_header else _with_joined_signs(found)
        count = len(table.rows) if is_header else _header_rows(table, spans, marks)
        columns = table.columns
        if count:
            yield from header.unsaid() if header else ()
            header = _Header(ColumnNames(_names(table.rows[:count], columns, spans)), columns, table.rows[:count])
        elif header and (not (header.covers(columns) and header.fits(table.rows)) or header.has_form_below(table)):
            yield from header.unsaid()
            header = None
        if header:
            header.note_records(table.rows[count:])
        yield from _blocks(table.rows[count:], len(columns), header.names if header else None)
    yield from header.unsaid() if header else ()


def _is_header_of(above: _Region, captions: Sequence[str], table: _Region, spans: Spans, marks: Marks) -> bool:
    """Whether all of a region is the header of the table behind the empty rows below it."""
    if captions or len(table.rows) < 2 or len(above.rows) > _MAX_HEADER_ROWS:
        return False
    if table.left < above.left or table.columns.stop > above.columns.stop or _header_rows(table, spans, marks):
        return False
    return _header_rows(_Region(above.left, [*above.rows, *table.rows]), spans, marks) == len(above.rows)


def named_sheet(name: str, blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks of a sheet below its name, without a first line that is no more than the name."""
    yield Block(BlockKind.HEADING, name, level=1, begins_part=True)
    repeats = blocks[0].kind is BlockKind.TEXT and blocks[0].text.casefold() == name.casefold()
    yield from blocks[1:] if repeats else blocks


def _regions(rows: Mapping[int, Row]) -> Iterator[_Region]:
    together: list[tuple[int, Row]] = []
    for number, row in rows.items():
        if together and number != together[-1][0] + 1:
            yield from _side_by_side(together)
            together = []
        together.append((number, row))
    if together:
        yield from _side_by_side(together)


def _side_by_side(rows: Sequence[tuple[int, Row]]) -> Iterator[_Region]:
    lefts = _lefts(rows)
    parts: list[list[tuple[int, Row]]] = [[] for _ in lefts]
    for number, row in rows:
        for part, cells in itertools.groupby(row.items(), key=lambda cell: bisect.bisect_right(lefts, cell[0]) - 1):
            parts[part].append((number, dict(cells)))
    yield from map(_Region, lefts, parts)


def _lefts(rows: Sequence[tuple[int, Row]]) -> list[int]:
    """First columns of what stands side by side, cut at wide gaps where a table stands on both sides."""
    used = sorted({column for _, row in rows for column in row})
    bands = [[used[0], used[0] + 1]]
    for column in used[1:]:
        if column - bands[-1][1] >= _GAP_COLUMNS:
            bands.append([column, column + 1])
        else:
            bands[-1][1] = column + 1
    if any(right - left < 2 for left, right in bands):  # a lone column belongs to what is beside it
        return [used[0]]
    return [left for left, _ in bands]


def _split_captions(region: _Region) -> tuple[list[str], _Region]:
    """Lines above the table, and the rest. A region without two cells in a row is all lines."""
    first = next((i for i, (_, row) in enumerate(region.rows) if len(row) > 1), len(region.rows))
    captions = [cell for _, row in region.rows[:first] for cell in row.values()]
    return captions, _Region(region.left, region.rows[first:])


def _split_form(
    captions: list[str], region: _Region, spans: Spans, marks: Marks
) -> Iterator[tuple[list[str], _Region]]:
    """A table, and apart from it the form of labels and values that stands below it without an empty row between them."""
    rows = region.rows
    below = form_rows_below(_leading((row for _, row in rows), region.left))
    table = _Region(region.left, rows[: len(rows) - below])
    if below and _header_rows(table, spans, marks):
        yield captions, table
        yield [], _Region(region.left, rows[len(rows) - below :])
    else:
        yield captions, region


def _leading(rows: Iterable[Row], left: int) -> list[list[str]]:
    """The first two columns of each row, and the other cells with text: a row may reach over thousands of columns."""
    firsts = range(left, left + 2)
    return [
        [row.get(left, ""), row.get(left + 1, ""), *(cell for column, cell in row.items() if column not in firsts)]
        for row in rows
    ]


def _with_joined_signs(table: _Region) -> _Region:
    numbers = [number for number, _ in table.rows]
    return _Region(table.left, list(zip(numbers, with_joined_signs([row for _, row in table.rows]), strict=True)))


def _header_rows(table: _Region, spans: Spans, marks: Marks) -> int:
    """How many rows name the columns; at least one row is below them."""
    if len(table.rows) < 2 or not _names_columns(table, marks.get(table.rows[0][0], 0.0)):
        return 0
    count = 1
    while count < min(len(table.rows) - 1, _MAX_HEADER_ROWS):
        (number, above), (_, row) = table.rows[count - 1], table.rows[count]
        below = table.rows[count + 1][1]
        spread = any((number, column) in spans for column in above)
        unlabelled = table.left not in row and len(row) > 1
        continues = spread or (unlabelled and (table.left in above or _is_above_values(row, below, table.left)))
        if not continues or not _can_name(row, below):
            break
        count += 1
    return count


def _is_above_values(row: Row, below: Row, left: int) -> bool:
    """Whether a row without a label stands above one that has a label and numbers, as a row of units does."""
    return left in below and any(is_value(below.get(column, "")) for column in row)


def _names_columns(table: _Region, marks: float) -> bool:
    """Whether the first row can be a header: several texts, no numbers but years, and the shape of a table below."""
    first, below = table.rows[0][1], table.rows[1][1]
    under = [below.get(column, "") for column in first]
    if (
        len(first) < 2
        or not may_repeat(list(first.values()), under)
        or not can_name_columns(list(first.values()), under)
    ):
        return False
    rows = table.rows[:ROWS_LOOKED_AT]
    columns = sorted({column for _, row in rows for column in row})
    return marks + header_score([[row.get(column, "") for column in columns] for _, row in rows]) > 0


def _can_name(row: Row, below: Row) -> bool:
    return can_name_columns(list(row.values()), [below.get(column, "") for column in row])


def _names(rows: Sequence[tuple[int, Row]], columns: range, spans: Spans) -> dict[int, str]:
    """One name a column from several header rows: "2023 / Sales" where "2023" spans "Sales" and "Costs"."""
    found: dict[int, dict[str, None]] = {}
    last = rows[-1][1]
    for number, row in rows:
        reached = columns.start
        unmerged = _groups(row, last, columns.start) if row is not last else {}
        for column, cell in row.items():
            stop = min(spans.get((number, column), column) + 1, columns.stop)
            group = unmerged.get(column, ()) if (number, column) not in spans else ()
            for under in group or range(max(column, reached), stop):
                found.setdefault(under, {})[cell] = None
            reached = max(reached, stop)
    return {column: column_name(names) for column, names in sorted(found.items())}


def _groups(row: Row, names: Row, left: int) -> dict[int, Sequence[int]]:
    """Which columns the cells of a header row are for that were not merged, as a period is printed above the last of its columns: a
    lone one for the whole row, else each for those around it up to an empty one. Nothing where that is left open."""
    cells = [column for column in row if column != left]
    under = [column for column in names if column != left]
    if len(cells) == 1 and cells[0] in under:
        return {cells[0]: [left] if left in row else under}
    blocks = [
        [column for _, column in part] for _, part in itertools.groupby(enumerate(under), lambda at: at[1] - at[0])
    ]
    found = {column: block for block in blocks for column in cells if column in block and len(block) > 1}
    is_clear = len(found) == len(cells) == len({block[0] for block in found.values()})
    return dict(found) if is_clear else {}


def _blocks(rows: Sequence[tuple[int, Row]], width: int, names: ColumnNames | None) -> Iterator[Block]:
    for _, row in rows:
        if len(row) == 1 and width > 2:  # a subheading, a note, a total's caption
            yield Block(BlockKind.TEXT, next(iter(row.values())))
        elif names:
            yield names.block(row)
        else:
            cells = list(row.values())
            labels = len(cells[0]) <= MAX_COLUMN_NAME_CHARS and not is_value(cells[0])
            text = "; ".join(labelled_cells(cells) if labels else cells)
            yield Block(
                BlockKind.ROW,
                text,
                label=(text if labels and (len(cells) == 2 or label_pairs(cells)) else cells[0])[:120],
            )
