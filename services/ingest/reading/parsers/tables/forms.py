"""Forms of labels and values below a table, as who prepared an offer stands below its items: no names of columns stand above them.

Rows have cells from left to right, "" for an empty one; the first row of a table names its columns."""

from collections.abc import Sequence

from services.ingest.reading.parsers.tables.column_headers import ROWS_LOOKED_AT, is_label
from services.ingest.reading.parsers.tables.table_values import is_value

Rows = Sequence[Sequence[str]]
_LEAST_ROWS = 2
"""Of a table: a header and a record."""
_PAIR = 2


def form_rows_below(rows: Rows) -> int:
    """How many of the last rows are a form, of rows without an empty one between them and the table above. It may end in notes:
    rows of one cell."""
    count = 0
    while count < len(rows) - _LEAST_ROWS and (_is_labelled(rows[-1 - count]) or _is_note(rows[-1 - count])):
        count += 1
    while count and _is_note(rows[len(rows) - count]):
        count -= 1
    if not count:
        return 0
    table = rows[: min(len(rows) - count, ROWS_LOOKED_AT)]
    form = [row for row in rows[len(rows) - count :] if not _is_note(row)]
    while count < len(rows) - _LEAST_ROWS and _may_be_labelled(rows[-1 - count], table[: len(rows) - count - 1]):
        count += 1
    return count if _has_labels_of_its_own(form, table) and _is_of_another_shape(form, table) else 0


def form_rows_apart(rows: Rows) -> int:
    """How many of the last rows are a form, of rows with empty ones between them."""
    filled = [row for row in rows if any(row)]
    apart = next((at for at, row in enumerate(reversed(rows[-ROWS_LOOKED_AT:])) if not any(row)), 0)
    if apart and is_form_below(filled[-apart:], filled[: min(len(filled) - apart, ROWS_LOOKED_AT)]):
        return apart
    return form_rows_below(filled)


def is_form_below(rows: Rows, table: Rows) -> bool:
    """Whether rows are a form and no further records of the table above an empty row. Notes among them are left out of account."""
    rows = [row for row in rows if not _is_note(row)]
    if not rows or len(table) < _LEAST_ROWS or not all(map(label_pairs, rows)):
        return False
    if _PAIR * sum(map(_is_labelled, rows)) >= len(rows):
        return _has_labels_of_its_own(rows, table)
    return all(_may_be_labelled(row, table) for row in rows)


def _has_labels_of_its_own(form: Rows, table: Rows) -> bool:
    """Whether what stands first in the form is a label and in the table is none."""
    if any(row[0].endswith(":") for row in table[1:] if row):
        return False
    if all(label.endswith(":") for row in form for label, _ in label_pairs(row)):
        return True
    return not any(is_label(row[0]) for row in table[1:] if row) and not _holds_values_alike(form, table)


def _is_of_another_shape(form: Rows, table: Rows) -> bool:
    if _is_narrower(form, table) or all(len(label_pairs(row)) > 1 or row[0].endswith(":") for row in form):
        return True
    return len(form) > 1 and _is_column_of_values(table)


def _may_be_labelled(row: Sequence[str], table: Rows) -> bool:
    """Whether a row has fewer cells than records have, and a value as none of them has it."""
    if not label_pairs(row) or not _is_narrower([row], table) or _holds_values_alike([row], table):
        return False
    return all(row[1] not in record[1:2] for record in table[1:])


def _is_narrower(form: Rows, table: Rows) -> bool:
    """Whether records have more cells than a label and a value, as a rule."""
    widths = sorted(sum(map(bool, row)) for row in table)
    return widths[len(widths) // 2] > max(sum(map(bool, row)) for row in form)


def _holds_values_alike(form: Rows, table: Rows) -> bool:
    """Whether numbers stand below numbers, as a total does."""
    return _is_column_of_values(table) and all(is_value(row[1]) for row in form)


def _is_column_of_values(table: Rows) -> bool:
    cells = [row[1] for row in table[1:] if len(row) > 1 and row[1]]
    return bool(cells) and all(map(is_value, cells))


def _is_note(row: Sequence[str]) -> bool:
    return sum(map(bool, row)) == 1


def _is_labelled(row: Sequence[str]) -> bool:
    pairs = label_pairs(row)
    return bool(pairs) and all(is_label(label) for label, _ in pairs)


def label_pairs(row: Sequence[str]) -> list[tuple[str, str]]:
    """Labels with the values behind them; none where the cells are something else. Of several pairs all labels are known ones."""
    filled = [cell for cell in row if cell]
    if len(filled) < _PAIR or len(filled) % _PAIR or any(not cell for cell in row[:_PAIR]):
        return []
    pairs = list(zip(filled[::_PAIR], filled[1::_PAIR], strict=True))
    if len(pairs) > 1 and (
        not all(is_label(label) for label, _ in pairs) or all(is_label(value) for _, value in pairs)
    ):
        return []
    return pairs
