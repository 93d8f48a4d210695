"""Boxes on pages; and where chunks stand: the boxes of their lines."""

from collections.abc import Sequence
from dataclasses import replace

from services.ingest.reading.models import LineBox

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1, origin at the top left."""


def union(a: Box, b: Box) -> Box:
    """The smallest box around both."""
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def turned_box(box: Box, turn: int) -> Box:
    """The box after turning the page around its origin by `turn` degrees clockwise, a multiple of 90."""
    x0, y0, x1, y1 = box
    match turn % 360:
        case 90:
            return -y1, x0, -y0, x1
        case 180:
            return -x1, -y1, -x0, -y0
        case 270:
            return y0, -x1, y1, -x0
        case _:
            return box


class Boxes:
    """Finds the lines of a span on their pages. Lines are in order of characters."""

    def __init__(self, lines: Sequence[LineBox]) -> None:
        self._lines = lines
        self._next = 0

    def of(self, start: int, end: int) -> tuple[LineBox, ...]:
        """The lines of a span, each with its characters counted from `start`. Spans must be asked for by growing start."""
        while self._next < len(self._lines) and self._lines[self._next].end <= start:
            self._next += 1
        found: list[LineBox] = []
        for at in range(self._next, len(self._lines)):
            line = self._lines[at]
            if line.start >= end:
                break
            found.append(replace(line, start=max(line.start, start) - start, end=min(line.end, end) - start))
        return tuple(found)
