"""Tables of Markdown, padded so that they read as well in a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows as long as the header."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def render(self) -> str:
        widths = [max(len(cell) for cell in column) for column in zip(self.columns, *self.rows, strict=True)]
        header, *rows = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in (self.columns, *self.rows)
        ]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        return "\n".join((header, rule, *rows))
