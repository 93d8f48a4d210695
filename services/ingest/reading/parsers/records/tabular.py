"""CSV and TSV: each row becomes one block in which every value stands behind its column's name, so that a row found by search
makes sense without the table around it."""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.tables.column_headers import (
    ROWS_LOOKED_AT,
    header_score,
    is_label,
    names_columns,
    unsaid_names,
)
from services.ingest.reading.parsers.tables.forms import form_rows_apart
from services.ingest.reading.parsers.tables.rows import MAX_COLUMN_NAME_CHARS, labelled_cells
from services.ingest.reading.parsers.tables.table_values import can_name_columns, is_value
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_DELIMITERS = ",;\t|"
_SAMPLE_CHARS = 64 * 1024
_DELIMITER_NOTE = re.compile(r"\ufeff?sep=(.)[ \t;,]*(?:\r\n?|\n)", re.IGNORECASE)
"""What Excel writes above a table for itself."""
_ROWS_OF_WIDTH = 200
_ROWS_ABOVE = 20
_HEADER_IS_USUAL = 1.5
"""Of such files: what the shape of the rows has to speak against."""
_MIN_REPEATED = 3
_NUMBERED_COLUMN = re.compile(r"^column \d+$")
_NAMING_HEADER = re.compile(r"\b(name|title|team|company|country|security|product|label)\b", re.IGNORECASE)


def parse_csv(source: Source, name: str) -> ParsedDocument:
    """Reads a delimited file; the delimiter and whether there is a header are found by looking."""
    decoded = decode(source.read_bytes())
    text = decoded.text.replace("\0", "")
    csv.field_size_limit(max(len(text), 131_072))
    noted = _DELIMITER_NOTE.match(text)
    delimiter = noted[1] if noted else _delimiter(text, name)
    rows = list(_rows(text[noted.end() :] if noted else text, delimiter))
    blocks: list[Block] = []
    warnings = encoding_warnings(decoded)
    for table in _tables(rows):
        body = _read_table(table, blocks)
        warnings += _ragged(max((len(row) for row in body[:1000]), default=0), body)
    return ParsedDocument(title_from(name), tuple(blocks), warnings=warnings)


def _tables(all_rows: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    """The rows of each table, with the empty ones: behind one of these another table may begin, with names of its own."""
    first = 0
    for at in range(2, len(all_rows) - 1):
        if any(all_rows[at - 1]) or not all(map(any, all_rows[at : at + 2])):
            continue
        above = [row for row in all_rows[first : min(at, first + ROWS_LOOKED_AT)] if any(row)]
        if len(above) > 1 and names_columns(above) and _begins_table(all_rows[at : at + ROWS_LOOKED_AT]):
            yield list(all_rows[first:at])
            first = at
    yield list(all_rows[first:])


def _begins_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows begin with names of columns: most must be such as columns are called by."""
    part = list(itertools.takewhile(any, rows))
    names = [cell for cell in part[0] if cell]
    known = sum(map(is_label, names))
    return len(names) > 1 and 2 * known >= len(names) and names_columns(part)


def _read_table(all_rows: list[list[str]], blocks: list[Block]) -> Sequence[Sequence[str]]:
    """Adds the blocks of one table, and of what stands above and below it. Returns its records."""
    while all_rows and not any(all_rows[-1]):
        all_rows.pop()
    rows = [row for row in all_rows if any(row)]
    below = form_rows_apart(all_rows)
    table = rows[: len(rows) - below]
    above = max(_lines_above(table), _lines_before_gap(all_rows[: len(all_rows) - below]))
    header, body = _split_header(table[above:])
    blocks += [_unnamed(row, BlockKind.TEXT) for row in rows[:above]]
    if not header:
        body = rows[above:]
        blocks += headless_blocks(body)
        return body
    blocks += row_blocks(header, body)
    blocks += (_unnamed(row, BlockKind.ROW) for row in rows[len(table) :])
    return body


def _unnamed(row: Sequence[str], kind: BlockKind) -> Block:
    """A row that is not under the names of the columns."""
    return Block(kind, "; ".join(labelled_cells(list(filter(None, row)))))


def _lines_above(rows: Sequence[Sequence[str]]) -> int:
    """How many lines of words stand above a table: rows of one or two cells above rows of more."""
    widths = [len(row) for row in rows[:_ROWS_OF_WIDTH]]
    usual = max(widths, key=lambda width: (widths.count(width), width), default=0)
    above = next((at for at, row in enumerate(rows) if len(row) >= usual and sum(map(bool, row)) > 1), 0)
    return above if usual > 1 and widths.count(usual) > 1 else 0


def _lines_before_gap(rows: Sequence[Sequence[str]]) -> int:
    """How many rows stand above an empty one and hold fewer cells than those below: programs fill each row up to one width."""
    filled = [sum(map(bool, row)) for row in rows[:_ROWS_OF_WIDTH]]
    above = 0
    for at, count in enumerate(filled[:_ROWS_ABOVE]):
        before, below = filled[:at], [each for each in filled[at:] if each]
        names_rows = (
            at > 0 and filled[at - 1] > 0 and not rows[at - 1][0]
        )  # a header without a name for the first column
        if count or not any(before) or len(below) < 2 or names_rows:
            continue
        if max(before) < max(set(below), key=lambda width: (below.count(width), width)):
            above = sum(map(bool, before))
    return above


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True):
        yield [" ".join(cell.split()) for cell in row]


def _delimiter(text: str, name: str) -> str:
    sample = text[:_SAMPLE_CHARS]
    if len(text) > _SAMPLE_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample
    default = "\t" if name.lower().endswith(".tsv") else ","
    scores = {candidate: _regularity(sample, candidate) for candidate in _DELIMITERS}
    best = max(_DELIMITERS, key=lambda candidate: (scores[candidate], candidate == default))
    return best if scores[best] > 0 else default


def _regularity(sample: str, delimiter: str) -> float:
    """How much the sample looks like a table under `delimiter`: share of rows with the usual width, if wider than one."""
    try:
        widths = [len(row) for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter) if row][:200]
    except csv.Error:
        return 0.0
    if not widths:
        return 0.0
    usual = max(set(widths), key=widths.count)
    return widths.count(usual) / len(widths) * min(usual, 20) if usual > 1 else 0.0


def _split_header(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, none where the first row is a record, and the records."""
    if len(rows) < 2 or not may_repeat(rows[0], rows[1]) or not can_name_columns(rows[0], rows[1]):
        return [], rows
    if _HEADER_IS_USUAL + header_score(rows[:ROWS_LOOKED_AT]) <= 0:
        return [], rows
    width = max(len(row) for row in rows[:1000])
    first = rows[0] + [""] * (width - len(rows[0]))
    return [name or f"column {i}" for i, name in enumerate(first, 1)], rows[1:]


def may_repeat(names: Sequence[str], below: Sequence[str]) -> bool:
    """Whether these can be names of columns though some may be the same: most differ, or what is the same stands above values."""
    named = [name for name in names if name]
    if len(set(named)) == len(named) or (len(named) > _MIN_REPEATED and 2 * len(set(named)) >= len(named)):
        return True
    repeated = {name for name in named if named.count(name) > 1}
    under = [cell for name, cell in zip(names, below, strict=False) if name in repeated]
    return len(set(named)) > 1 and len(under) > 1 and all(map(is_value, under)) and not any(map(is_value, named))


def headless_blocks(body: Sequence[Sequence[str]]) -> Iterator[Block]:
    """One block a row of a table without names of columns: a label with its value where that is what it holds, else the columns
    are numbered."""
    is_form = max((len(row) for row in body), default=0) == 2 and not any(is_value(row[0]) for row in body)
    width = max((len(row) for row in body[:1000]), default=0)
    numbered = ColumnNames({i: f"column {i + 1}" for i in range(width)})
    for row in body:
        cells = {i: cell for i, cell in enumerate(row) if cell}
        if is_form or any(cell.endswith(":") for cell in cells.values()):
            text = "; ".join(labelled_cells(list(cells.values())))
            yield Block(BlockKind.ROW, text, label=text[:120])
        else:
            yield numbered.block(cells, {i: f"column {i + 1}" for i in range(width, len(row))})


def row_blocks(header: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[Block]:
    """One block a row, every value behind its column's name; a column without a name gives its values alone. Names that no row
    repeats come last."""
    names = ColumnNames(dict(enumerate(header)))
    for row in body:
        further = {i: f"column {i + 1}" for i in range(len(header), len(row))}
        yield names.block({i: cell for i, cell in enumerate(row) if cell}, further)
    yield from names.unsaid([dict(enumerate(header))])


class ColumnNames:
    """What stands above the columns of a table."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = {column: name[:MAX_COLUMN_NAME_CHARS] for column, name in names.items()}
        named = (column for column, name in self._names.items() if _NAMING_HEADER.search(name.replace("_", " ")))
        self._naming = next(named, min(self._names, default=0))
        """The column that names a row."""
        self._said: set[int] = set()

    def unsaid(self, rows: Iterable[Mapping[int, str]]) -> Iterator[Block]:
        """The cells of the header's `rows` that no row so far has repeated."""
        said = {column: self._names[column] for column in self._said}
        if unsaid := "; ".join(cell for cell in unsaid_names(list(rows), said) if not _NUMBERED_COLUMN.match(cell)):
            yield Block(BlockKind.ROW, unsaid, label=unsaid[:120])

    def block(self, row: Mapping[int, str], further: Mapping[int, str] = MappingProxyType({})) -> Block:
        """A row whose cells with text are given by their columns; it has at least one. `further`: names of columns without one."""
        self._said.update(self._names.keys() & row.keys())
        names = {column: self._names.get(column) or further.get(column, "") for column in row}
        cells = {column: f"{names[column]}: {cell}" if names[column] else cell for column, cell in row.items()}
        first = next(iter(row))
        labels = not names[first] and not is_value(row[first])
        label = cells[self._naming] if names.get(self._naming) and not labels else cells[first]
        return Block(BlockKind.ROW, "; ".join(cells.values()), label=label[:120])


def _ragged(width: int, body: Sequence[Sequence[str]]) -> tuple[str, ...]:
    odd = sum(1 for row in body if len(row) != width)
    return (f"{odd} of {len(body)} rows do not have {width} columns",) if odd else ()
