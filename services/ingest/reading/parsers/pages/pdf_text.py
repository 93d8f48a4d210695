"""A page's text layer as printed fragments of lines: PDFium's characters, grouped by where they stand."""

import ctypes
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from services.ingest.reading.bidi import FIRST_RIGHT_TO_LEFT, Glyph, is_right_to_left, logical_text
from services.ingest.reading.geometry import Box, turned_box
from services.ingest.reading.parsers.pages.pdf_rules import Borders, Rules
from services.ingest.reading.parsers.pages.pdf_view import PageView
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.reading_order import Fragment

_HYPHENS = frozenset("\x02\ufffe")  # PDFium's marks for a hyphen at a line's end
# Ems between what stands side by side, in columns and cells; justified lines stay below.
_CELL_GAP = 1.0
_WORD_GAP = 0.15
_PIECE_GAP = 0.35
_BAND_POINTS = 8.0
_MAX_NEARBY = 60  # runs in a band that a run is compared with: a line has a dozen
_BASELINE_SHIFT = 0.5  # ems: more than a superscript is raised, less than the next line is lower
_SHIFTED_SIZE, _SHIFTED_BY = 0.87, 0.12
"""Of a superscript and a subscript: the most of its type size, and by how much it is raised or lowered, in that of the text before
it. ReportLab sets them at 0.8, browsers at 0.83."""
_SHIFTED_SIGNS = frozenset("+-−–()[],*")
_UNNAMED = "\ufffd"
_CONSONANTS = frozenset("bcdfghjklmnpqrstvwxz")
_WIDE_LIGATURE, _TALL = (0.65, 1.0), 0.55
"""Ems of the ink of `ffi`: 0.76 to 0.93 wide in Computer Modern, upright and in italics, and 0.7 high."""
_BOLD_WEIGHT = 600
_BOLD_FONT = re.compile(rb"bold|(?:[-, ]|^arial)black|[-, ](?:heavy|demi|medi$)|CMBX", re.IGNORECASE)
_ASCENT, _DESCENT = 0.75, 0.2  # ems around the baseline that a line's letters take


@dataclass(frozen=True)
class TextLayer:
    """What a page's text layer says."""

    fragments: tuple[Fragment, ...]
    """In the order of the file; boxes on the page as it stands upright."""
    turn: int
    """Degrees clockwise by which the page as shown has to be turned for most of its text to stand upright."""
    unmapped_count: int
    """Glyphs whose character the file does not say."""


class _Char(NamedTuple):
    glyph: Glyph
    baseline: float
    turn: int
    number: int = -1
    """In PDFium's text page; -1 of a space that is not there."""


@dataclass
class _Run:
    """Characters that follow each other on one line, in upright coordinates."""

    turn: int
    baseline: float
    chars: deque[_Char] = field(default_factory=deque)
    x0: float = math.inf
    x1: float = -math.inf
    size: float = 0.0
    is_leftward: bool = False
    """Whether it has letters that run from right to left."""

    def add(self, char: _Char) -> None:
        self.chars.append(char)
        text, (x0, _, x1, _), _, size = char.glyph
        if text.isspace():
            return
        self.x0 = min(x0, self.x0)
        self.x1 = max(x1, self.x1)
        self.size = max(size, self.size)
        if text >= FIRST_RIGHT_TO_LEFT and is_right_to_left(text):
            self.is_leftward = True

    def take(self, run: "_Run") -> None:
        """Adds another run of the same line, on whichever side it stands: at the cost of that run, however long this one is."""
        if self.x0 <= run.x0:
            self.chars.extend((*self._space_to(run), *run.chars))
        else:
            self.chars.extendleft(reversed((*run.chars, *run._space_to(self))))
        self.baseline = self.baseline if self.size >= run.size else run.baseline
        self.x0, self.x1 = min(self.x0, run.x0), max(self.x1, run.x1)
        self.size = max(self.size, run.size)
        self.is_leftward |= run.is_leftward

    def _space_to(self, after: "_Run") -> list[_Char]:
        last = self.chars[-1]
        if last.glyph.char.isspace() or after.x0 - self.x1 < _WORD_GAP * max(self.size, after.size):
            return []
        glyph = Glyph(" ", (self.x1, last.glyph.box[1], after.x0, last.glyph.box[3]), self.x1, self.size)
        return [_Char(glyph, self.baseline, self.turn)]

    def gap_to(self, x0: float, x1: float) -> float:
        """How far apart they stand; negative when they overlap."""
        return max(x0 - self.x1, self.x0 - x1)


def read_text_layer(text_page: Any, view: PageView, rules: Rules) -> TextLayer:
    """Reads PDFium's text page. No fragment reaches across a vertical rule: that is the border of a cell."""
    reader = _Reader(text_page, view)
    borders = Borders(rules)
    runs = _joined(_runs(reader.chars(), borders), borders)
    for run in runs if reader.unmapped_count else ():
        run.chars = deque(_with_wide_ligatures(run.chars))
    turn = _main_turn(runs)
    # What is printed across the page comes last: a stamp in the margin, the label of an axis.
    runs.sort(key=lambda run: run.turn != turn)
    fragments = (_fragment(run, turn, is_bold=reader.is_bold(run)) for run in runs)
    return TextLayer(tuple(fragment for fragment in fragments if fragment), turn, reader.unmapped_count)


class _Reader:
    """Asks PDFium for one character after the other: half of the time that a page takes, hence the shortcut for upright text."""

    def __init__(self, text_page: Any, view: PageView) -> None:
        import pypdfium2.raw  # noqa: PLC0415 - loads a native library: only in the child

        self._raw: Any = pypdfium2.raw
        self._text_page = text_page.raw
        self._count: int = text_page.count_chars()
        self._view = view
        self._numbers = tuple(ctypes.c_double() for _ in range(6))  # where PDFium writes its answers
        self._matrix = pypdfium2.raw.FS_MATRIX()
        self._font_name, self._font_flags = ctypes.create_string_buffer(256), ctypes.c_int()
        self._styles: dict[tuple[float, float, float, float], tuple[int, float]] = {}
        self.unmapped_count = 0

    def chars(self) -> Iterator[_Char | None]:
        """Characters in the order of the file; None for a line break."""
        raw, text_page = self._raw, self._text_page
        for index in range(self._count):
            code = raw.FPDFText_GetUnicode(text_page, index)
            if code in (0x0A, 0x0D):
                yield None
                continue
            is_unmapped = raw.FPDFText_HasUnicodeMapError(text_page, index) == 1 or not code
            self.unmapped_count += is_unmapped
            yield self._char(index, _UNNAMED if is_unmapped or 0xD800 <= code <= 0xDFFF else chr(code))

    def _char(self, index: int, char: str) -> _Char:
        raw, text_page, view = self._raw, self._text_page, self._view
        left, right, bottom, top, x, y = numbers = self._numbers
        raw.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
        raw.FPDFText_GetCharOrigin(text_page, index, x, y)
        x0, x1, y1, y0, pen_x, pen_y = [number.value for number in numbers]
        turn, scale = self._style(index)
        size = abs(raw.FPDFText_GetFontSize(text_page, index)) * scale
        if turn == 0 and view.rotation == 0:
            box = (x0 - view.left, view.top - y0, x1 - view.left, view.top - y1)
            return _Char(Glyph(char, box, pen_x - view.left, size), view.top - pen_y, 0, index)
        pen = view.point(pen_x, pen_y)
        origin = turned_box((*pen, *pen), turn)
        return _Char(Glyph(char, turned_box(view.box(x0, y1, x1, y0), turn), origin[0], size), origin[1], turn, index)

    def is_bold(self, run: _Run) -> bool:
        """Whether a run begins and ends in bold type."""
        ends = (run.chars[0].number, run.chars[-1].number)
        return all(at >= 0 and self._is_bold_at(at) for at in ends)

    def _is_bold_at(self, index: int) -> bool:
        if self._raw.FPDFText_GetFontWeight(self._text_page, index) >= _BOLD_WEIGHT:
            return True
        name = self._font_name
        size = self._raw.FPDFText_GetFontInfo(self._text_page, index, name, len(name), self._font_flags)
        return 0 < size <= len(name) and bool(_BOLD_FONT.search(name.value))

    def _style(self, index: int) -> tuple[int, float]:
        """Degrees clockwise that put a character upright, and how much its type size is enlarged."""
        matrix = self._matrix
        if not self._raw.FPDFText_GetMatrix(self._text_page, index, matrix):
            return 0, 1.0
        key = (matrix.a, matrix.b, matrix.c, matrix.d)
        style = self._styles.get(key)
        if style is None:
            pen, ahead = self._view.point(0.0, 0.0), self._view.point(matrix.a, matrix.b)
            angle = math.degrees(math.atan2(ahead[1] - pen[1], ahead[0] - pen[0]))
            style = self._styles[key] = -90 * round(angle / 90) % 360, math.hypot(matrix.c, matrix.d) or 1.0
        return style


def _runs(chars: Iterable[_Char | None], borders: Borders) -> Iterator[_Run]:
    run: _Run | None = None
    for char in chars:
        if run and (char is None or _breaks(run, char, borders)):
            yield run
            run = None
        if char is None or (run is None and char.glyph.char.isspace()):
            continue
        run = run or _Run(char.turn, char.baseline)
        run.add(char)
    if run:
        yield run


def _breaks(run: _Run, char: _Char, borders: Borders) -> bool:
    """Whether a character stands elsewhere: on another line, behind a wide gap, turned another way."""
    if char.glyph.char.isspace():
        return False
    x0, _, x1, _ = char.glyph.box
    em = max(char.glyph.size, run.size)
    return (
        char.turn != run.turn
        or run.chars[-1].glyph.char in _HYPHENS
        or abs(char.baseline - run.baseline) > _BASELINE_SHIFT * em
        or run.gap_to(x0, x1) > _CELL_GAP * em
        or (char.turn == 0 and borders.between(min(run.x1, x1), max(run.x0, x0), char.baseline, _WORD_GAP * em))
    )


def _joined(runs: Iterable[_Run], borders: Borders) -> list[_Run]:
    """Puts together what the file paints in pieces: a raised number in a line, words of another script in a right-to-left line."""
    joined: list[_Run] = []
    by_height: dict[int, list[int]] = {}  # places in `joined`, by the band of the page that the run stands in
    for run in runs:
        band = int(run.baseline // _BAND_POINTS)
        nearby = sorted(
            {at for key in range(band - 2, band + 3) for at in by_height.get(key, [])[-_MAX_NEARBY:]}, reverse=True
        )
        at = next((at for at in nearby if _adjoins(joined[at], run, borders)), None)
        if at is None:
            by_height.setdefault(band, []).append(len(joined))
            joined.append(run)
        else:
            joined[at].take(run)
    return joined


def _adjoins(run: _Run, other: _Run, borders: Borders) -> bool:
    em = max(run.size, other.size)
    limit = _CELL_GAP if run.is_leftward or other.is_leftward else _PIECE_GAP
    return (
        run.turn == other.turn
        and abs(run.baseline - other.baseline) < _BASELINE_SHIFT * em
        and -_PIECE_GAP * em < run.gap_to(other.x0, other.x1) < limit * em
        and not (run.turn == 0 and borders.between(min(run.x1, other.x1), max(run.x0, other.x0), run.baseline, 0))
    )


def _main_turn(runs: Sequence[_Run]) -> int:
    counts: dict[int, int] = {}
    for run in runs:
        counts[run.turn] = counts.get(run.turn, 0) + len(run.chars)
    return max(counts, key=lambda turn: (counts[turn], turn == 0), default=0)


def _with_wide_ligatures(chars: Iterable[_Char]) -> list[_Char]:
    """The characters of a run with each unnamed glyph that must be `ffi`: within a word in small letters, before a consonant, as
    high as an f and as wide as three letters. An m is lower, a dash too; `ffl` stands before vowels only."""
    named = list(chars)
    for at in range(1, len(named) - 1):
        glyph, before, after = (named[place].glyph for place in (at, at - 1, at + 1))
        if glyph.char != _UNNAMED or not before.char.islower() or after.char not in _CONSONANTS:
            continue
        x0, y0, x1, y1 = glyph.box
        if (
            _WIDE_LIGATURE[0] * glyph.size <= x1 - x0 <= _WIDE_LIGATURE[1] * glyph.size
            and y1 - y0 >= _TALL * glyph.size
        ):
            named[at] = named[at]._replace(glyph=glyph._replace(char="\ufb03"))
    return named


def _fragment(run: _Run, turn: int, *, is_bold: bool) -> Fragment | None:
    glyphs = [char.glyph for char in run.chars]
    text = logical_text(glyphs) if run.is_leftward else _with_shifted_digits(run.chars)
    if not text.strip() or run.x0 > run.x1:
        return None
    box = _line_box(run)
    if run.turn != turn:
        box = turned_box(turned_box(box, -run.turn), turn)
    return Fragment(text.strip(), box, round(run.size, 1), is_aside=run.turn != turn, is_bold=is_bold)


def _with_shifted_digits(chars: Iterable[_Char]) -> str:
    """The text of a run. Small digits that stand raised or lowered behind a number are another: the mark of a footnote, a power."""
    return with_shifted([(_shown(char.glyph.char), shift) for char, shift in _with_shift(chars)])


def _with_shift(chars: Iterable[_Char]) -> Iterator[tuple[_Char, int]]:
    """Each character with 1 where it is one that stands smaller and higher than a number before it, -1 where lower, else 0."""
    last: _Char | None = None
    for char in chars:
        shift = 0
        if last is not None and last.glyph.char.isdigit() and char.glyph.size <= _SHIFTED_SIZE * last.glyph.size:
            rise = last.baseline - char.baseline
            if abs(rise) > _SHIFTED_BY * last.glyph.size and (
                char.glyph.char.isdigit() or char.glyph.char in _SHIFTED_SIGNS
            ):
                shift = 1 if rise > 0 else -1
        yield char, shift
        if not shift:
            last = char


def _shown(char: str) -> str:
    return "-" if char in _HYPHENS else char


def _line_box(run: _Run) -> Box:
    """As high as the type, so that lines of one size have boxes of one height; as high as the ink where the type size is wrong."""
    boxes = [char.glyph.box for char in run.chars if not char.glyph.char.isspace()]
    top, bottom = min(box[1] for box in boxes), max(box[3] for box in boxes)
    if 0.3 * run.size <= bottom - top <= 1.8 * run.size:
        top, bottom = run.baseline - _ASCENT * run.size, run.baseline + _DESCENT * run.size
    return run.x0, top, run.x1, bottom
