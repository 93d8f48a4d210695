"""The straight lines painted on a page: what tables are ruled with."""

import bisect
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.ingest.reading.geometry import Box
from services.ingest.reading.parsers.pages.pdf_view import PageView

_MAX_PATHS = 5000  # a drawing, not a table
_MAX_SEGMENTS = 400
_MAX_RULES = 200  # more in one direction are a hatching or a chart
_THICKNESS = 2.5
"""Points up to which a painted rectangle is a line."""
_MIN_LENGTH = 6.0
_SNAP = 2.0
_JOIN = 3.0


@dataclass(frozen=True)
class Rule:
    """A line along one axis, in points on the page as shown."""

    at: float
    """y of a horizontal line, x of a vertical one."""
    start: float
    end: float


@dataclass(frozen=True)
class Rules:
    """Lines of both directions, each in order of `at`, pieces of one line joined."""

    horizontal: tuple[Rule, ...] = ()
    vertical: tuple[Rule, ...] = ()


def read_rules(page: Any, view: PageView) -> Rules:
    """The ruling of a page. Lines inside nested forms are not looked at: their coordinates are the form's."""
    import pypdfium2  # noqa: PLC0415 - loads a native library: only in the child

    horizontal: list[Rule] = []
    vertical: list[Rule] = []
    paths = page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_PATH], max_depth=1)
    for count, path in enumerate(paths):
        if count > _MAX_PATHS:
            return Rules()
        try:
            strokes = list(_strokes(path, view))
        except pypdfium2.PdfiumError:
            continue
        for x0, y0, x1, y1 in strokes:
            if y1 - y0 <= _THICKNESS and x1 - x0 >= _MIN_LENGTH:
                horizontal.append(Rule((y0 + y1) / 2, x0, x1))
            elif x1 - x0 <= _THICKNESS and y1 - y0 >= _MIN_LENGTH:
                vertical.append(Rule((x0 + x1) / 2, y0, y1))
    rules = Rules(tuple(_snapped(horizontal)), tuple(_snapped(vertical)))
    return rules if max(len(rules.horizontal), len(rules.vertical)) <= _MAX_RULES else Rules()


def _strokes(path: Any, view: PageView) -> Iterator[Box]:
    """A thin shape as it is; the edges of any other."""
    box = view.box(*path.get_bounds())
    if min(box[2] - box[0], box[3] - box[1]) <= _THICKNESS:
        yield box
        return
    from pypdfium2 import raw  # noqa: PLC0415

    count = raw.FPDFPath_CountSegments(path)
    if not 2 <= count <= _MAX_SEGMENTS:
        return
    matrix = path.get_matrix()
    x, y = ctypes.c_float(), ctypes.c_float()
    first = last = (0.0, 0.0)
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = view.point(*matrix.on_point(x.value, y.value))
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield _between(last, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield _between(point, first)
        last = point


def _between(a: tuple[float, float], b: tuple[float, float]) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])


def _snapped(rules: list[Rule]) -> list[Rule]:
    """Pieces of one line as one; two lines closer than a hair (the edges of neighbouring cells) as one."""
    lines: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if lines and rule.at - lines[-1][0].at <= _SNAP:
            lines[-1].append(rule)
        else:
            lines.append([rule])
    joined: list[Rule] = []
    for line in lines:
        at = sum(rule.at for rule in line) / len(line)
        begun: Rule | None = None
        for rule in sorted(line, key=lambda rule: rule.start):
            if begun and rule.start <= begun.end + _JOIN:
                begun = Rule(at, begun.start, max(begun.end, rule.end))
            else:
                joined += [begun] if begun else []
                begun = Rule(at, rule.start, rule.end)
        joined += [begun] if begun else []
    return joined


class Borders:
    """Vertical rules, by their x."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules.vertical
        self._places = [rule.at for rule in rules.vertical]

    def between(self, left: float, right: float, y: float, min_gap: float) -> bool:
        """Whether one stands in the gap between two places of a line. Letters of a word leave less than `min_gap`."""
        if not self._places or right - left <= min_gap:
            return False
        among = self._rules[
            bisect.bisect_left(self._places, left - 0.5) : bisect.bisect_right(self._places, right + 0.5)
        ]
        return any(rule.start <= y <= rule.end for rule in among)
