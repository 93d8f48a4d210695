"""Tables inside documents, as text that search and people understand."""

from collections.abc import Iterator, Sequence

from services.ingest.reading.models import Block, BlockKind

MAX_COLUMN_NAME_CHARS = 120
"""A name is repeated in every row."""


def table_rows(rows: Sequence[Sequence[str]], *, has_header: bool = True) -> Iterator[Block]:
    """One block a row, "column: value; column: value", with the names of the first row when that is a header."""
    rows = [row for row in rows if any(row)]
    has_header = has_header and len(rows) > 1 and sum(1 for cell in rows[0] if cell) > 1
    header = [name[:MAX_COLUMN_NAME_CHARS] for name in rows[0]] if has_header else []
    for row in rows[1:] if header else rows:
        cells = [
            f"{header[i]}: {cell}" if i < len(header) and header[i] and header[i] != cell else cell
            for i, cell in enumerate(row)
            if cell
        ]
        if not header and len(cells) == 2:  # a fact sheet: name and value
            cells = [f"{cells[0].rstrip(' :')}: {cells[1]}"]
        yield Block(BlockKind.TABLE, "; ".join(cells), label=cells[0][:120])


def merged_header(rows: Sequence[Sequence[str]]) -> list[str]:
    """One name a column from several header rows: "2023 / Sales" where "2023" spans "Sales" and "Costs"."""
    width = max((len(row) for row in rows), default=0)
    columns = ([row[i] for row in rows if i < len(row) and row[i]] for i in range(width))
    return [" / ".join(dict.fromkeys(names)) for names in columns]
