"""Tables without rules: short pieces, mostly numbers, that stand below each other in columns."""

import statistics
from collections.abc import Iterator, Sequence
from functools import reduce

from services.ingest.reading.geometry import union
from services.ingest.reading.parsers.pages.pdf_tables import Table
from services.ingest.reading.parsers.tables.table_values import is_sign, is_value
from services.ingest.reading.reading_order import Fragment

_MIN_COLUMNS = 3
_MIN_ROWS = 3
_MAX_USUAL_CELL = 24
"""Characters: columns of running text have more."""
_MIN_NUMBERS = 0.3
_MIN_FILLED = 0.5
_MAX_ROW_GAP = 1.6
"""Line heights between two rows; more is the end of the table."""
_LINE_OVERLAP = 0.5
_MAX_FRAGMENTS = 3000


def find_aligned_tables(fragments: Sequence[Fragment], count: int) -> tuple[list[Table], list[Fragment]]:
    """The tables, and the fragments with a placeholder for each; their numbers begin at `count`."""
    tables: list[Table] = []
    if len(fragments) > _MAX_FRAGMENTS:
        return tables, list(fragments)
    for rows in list(_runs_of_rows(fragments)):
        table = _table(rows)
        if table is None:
            continue
        taken = {id(fragment) for row in rows for fragment in row}
        at = next(place for place, fragment in enumerate(fragments) if id(fragment) in taken)
        rest = [fragment for fragment in fragments[at:] if id(fragment) not in taken]
        fragments = [*fragments[:at], Fragment("", table.box, table=count + len(tables)), *rest]
        tables.append(table)
    return tables, list(fragments)


def _runs_of_rows(fragments: Sequence[Fragment]) -> Iterator[list[list[Fragment]]]:
    """Lines of several pieces each that follow closely upon each other."""
    run: list[list[Fragment]] = []
    for line in _lines([fragment for fragment in fragments if fragment.table is None and not fragment.is_aside]):
        if run and (len(line) < 2 or _gap(run[-1], line) > _MAX_ROW_GAP * _height(line)):
            yield run
            run = []
        if len(line) >= 2:
            run.append(line)
    if run:
        yield run


def _lines(fragments: Sequence[Fragment]) -> list[list[Fragment]]:
    lines: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda f: f.box[1] + f.box[3]):
        if lines and _on_line(lines[-1][0], fragment):
            lines[-1].append(fragment)
        else:
            lines.append([fragment])
    return [sorted(line, key=lambda f: f.box[0]) for line in lines]


def _on_line(a: Fragment, b: Fragment) -> bool:
    shared = min(a.box[3], b.box[3]) - max(a.box[1], b.box[1])
    return shared > _LINE_OVERLAP * min(a.box[3] - a.box[1], b.box[3] - b.box[1])


def _gap(above: Sequence[Fragment], line: Sequence[Fragment]) -> float:
    return min(f.box[1] for f in line) - max(f.box[3] for f in above)


def _height(line: Sequence[Fragment]) -> float:
    return statistics.median(f.box[3] - f.box[1] for f in line)


def _table(rows: Sequence[Sequence[Fragment]]) -> Table | None:
    """None when the pieces do not stand in columns, or are not the cells of a table."""
    cells = [fragment for row in rows for fragment in row]
    columns = _columns(cells)
    if len(rows) < _MIN_ROWS or len(columns) < _MIN_COLUMNS:
        return None
    if statistics.median(len(cell.text) for cell in cells) > _MAX_USUAL_CELL:
        return None
    if sum(1 for cell in cells if is_value(cell.text) or is_sign(cell.text)) < _MIN_NUMBERS * len(cells):
        return None
    texts: list[tuple[str, ...]] = []
    for row in rows:
        places = [_column_of(fragment, columns) for fragment in row]
        if len(set(places)) < len(places):
            return None
        by_column = {place: fragment.text for place, fragment in zip(places, row, strict=True)}
        texts.append(tuple(by_column.get(place, "") for place in range(len(columns))))
    filled = sum(1 for row in texts for cell in row if cell)
    if filled < _MIN_FILLED * len(texts) * len(columns):
        return None
    boxes = tuple(reduce(union, (fragment.box for fragment in row)) for row in rows)
    return Table(reduce(union, boxes), tuple(texts), boxes, tuple(columns))


def _columns(cells: Sequence[Fragment]) -> list[tuple[float, float]]:
    """Stretches of the line that cells share, from left to right."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((cell.box[0], cell.box[2]) for cell in cells):
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _column_of(fragment: Fragment, columns: Sequence[tuple[float, float]]) -> int:
    return next(
        place for place, (left, right) in enumerate(columns) if left <= fragment.box[0] and fragment.box[2] <= right
    )
