"""Tables inside documents, as text that search and people understand."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from services.ingest.reading.models import Block, BlockKind
from services.ingest.reading.parsers.tables.column_headers import ROWS_LOOKED_AT, names_columns, unsaid_names
from services.ingest.reading.parsers.tables.forms import form_rows_below, label_pairs
from services.ingest.reading.parsers.tables.table_values import (
    can_name_columns,
    column_name,
    is_period,
    is_value,
    with_joined_signs,
)

MAX_COLUMN_NAME_CHARS = 120
"""A name is repeated in every row."""
SPANNED = "\0"
"""Stands for a cell that the one to its left reaches over. No XML or HTML has this character."""
_MAX_HEADER_ROWS = 3


def table_rows(rows: Sequence[Sequence[str]], *, header_rows: int | None = None, marks: float = 0.0) -> Iterator[Block]:
    """One block a row, "column: value; column: value", with the names of the header where there is one. `header_rows`: how many
    rows the file says it has. 0 where it could have said so and did not: then only rows above those of values are one. None where
    such files never say: then the shape of the rows decides, with `marks` for a header or against one."""
    rows = _dense(with_joined_signs([{i: cell for i, cell in enumerate(row) if cell} for row in rows]))
    captions = sum(1 for _ in itertools.takewhile(_is_caption, rows))
    yield from (Block(BlockKind.TABLE, row[0], label=row[0][:120]) for row in rows[:captions])
    rows = rows[captions:]
    below = form_rows_below([_without_spans(row) for row in rows])
    count = _header_rows(rows[: len(rows) - below], header_rows and max(0, header_rows - captions), marks)
    below = below if count else 0
    header = [name[:MAX_COLUMN_NAME_CHARS] for name in merged_header([spread(row) for row in rows[:count]])]
    body = [_without_spans(row) for row in rows[count : len(rows) - below]]
    form = [_without_spans(row) for row in rows[len(rows) - below :]]
    said = {i: header[i] for row in body for i, cell in enumerate(row) if cell and i < len(header) and header[i]}
    named = [{i: cell for i, cell in enumerate(row) if cell and cell != SPANNED} for row in rows[:count]]
    if unsaid := "; ".join(unsaid_names(named, said)):
        yield Block(BlockKind.TABLE, unsaid, label=unsaid[:120])
    for row in body:
        cells = [
            f"{header[i]}: {cell}" if i < len(header) and header[i] and header[i] != cell else cell
            for i, cell in enumerate(row)
            if cell
        ]
        yield _row_block(cells if header else labelled_cells(cells))
    yield from (_row_block(labelled_cells(list(filter(None, row)))) for row in form)


def _row_block(cells: Sequence[str]) -> Block:
    return Block(BlockKind.TABLE, "; ".join(cells), label=cells[0][:120])


def _without_spans(row: Sequence[str]) -> list[str]:
    return ["" if cell == SPANNED else cell for cell in row]


def labelled_cells(cells: Sequence[str]) -> list[str]:
    """The cells of a row without names of columns, labels with what stands behind them: two cells are a label and a value, of more
    those that end with a colon are labels, and every second where all of these are known as labels."""
    if len(cells) == 2 and len(cells[0]) <= MAX_COLUMN_NAME_CHARS:
        return [f"{cells[0].rstrip(' :')}: {cells[1]}"]
    if pairs := label_pairs(cells):
        return [f"{label.rstrip(' :')}: {value}" for label, value in pairs]
    joined: list[str] = []
    for cell in cells:
        if joined and joined[-1].endswith(":"):
            joined[-1] += f" {cell}"
        else:
            joined.append(cell)
    return joined


def merged_header(rows: Sequence[Sequence[str]]) -> list[str]:
    """One name a column from several header rows: "2023 / Sales" where "2023" spans "Sales" and "Costs"."""
    width = max((len(row) for row in rows), default=0)
    columns = ([row[i] for row in rows if i < len(row) and row[i]] for i in range(width))
    return [column_name(names) for names in columns]


def with_groups(groups: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names of columns with those of their groups. A group's name is printed above any of its columns. A group ends where its names
    begin again: 2024, 2023, 2024, 2023 are two. The names alone where that leaves it open what a group is of."""
    counts = Counter(names)
    parts: list[list[int]] = [[]]
    for column, name in enumerate(names):
        if counts[name] == 1 and not is_period(name):
            parts.append([])
            continue
        if any(names[other] == name for other in parts[-1]):
            parts.append([])
        parts[-1].append(column)
    labelled = [
        ([groups[column] for column in part if column < len(groups) and groups[column]], part) for part in parts
    ]
    if sum(len(labels) for labels, _ in labelled) < sum(map(bool, groups)) or any(
        len(labels) > 1 for labels, _ in labelled
    ):
        return list(names)
    of_column = {column: labels[0] for labels, part in labelled for column in part if labels}
    return [f"{of_column[column]} / {name}" if column in of_column else name for column, name in enumerate(names)]


def _header_rows(rows: Sequence[Sequence[str]], declared: int | None, marks: float) -> int:
    if len(rows) < 2 or not _names_several(rows[0]):
        return 0
    if declared:
        return min(declared, len(rows) - 1)
    if not can_name_columns(spread(rows[0]), rows[1]) or (declared == 0 and not _stands_above_values(rows)):
        return 0
    if declared is None and not names_columns([spread(row) for row in rows[:ROWS_LOOKED_AT]], marks):
        return 0
    count = 1
    while count < min(_MAX_HEADER_ROWS, len(rows) - 1) and _continues(rows[count - 1], rows[count], rows[count + 1]):
        count += 1
    return count


def _names_several(row: Sequence[str]) -> bool:
    """Whether a row has names for two columns, or one for the second beside the names of rows."""
    return sum(1 for cell in spread(row) if cell) > 1 or (len(row) == 2 and not row[0])


def _stands_above_values(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row leaves the place above the names of rows empty, holds years or groups, and a row below holds values."""
    named = not rows[0][0] or any(map(is_period, rows[0])) or (len(rows) > 2 and _continues(*rows[:3]))
    return named and any(
        is_value(cell) and not is_period(cell) for row in rows[1 : _MAX_HEADER_ROWS + 1] for cell in row
    )


def _continues(above: Sequence[str], row: Sequence[str], below: Sequence[str]) -> bool:
    """Whether the columns that `above` names are named more closely in `row`."""
    cells = [cell for cell in row if cell and cell != SPANNED]
    is_closer = SPANNED in above or not above[0]
    is_label = row[0] and row[0] != above[0] and above[1] != SPANNED  # of the first row below
    return is_closer and not is_label and len(cells) > 1 and can_name_columns(spread(row), below)


def _is_caption(row: Sequence[str]) -> bool:
    """Whether one cell reaches over the whole table."""
    return len(row) > 1 and bool(row[0]) and row[0] != SPANNED and all(cell == SPANNED for cell in row[1:])


def _dense(rows: Sequence[Mapping[int, str]]) -> list[list[str]]:
    """Rows with text, as lists: those in which a header is looked for of one length, the others as long as they are. Many rows
    below one of many cells would take time and memory for each cell that is not there."""
    width = max((max(row) + 1 for row in rows if row), default=0)
    dense: list[list[str]] = []
    below_captions = 0
    for row in rows:
        if all(cell == SPANNED for cell in row.values()):
            continue
        reach = width if below_captions <= _MAX_HEADER_ROWS + 1 else max(row) + 1
        dense.append([row.get(i, "") for i in range(reach)])
        below_captions += not _is_caption(dense[-1])
    return dense


def spread(row: Sequence[str]) -> list[str]:
    """A row of names with that of each group above all its columns."""
    cells: list[str] = []
    for cell in row:
        cells.append((cells[-1] if cells else "") if cell == SPANNED else cell)
    return cells
