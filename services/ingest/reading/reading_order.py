"""The order in which a person reads what stands on a page: columns from top to bottom, one after the other, between whatever runs
across them. After the recursive XY cut (Nagy & Seth, ICPR 1984), cutting only between columns of running text: the cells of a table
stay in their rows."""

import bisect
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.ingest.reading.bidi import runs_right_to_left
from services.ingest.reading.geometry import Box, union

_MIN_COLUMN_LINES = 3
_MIN_COLUMN_CHARS = 14
"""Characters in a column's usual line: fewer are the cells of a table."""
_MAX_GUTTERS = 16
"""Places where most lines begin: each is tried. A page has a few columns."""
_MAX_FRAGMENTS = 3000  # a page with more is a drawing or a wall of numbers
_MAX_DISORDER = 0.15
_LINE_OVERLAP = 0.5
_FAR = 1.5
"""Heights between two pieces of a line that do not follow each other: a tab stands there instead of a space."""


@dataclass(frozen=True)
class Fragment:
    """A piece of a printed line."""

    text: str
    box: Box
    """x0, y0, x1, y1 in points, on the page as it stands upright."""
    size: float = 0.0
    """Type size in points; 0 when unknown."""
    is_aside: bool = False
    """Printed across the page: a stamp in the margin, the label of an axis."""
    is_bold: bool = False
    table: int | None = None
    """Of a placeholder: which table stands here."""


def lines_in_order(fragments: Sequence[Fragment], *, trust_order: bool) -> list[Fragment]:
    """Whole lines in reading order. `trust_order`: their order is an author's and kept within a column unless it jumps about."""
    text = [fragment for fragment in fragments if not fragment.is_aside]
    asides = [fragment for fragment in fragments if fragment.is_aside]
    leftward = runs_right_to_left("".join(fragment.text for fragment in text))
    ordered: list[Fragment] = []
    for part in _columns(text, leftward=leftward) if len(text) <= _MAX_FRAGMENTS else [text]:
        in_order = trust_order and _disorder(part) <= _MAX_DISORDER
        ordered += _whole_lines(part if in_order else _from_the_top(part, leftward=leftward))
    return ordered + asides


def _columns(fragments: list[Fragment], *, leftward: bool, depth: int = 0) -> list[list[Fragment]]:
    """Parts of the page in reading order."""
    gutter = _gutter(fragments) if depth < 6 and len(fragments) >= 2 * _MIN_COLUMN_LINES else None
    if gutter is None:
        return [fragments] if fragments else []
    parts: list[list[Fragment]] = []
    across: list[Fragment] = []
    for band in _bands(fragments, gutter):
        left, right = _sides(band, gutter)
        if not _are_columns(left, right):
            across += band
            continue
        parts += [across] if across else []
        across = []
        for column in (right, left) if leftward else (left, right):
            parts += _columns(column, leftward=leftward, depth=depth + 1)
    return [*parts, across] if across else parts


def _sides(band: Sequence[Fragment], gutter: float) -> tuple[list[Fragment], list[Fragment]]:
    left = [fragment for fragment in band if fragment.box[2] <= gutter + 1]
    return left, [fragment for fragment in band if fragment.box[2] > gutter + 1 and fragment.box[0] >= gutter - 1]


def _bands(fragments: Sequence[Fragment], gutter: float) -> list[list[Fragment]]:
    """Cuts from top to bottom where something crosses the gutter, keeping the order within a band."""
    tops = sorted(fragment.box[1] for fragment in fragments if _crosses(fragment, gutter))
    bands: dict[int, list[Fragment]] = {}
    for fragment in fragments:
        middle = (fragment.box[1] + fragment.box[3]) / 2
        above = bisect.bisect_left(tops, middle)
        bands.setdefault(2 * above - (1 if _crosses(fragment, gutter) else 0), []).append(fragment)
    return [bands[key] for key in sorted(bands)]


def _crosses(fragment: Fragment, gutter: float) -> bool:
    return fragment.box[0] < gutter - 1 and fragment.box[2] > gutter + 1


def _gutter(fragments: Sequence[Fragment]) -> float | None:
    """Where to cut: the x with most running text in columns on both its sides."""
    if sum(1 for f in fragments if _visual_length(f.text) >= _MIN_COLUMN_CHARS) < 2 * _MIN_COLUMN_LINES:
        return None
    left, right = min(f.box[0] for f in fragments), max(f.box[2] for f in fragments)
    margin = 0.15 * (right - left)
    edges = Counter(round(f.box[0] / 2) * 2.0 - 3.0 for f in fragments if left + margin < f.box[0] < right - margin)
    best, most = None, 0
    for gutter in sorted(edge for edge, count in edges.most_common(_MAX_GUTTERS) if count >= _MIN_COLUMN_LINES):
        size = _columnar_chars(fragments, gutter)
        if size > most:
            best, most = gutter, size
    return best


def _columnar_chars(fragments: Sequence[Fragment], gutter: float) -> int:
    total = 0
    for band in _bands(fragments, gutter):
        left, right = _sides(band, gutter)
        if _are_columns(left, right):
            total += sum(len(fragment.text) for fragment in band)
    return total


def _are_columns(left: Sequence[Fragment], right: Sequence[Fragment]) -> bool:
    """Whether two sides are running text next to each other."""
    if not (_is_running_text(left) and _is_running_text(right)):
        return False
    top, bottom = max(_top(left), _top(right)), min(_bottom(left), _bottom(right))
    lower = min(_bottom(left) - _top(left), _bottom(right) - _top(right))
    return bottom - top > 0.5 * lower


def _is_running_text(side: Sequence[Fragment]) -> bool:
    if len(side) < _MIN_COLUMN_LINES:
        return False
    lengths = sorted(_visual_length(fragment.text) for fragment in side)
    return lengths[len(lengths) // 2] >= _MIN_COLUMN_CHARS


def _visual_length(text: str) -> int:
    """Characters, those of scripts written without spaces counted twice: they are twice as wide and say twice as much."""
    return len(text) + sum(1 for char in text if char >= "\u2e80")


def _top(fragments: Sequence[Fragment]) -> float:
    return min(fragment.box[1] for fragment in fragments)


def _bottom(fragments: Sequence[Fragment]) -> float:
    return max(fragment.box[3] for fragment in fragments)


def _disorder(fragments: Sequence[Fragment]) -> float:
    """Share of steps that go up the page."""
    steps = list(itertools.pairwise(fragments))
    ups = sum(1 for before, after in steps if after.box[3] < before.box[1])
    return max(0, ups - 1) / len(steps) if steps else 0.0


def _from_the_top(fragments: Sequence[Fragment], *, leftward: bool) -> list[Fragment]:
    rows: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda f: f.box[1] + f.box[3]):
        if rows and _on_one_line(rows[-1][0].box, fragment.box):
            rows[-1].append(fragment)
        else:
            rows.append([fragment])
    return [f for row in rows for f in sorted(row, key=lambda f: -f.box[2] if leftward else f.box[0])]


def _on_one_line(a: Box, b: Box) -> bool:
    shared = min(a[3], b[3]) - max(a[1], b[1])
    return shared > _LINE_OVERLAP * min(a[3] - a[1], b[3] - b[1])


def _whole_lines(fragments: Sequence[Fragment]) -> list[Fragment]:
    """Joins neighbours that stand on one line, side by side."""
    lines: list[_Line] = []
    for fragment in fragments:
        if not (lines and lines[-1].takes(fragment)):
            lines.append(_Line(fragment))
    return [line.whole() for line in lines]


class _Line:
    """Fragments side by side: put together at the end, or else each would cost what all before it are."""

    def __init__(self, first: Fragment) -> None:
        self._first = first
        self._texts = [first.text]
        self._length = len(first.text)
        self._box = first.box
        self._size = first.size
        self._is_bold = first.is_bold

    def takes(self, fragment: Fragment) -> bool:
        """Adds a fragment if it goes on here."""
        is_table = fragment.table is not None or self._first.table is not None
        if is_table or not (_on_one_line(self._box, fragment.box) and _side_by_side(self._box, fragment.box)):
            return False
        self._size = self._size if self._length >= len(fragment.text) else fragment.size
        gap = max(fragment.box[0] - self._box[2], self._box[0] - fragment.box[2])
        is_far = gap > _FAR * (fragment.box[3] - fragment.box[1])
        self._texts += ["\t" if is_far else " ", fragment.text]
        self._length += 1 + len(fragment.text)
        self._box = union(self._box, fragment.box)
        self._is_bold = self._is_bold and fragment.is_bold
        return True

    def whole(self) -> Fragment:
        return replace(self._first, text="".join(self._texts), box=self._box, size=self._size, is_bold=self._is_bold)


def _side_by_side(before: Box, after: Box) -> bool:
    return before[2] <= after[0] + 1 or after[2] <= before[0] + 1
