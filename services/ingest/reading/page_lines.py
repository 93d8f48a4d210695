"""Pages to paragraphs: drops what is printed on every page, then joins lines that belong together. Works on lines with their
places, so that a paragraph still knows where it stands."""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from services.ingest.reading.geometry import Box, turned_box
from services.ingest.reading.models import Block

_EDGE_LINES = 3
_MIN_PAGES = 2
_PAGE_NUMBER = re.compile(
    r"^[\W_]*(?:page|seite|p\.|стр\.?)?\s*(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:of|von|de|/|-)\s*\d{1,4})?[\W_]*$",
    re.IGNORECASE,
)
_EXPLICIT_PAGE_NUMBER = re.compile(
    r"^[\W_]*(?:page|seite)\s*\d{1,4}(?:\s*(?:of|von|/)\s*\d{1,4})?[\W_]*$", re.IGNORECASE
)
_LIST_ITEM = re.compile(r"^\s*(?:[•◦▪‣●○■□–—*-]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+")
_SENTENCE_END = re.compile(r"[.!?:;…。！？]['\"”’)\]]*\s*$")


_CONTINUES = re.compile(r"^[^\w\s]*[^\W\d_A-Z]|^[,.;:)\]]")
_NUMBER_WORD = re.compile(r"^[\d.,%/()+-]*\d[\d.,%/()+-]*$")
_MIN_NUMBERED_LINES = 5
_MIN_GAPS = 4
_SAME_SIZE = 1.12
_SIMILAR_SIZE = 1.4
"""Descenders, accents and a slanted scan make boxes of one type size differ by this."""
_HEADING_SIZE, _HEADING_SIZE_OF_SCANS = 1.15, 1.5
_MAX_HEADING_CHARS, _MAX_HEADING_LINES = 120, 3
_MAX_LEVEL = 6
_MAX_LINE_NUMBER_DIGITS = 6
_NO_HEADING = re.compile(r"[.,;:…。，；：]\s*$")


@dataclass(frozen=True)
class Line:
    """A printed line."""

    text: str
    page: int
    box: Box | None = None
    """x0, y0, x1, y1 in points on the page as it stands upright, or None where the place is unknown."""
    place: Box | None = None
    """The same on the page as it is shown."""
    part: int = 0
    """Which of the page's blocks it is of: a table may stand between two."""

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1] if self.box else 0.0


def lines_of(block: Block, part: int = 0) -> list[Line]:
    """A page's lines in reading order, empty ones left out."""
    places = {line.start: line.box for line in block.lines}
    lines = []
    start = 0
    for text in block.text.split("\n"):
        if text.strip():
            place = places.get(start)
            box = turned_box(place, block.turn) if place else None
            lines.append(Line(text, block.page, box, place, part))
        start += len(text) + 1
    return lines


def without_page_furniture(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without running headers, footers and page numbers: lines near an edge that most pages share but for digits."""
    if len(pages) < _MIN_PAGES:
        return [list(page) for page in pages]
    seen = Counter(key for page in pages for key in {_furniture_key(line.text) for line in _edges(page)})
    numbered = sum(1 for page in pages if any(_PAGE_NUMBER.match(line.text) for line in _edges(page)))
    needed = max(_MIN_PAGES, 0.5 * len(pages))
    kept = [_kept(page, seen, needed, numbered >= needed) for page in pages]
    return kept if any(kept) else [list(page) for page in pages]  # what is all there is frames nothing


def _kept(page: list[Line], seen: "Counter[str]", needed: float, numbered: bool) -> list[Line]:
    edges = {id(line) for line in _edges(page)}
    return [
        line
        for line in page
        if id(line) not in edges
        or not (
            seen[_furniture_key(line.text)] >= needed
            or _EXPLICIT_PAGE_NUMBER.match(line.text)
            or (numbered and _PAGE_NUMBER.match(line.text))
        )
    ]


def _edges(page: list[Line]) -> list[Line]:
    """The lines nearest to the top and the bottom: by place where it is known (a footer may be first in the file)."""
    if page and all(line.box for line in page):
        page = sorted(page, key=lambda line: line.box[1] if line.box else 0.0)
    count = min(_EDGE_LINES, max(1, len(page) // 4))
    return page if len(page) <= 2 * count else page[:count] + page[-count:]


def _furniture_key(text: str) -> str:
    # Without digits, spaces and signs: recognised pages differ in these.
    letters = re.sub(r"[\W\d_]+", "", text.lower())
    return letters or re.sub(r"\d+", "#", "".join(text.split()))


def paragraphs(lines: Sequence[Line], *, exact: bool = False) -> list[list[Line]]:
    """Groups of lines that belong to one paragraph, by gaps, indents, type size and sentence ends. `exact`: lines of one type size
    have boxes of one height, as those of a text layer have."""
    if not lines:
        return []
    gap_limit = _gap_limit(lines)
    full = full_width(lines)
    groups = [[lines[0]]]
    for before, line in itertools.pairwise(lines):
        if _starts_paragraph(before, line, gap_limit, full, _SAME_SIZE if exact else _SIMILAR_SIZE):
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def _starts_paragraph(before: Line, line: Line, gap_limit: float, full: float, same_size: float) -> bool:
    ended = bool(_SENTENCE_END.search(before.text))
    goes_on = not ended and (before.text.endswith(",") or bool(_CONTINUES.match(line.text)))
    if before.box and line.box:
        gap = line.box[1] - before.box[3]
        if gap < -1.5 * max(before.height, line.height):  # the next column, or a note
            return not goes_on
        # Boxes hug their letters, so that the gap between two lines varies with what hangs down and sticks up.
        in_mid_line = not ended and len(before.text) >= 0.75 * full
        if gap > gap_limit + (0.45 * before.height if in_mid_line else 0) or _different_size(before, line, same_size):
            return not goes_on or gap > 3 * gap_limit
    return ended and len(before.text) < 0.75 * full


def _different_size(before: Line, line: Line, same_size: float) -> bool:
    low, high = sorted((before.height, line.height))
    return low > 0 and high > same_size * low


def _gap_limit(lines: Sequence[Line]) -> float:
    gaps = [
        line.box[1] - before.box[3]
        for before, line in itertools.pairwise(lines)
        if before.box and line.box and 0 <= line.box[1] - before.box[3] < 100
    ]
    heights = [line.height for line in lines if line.box]
    if not gaps or not heights:
        return float("inf")
    height, usual = statistics.median(heights), statistics.median(gaps)
    if len(gaps) < _MIN_GAPS:  # a page of a few lines: the gap under a heading may be all there is
        usual = min(usual, 0.6 * height)
    return usual + 0.45 * height


def full_width(lines: Sequence[Line]) -> float:
    """Characters in a full line of these: the 80th percentile."""
    lengths = sorted(len(line.text) for line in lines)
    return lengths[int(0.8 * (len(lengths) - 1))]


def without_line_numbers(page: Sequence[Line]) -> list[Line]:
    """The page without a column of line numbers, as transcripts and drafts have it: 1, 2, 3 … on lines of their own."""
    kept: list[Line] = []
    run: list[Line] = []
    for line in page:
        number = line_number(line.text)
        if number is None or (run and number != int(run[-1].text) + 1):
            kept.extend(run if len(run) < _MIN_NUMBERED_LINES else [])
            run = []
        (kept if number is None else run).append(line)
    return kept + (run if len(run) < _MIN_NUMBERED_LINES else [])


def line_number(text: str) -> int | None:
    """The number that a line consists of, if it can be that of a line."""
    return int(text) if len(text) <= _MAX_LINE_NUMBER_DIGITS and text.isdecimal() else None


def _is_tabular(text: str) -> bool:
    words = text.split()
    return len(words) > 3 and sum(1 for word in words if _NUMBER_WORD.match(word)) > 0.4 * len(words)


def joint(before: str, after: str, full: float) -> str:
    """What stands between two lines of a paragraph: a space where the line was merely full, else a line break."""
    if len(before) < 0.6 * full or _LIST_ITEM.match(after) or _is_tabular(before) or _is_tabular(after):
        return "\n"
    if before[-1:] >= "\u2e80" and after[:1] >= "\u2e80" and not ("\uac00" <= before[-1:] <= "\ud7a3"):
        return ""  # Chinese and Japanese are written without spaces
    return " "


@dataclass(frozen=True)
class Headings:
    """Finds headings by their type size. Levels are those of the document: 1 for its largest headings."""

    body_height: float
    """Of the boxes of most of the text; 0 when unknown."""
    heights: tuple[float, ...] = ()
    """Of headings, the largest first."""

    @classmethod
    def of(cls, groups: Sequence[tuple[Sequence[Line], bool]]) -> "Headings":
        """Of a document's paragraphs, each with whether its boxes are exact."""
        sizes: Counter[float] = Counter()
        for group, _ in groups:
            for line in group:
                sizes[_rounded(line.height)] += len(line.text)
        body = max(sizes, key=lambda height: sizes[height], default=0.0)
        without_levels = cls(body)
        found = {_rounded(group[0].height) for group, exact in groups if without_levels.is_heading(group, exact=exact)}
        return cls(body, tuple(sorted(found, reverse=True)))

    def is_heading(self, group: Sequence[Line], *, exact: bool) -> bool:
        """Whether a paragraph is short, larger than the text and no sentence."""
        text = " ".join(line.text for line in group)
        height = min(line.height for line in group)
        larger = _HEADING_SIZE if exact else _HEADING_SIZE_OF_SCANS
        return (
            0 < self.body_height * larger <= height
            and len(group) <= _MAX_HEADING_LINES
            and 1 < len(text) <= _MAX_HEADING_CHARS
            and any(char.isalpha() for char in text)
            and not _NO_HEADING.search(text)
        )

    def level(self, group: Sequence[Line]) -> int:
        """1 to 6."""
        height = _rounded(group[0].height)
        return 1 + sum(1 for larger in self.heights[: _MAX_LEVEL - 1] if larger > height)


def _rounded(height: float) -> float:
    return round(height * 2) / 2
