"""CSV and TSV: each row becomes one block in which every value stands behind its column's name, so that a row found by search
makes sense without the table around it."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.plain import encoding_warnings
from services.ingest.reading.parsers.table_values import can_name_columns, is_value
from services.ingest.reading.parsers.tables import MAX_COLUMN_NAME_CHARS
from services.ingest.reading.parsers.titles import title_from
from services.ingest.reading.source import Source

_DELIMITERS = ",;\t|"
_SAMPLE_CHARS = 64 * 1024
_NAMING_HEADER = re.compile(r"\b(name|title|team|company|country|security|product|label)\b", re.IGNORECASE)


def parse_csv(source: Source, name: str) -> ParsedDocument:
    """Reads a delimited file; the delimiter and whether there is a header are found by looking."""
    decoded = decode(source.read_bytes())
    text = decoded.text.replace("\0", "")
    csv.field_size_limit(max(len(text), 131_072))
    delimiter = _delimiter(text, name)
    rows = [row for row in _rows(text, delimiter) if any(cell for cell in row)]
    header, body = _split_header(rows)
    blocks = tuple(row_blocks(header, body))
    return ParsedDocument(title_from(name), blocks, warnings=encoding_warnings(decoded) + _ragged(header, body))


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
    if not rows:
        return [], []
    first, body = rows[0], rows[1:]
    named = [cell for cell in first if cell]
    is_header = bool(body) and len(set(named)) == len(named) and can_name_columns(first, body[0])
    width = max(len(row) for row in rows[:1000])
    columns = first if is_header else []
    return [
        columns[i] if i < len(columns) and columns[i] else f"column {i + 1}" for i in range(width)
    ], body if is_header else rows


def row_blocks(header: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[Block]:
    """One block a row, every value behind its column's name; a column without a name gives its values alone."""
    names = ColumnNames(dict(enumerate(header)))
    for row in body:
        further = {i: f"column {i + 1}" for i in range(len(header), len(row))}
        yield names.block({i: cell for i, cell in enumerate(row) if cell}, further)


class ColumnNames:
    """What stands above the columns of a table."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = {column: name[:MAX_COLUMN_NAME_CHARS] for column, name in names.items()}
        named = (column for column, name in self._names.items() if _NAMING_HEADER.search(name.replace("_", " ")))
        self._naming = next(named, min(self._names, default=0))
        """The column that names a row."""

    def block(self, row: Mapping[int, str], further: Mapping[int, str] = MappingProxyType({})) -> Block:
        """A row whose cells with text are given by their columns; it has at least one. `further`: names of columns without one."""
        names = {column: self._names.get(column) or further.get(column, "") for column in row}
        cells = {column: f"{names[column]}: {cell}" if names[column] else cell for column, cell in row.items()}
        first = next(iter(row))
        labels = not names[first] and not is_value(row[first])
        label = cells[self._naming] if names.get(self._naming) and not labels else cells[first]
        return Block(BlockKind.ROW, "; ".join(cells.values()), label=label[:120])


def _ragged(header: list[str], body: list[list[str]]) -> tuple[str, ...]:
    odd = sum(1 for row in body if len(row) != len(header))
    return (f"{odd} of {len(body)} rows do not have {len(header)} columns",) if odd else ()
