"""Where chunks stand on their pages: the boxes of their lines, those of one column merged."""

from collections.abc import Sequence

from services.ingest.models import LineBox


class Boxes:
    """Finds where a span stands on its pages. Lines are in order of characters."""

    def __init__(self, lines: Sequence[LineBox]) -> None:
        self._lines = lines
        self._next = 0

    def of(self, start: int, end: int) -> tuple[LineBox, ...]:
        """Boxes of a span, lines of one column merged. Spans must be asked for by growing start."""
        while self._next < len(self._lines) and self._lines[self._next].end <= start:
            self._next += 1
        merged: list[LineBox] = []
        for line in self._lines[self._next :]:
            if line.start >= end:
                break
            if merged and _same_column(merged[-1], line):
                merged[-1] = _union(merged[-1], line)
            else:
                merged.append(line)
        return tuple(merged)


def _same_column(above: LineBox, line: LineBox) -> bool:
    a, b = above.box, line.box
    height = b[3] - b[1]
    near = -height <= b[1] - a[3] <= 2.0 * height
    return above.page == line.page and near and min(a[2], b[2]) > max(a[0], b[0])


def _union(a: LineBox, b: LineBox) -> LineBox:
    box = (min(a.box[0], b.box[0]), min(a.box[1], b.box[1]), max(a.box[2], b.box[2]), max(a.box[3], b.box[3]))
    return LineBox(a.start, b.end, a.page, box)
