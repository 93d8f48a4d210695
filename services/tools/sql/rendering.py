"""Rows as a model reads them and a person cites them: a table of text within bounds."""

import datetime
import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from kit.vocabulary.passages import one_line
from services.tools.sql.models import Rows, Statement

CELL_CHARACTERS_MAX = 300
TEXT_CHARACTERS_MAX = 24_000
"""Of the table: what a model reads of one observation."""


def rendered(database: str, statement: Statement, rows: Rows) -> str:
    """The statement, the rows, and what is not shown of them."""
    parts = [f"Database {database}, asked:", statement.shown, "", *_table(rows)]
    return "\n".join([*parts, *remarks(statement)])


def remarks(statement: Statement) -> list[str]:
    """What the caller does not see."""
    said = []
    if statement.limited:
        said.append(f"Only the rows that the user may see are counted: {', '.join(statement.limited)}.")
    if statement.masked:
        said.append(f"Hidden columns: {', '.join(statement.masked)}.")
    return said


def chunk_id(database: str, text: str) -> str:
    """A name for what was read, the same for the same rows."""
    digest = hashlib.sha256("\0".join((database, text)).encode(errors="replace"))
    return f"sql-{digest.hexdigest()[:32]}"


def counted(rows: Rows) -> str:
    """ "3 rows" """
    number = len(rows.rows)
    return f"{'the first ' if rows.is_cut else ''}{number} row{'' if number == 1 else 's'}"


def plain(value: Any) -> str:
    """A value as text."""
    match value:
        case None:
            text = "NULL"
        case bool():
            text = str(value).lower()
        case bytes() | bytearray() | memoryview():
            text = f"<{len(bytes(value))} bytes>"
        case float():
            text = f"{value:.12g}"
        case Decimal() if value.is_finite():
            text = format(value, "f")
        case datetime.datetime():
            text = value.isoformat(" ")
        case list() | tuple():
            text = f"[{', '.join(map(plain, value))}]"
        case _:
            text = one_line(str(value))
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[: CELL_CHARACTERS_MAX - 1]}…"


def _table(rows: Rows) -> list[str]:
    if not rows.rows:
        return ["No rows: nothing in the database meets these conditions."]
    if len(rows.rows) == 1 and len(rows.columns) > 0:
        cells = zip(rows.columns, map(plain, rows.rows[0]), strict=True)
        return [f"{'; '.join(f'{name}: {cell}' for name, cell in cells)}.", "(1 row)"]
    lines = [_line(rows.columns), _line(["---"] * len(rows.columns))]
    size = sum(map(len, lines))
    for number, row in enumerate(rows.rows):
        line = _line([plain(value) for value in row])
        size += len(line) + 1
        if size > TEXT_CHARACTERS_MAX:
            return [
                *lines,
                f"({number} of the rows are shown; the others are too long. Ask for fewer columns or rows.)",
            ]
        lines.append(line)
    lines.append(f"({counted(rows)}{'; there are more' if rows.is_cut else ''})")
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '¦') for cell in cells)} |"
