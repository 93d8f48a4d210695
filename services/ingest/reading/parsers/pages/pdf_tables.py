"""Ruled tables of a page: the grid that its lines make, and what is printed in each cell."""

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.ingest.reading.geometry import Box, turned_box
from services.ingest.reading.models import Block, LineBox
from services.ingest.reading.parsers.pages.pdf_rules import Rule, Rules
from services.ingest.reading.parsers.tables.column_headers import names_columns
from services.ingest.reading.parsers.tables.rows import table_rows, with_groups
from services.ingest.reading.parsers.tables.table_values import is_value
from services.ingest.reading.reading_order import Fragment, lines_in_order

_TOUCH = 3.0
"""Points by which lines may miss each other and still meet."""
_MIN_SHARED_ROWS = 0.5
_MAX_CELL_CHARS = 1500  # a frame around a page is no table
_MAX_TITLE_ROWS = 3
_FULL_LINE = 0.6
_MIN_BANDED_COLUMNS = 3
_SAME_SIDE = 6.0
"""Points by which the sides of a table may differ from page to page."""


@dataclass(frozen=True)
class Table:
    """A table as it is printed."""

    box: Box
    rows: tuple[tuple[str, ...], ...]
    """Cells from left to right, "" for an empty one."""
    row_boxes: tuple[Box, ...]
    columns: tuple[tuple[float, float], ...] = ()
    """Where the columns of a table without rules begin and end."""


def find_tables(rules: Rules, fragments: Sequence[Fragment]) -> tuple[list[Table], list[Fragment]]:
    """The page's tables, and its fragments with a placeholder for each table behind what stands above it."""
    tables: list[Table] = []
    for grid in _grids(rules):
        inside = [fragment for fragment in fragments if fragment.table is None and grid.holds(fragment)]
        table = _table(grid, inside)
        if table is None:
            continue
        taken = {id(fragment) for fragment in inside}
        others = [fragment for fragment in fragments if id(fragment) not in taken]
        at = max((place for place, fragment in enumerate(others, 1) if _is_above(fragment, grid)), default=0)
        fragments = [*others[:at], Fragment("", grid.box, table=len(tables)), *others[at:]]
        tables.append(table)
    return tables, list(fragments)


@dataclass
class CarriedHeader:
    """The names of the columns of a table that the end of a page cuts, for its rest on the next."""

    table: Table | None = None
    names: tuple[str, ...] = ()

    def keep(self, table: Table | None, names: Sequence[str]) -> None:
        """Remembers the table that a page ends with, under the names that were carried to it or else its own; None where the page
        ends with something else."""
        self.names = ()
        if table:
            rows = [row for row in table.rows if any(row)]
            at = _header(rows)
            self.table, self.names = table, tuple(names) or (rows[at] if at is not None else ())

    def carried_for(self, table: Table) -> tuple[str, ...]:
        """The names for a table that begins a page, where it goes on below the same columns."""
        if self.table is None or len(self.names) != len(table.rows[0]):
            return ()
        return self.names if _have_same_columns(self.table, table) else ()


def _have_same_columns(above: Table, below: Table) -> bool:
    """Whether two tables have the same sides; without rules their columns are as wide as what stands in them, and lie below each
    other."""
    if not above.columns or not below.columns:
        return all(abs(above.box[side] - below.box[side]) <= _SAME_SIDE for side in (0, 2))
    edges = (-math.inf, *itertools.chain.from_iterable(above.columns), math.inf)
    return all(
        min(edges[2 * at + 2], right) > max(edges[2 * at + 1], left)
        and edges[2 * at] < left
        and right < edges[2 * at + 3]
        for at, (left, right) in enumerate(below.columns)
    )


def row_blocks(table: Table, page: int, turn: int = 0, carried: Sequence[str] = ()) -> Iterator[Block]:
    """One block a row, with the names of its columns where the table has them; what stands above those comes first, as it is.
    `carried`: the names from the page before, of a table that goes on."""
    rows = [(row, box) for row, box in zip(table.rows, table.row_boxes, strict=True) if any(row)]
    if carried and rows[0][0] != tuple(carried):
        rows = [(tuple(carried), rows[0][1]), *rows]
    names = 0 if carried else _header([row for row, _ in rows])
    parts = [(rows, 0)]
    if names is not None:
        above, below = rows[:names], rows[names:]
        if above and (grouped := with_groups(above[-1][0], below[0][0])) != list(below[0][0]):
            above, below = above[:-1], [(tuple(grouped), below[0][1]), *below[1:]]
        parts = [(above, 0), (below, 1)]
    for part, header_rows in parts:
        blocks = list(table_rows([row for row, _ in part], header_rows=header_rows))
        blocks = blocks[1:] if carried and len(blocks) == len(part) else blocks  # names that stand on the page before
        for block, (_, box) in zip(blocks, part[len(part) - len(blocks) :], strict=True):
            place = LineBox(0, len(block.text), page, turned_box(box, -turn))
            yield Block(block.kind, block.text, page=page, lines=(place,), label=block.label)


def _header(rows: Sequence[Sequence[str]]) -> int | None:
    """The row that names the columns: the first that fills at least half of them and holds no number but years; None without one.
    The columns of numbers may have a further one each for their signs."""
    width = len({column for row in rows for column, cell in enumerate(row) if is_value(cell)})
    for at, row in enumerate(rows[:_MAX_TITLE_ROWS]):
        filled = [cell for cell in row if cell]
        is_full = 2 * len(filled) >= len(row) or (len(filled) >= width and not row[0])
        if len(filled) > 1 and is_full:
            return at if names_columns(rows[at:]) else None
    return None


@dataclass(frozen=True)
class _Grid:
    xs: tuple[float, ...]
    ys: tuple[float, ...]

    @property
    def box(self) -> Box:
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]

    def holds(self, fragment: Fragment) -> bool:
        x, y = _middle(fragment)
        return not fragment.is_aside and self.xs[0] <= x <= self.xs[-1] and self.ys[0] <= y <= self.ys[-1]


def _grids(rules: Rules) -> Iterator[_Grid]:
    """Lines that meet belong to one grid. Sorted from the top."""
    across, down = rules.horizontal, rules.vertical
    group_of = list(range(len(across) + len(down)))

    def root(index: int) -> int:
        while group_of[index] != index:
            group_of[index] = index = group_of[group_of[index]]
        return index

    for i, horizontal in enumerate(across):
        for j, vertical in enumerate(down):
            if _meet(horizontal, vertical):
                group_of[root(len(across) + j)] = root(i)
    groups: dict[int, tuple[list[float], list[float]]] = {}
    for i, horizontal in enumerate(across):
        group = groups.setdefault(root(i), ([], []))
        group[1].append(horizontal.at)
        group[0].extend((horizontal.start, horizontal.end))  # many tables have no rules at their sides
    for j, vertical in enumerate(down):
        group = groups.setdefault(root(len(across) + j), ([], []))
        group[0].append(vertical.at)
        group[1].extend((vertical.start, vertical.end))
    grids = [_Grid(tuple(_distinct(xs)), tuple(_distinct(ys))) for xs, ys in groups.values()]
    yield from sorted((grid for grid in grids if len(grid.xs) > 2 and len(grid.ys) > 2), key=lambda grid: grid.ys[0])


def _meet(horizontal: Rule, vertical: Rule) -> bool:
    return (
        horizontal.start - _TOUCH <= vertical.at <= horizontal.end + _TOUCH
        and vertical.start - _TOUCH <= horizontal.at <= vertical.end + _TOUCH
    )


def _distinct(values: Sequence[float]) -> Iterator[float]:
    last: float | None = None
    for value in sorted(values):
        if last is None or value - last > _TOUCH:
            yield value
            last = value


def _table(grid: _Grid, inside: Sequence[Fragment]) -> Table | None:
    """None when the grid holds no table: a frame, a chart, a form of single cells."""
    ys = _with_banded_rows(grid, inside)
    cells: list[list[list[Fragment]]] = [[[] for _ in grid.xs[1:]] for _ in ys[1:]]
    for fragment in inside:
        row = min(max(bisect.bisect_right(ys, _middle(fragment)[1]) - 1, 0), len(cells) - 1)
        cells[row][_column(grid, fragment)].append(fragment)
    texts = [[_cell_text(cell) for cell in row] for row in cells]
    used = [column for column in range(len(grid.xs) - 1) if any(row[column] for row in texts)]
    rows = tuple(tuple(row[column] for column in used) for row in texts)
    filled = [row for row in rows if any(row)]
    shared = sum(1 for row in filled if sum(1 for cell in row if cell) > 1)
    longest = max((len(cell) for row in rows for cell in row), default=0)
    if len(filled) < 2 or len(used) < 2 or shared < _MIN_SHARED_ROWS * len(filled) or longest > _MAX_CELL_CHARS:
        return None
    left, _, right, _ = grid.box
    boxes = tuple((left, top, right, bottom) for top, bottom in itertools.pairwise(ys))
    return Table(grid.box, rows, boxes)


def _column(grid: _Grid, fragment: Fragment) -> int:
    """A cell that spans columns has its text in the first of them."""
    return min(max(bisect.bisect_right(grid.xs, fragment.box[0] + _TOUCH) - 1, 0), len(grid.xs) - 2)


def _with_banded_rows(grid: _Grid, inside: Sequence[Fragment]) -> list[float]:
    """The horizontal borders, with more of them where several rows stand between two rules: every line fills most columns, which
    the lines of wrapped cells do not."""
    ys = [grid.ys[0]]
    between: dict[int, list[Fragment]] = {}
    for fragment in inside:
        between.setdefault(bisect.bisect_right(grid.ys, _middle(fragment)[1]), []).append(fragment)
    for at, bottom in enumerate(grid.ys[1:], 1):
        lines: list[list[Fragment]] = []
        for fragment in sorted(between.get(at, ()), key=lambda f: f.box[1] + f.box[3]):
            if lines and _middle(fragment)[1] < lines[-1][0].box[3]:
                lines[-1].append(fragment)
            else:
                lines.append([fragment])
        columns = {_column(grid, fragment) for line in lines for fragment in line}
        needed = max(_MIN_BANDED_COLUMNS, _FULL_LINE * len(columns))
        if all(len({_column(grid, fragment) for fragment in line}) >= needed for line in lines):
            ys += [(above[0].box[3] + below[0].box[1]) / 2 for above, below in itertools.pairwise(lines)]
        ys.append(bottom)
    return ys


def _is_above(fragment: Fragment, grid: _Grid) -> bool:
    x0, _, x1, y1 = fragment.box
    return not fragment.is_aside and y1 <= grid.ys[0] + _TOUCH and x0 < grid.xs[-1] and x1 > grid.xs[0]


def _cell_text(fragments: Sequence[Fragment]) -> str:
    return " ".join(line.text for line in lines_in_order(fragments, trust_order=False))


def _middle(fragment: Fragment) -> tuple[float, float]:
    x0, y0, x1, y1 = fragment.box
    return (x0 + x1) / 2, (y0 + y1) / 2
