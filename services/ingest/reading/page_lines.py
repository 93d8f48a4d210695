"""Pages to paragraphs: drops what is printed on every page, then joins lines that belong together. Works on lines with their
places, so that a paragraph still knows where it stands."""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
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
_BESIDE_PAGE_NUMBER = re.compile(r"^\d{1,4}\s|\s\d{1,4}$")
_LIST_ITEM = re.compile(r"^\s*(?:[•◦▪‣●○■□–—*-]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+")
_SENTENCE_END = re.compile(r"[.!?:;…。！？]['\"”’)\]]*\s*$")


_CONTINUES = re.compile(r"^[^\w\s]*[^\W\d_A-Z]|^[,.;:)\]]")
_NUMBER_WORD = re.compile(r"^[\d.,%/()+-]*\d[\d.,%/()+-]*$")
_MIN_NUMBERED_LINES = 5
_MIN_GAPS = 4
_SAME_SIZE = 1.12
_SIMILAR_SIZE = 1.4
"""Descenders, accents and a slanted scan make boxes of one type size differ by this."""
_MAX_LINE_NUMBER_DIGITS = 6
_TITLE_SIZE = 1.3
_SHARE_OF_PAGES, _SHARE_OF_SIDES = 0.5, 2 / 3
_MIN_SIDES = 3
_MAX_NUMBERING_CHARS = 40
_NUMBERING = re.compile(
    r"^\W*(?:(?:chapter|section|part|article|appendix|kapitel|abschnitt|teil|artikel|anhang|chapitre|partie|глава|раздел)\s)?"
    r"(?:[\d.]+|[IVXLC]{1,6}|[^\W\d_])\W*$",
    re.IGNORECASE,
)


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
    is_bold: bool = False
    is_divided: bool = False
    """Whether it is of several pieces far apart, other than a number and what it counts."""

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
            lines.append(Line(text, block.page, box, place, part, start in block.bold_starts, _is_divided(text)))
        start += len(text) + 1
    return lines


def _is_divided(text: str) -> bool:
    first, *others = text.strip().split("\t")
    is_number = len(first) <= _MAX_NUMBERING_CHARS and bool(_NUMBERING.match(first))
    return len(others) > 1 or (len(others) == 1 and not is_number)


def without_page_furniture(pages: Sequence[list[Line]]) -> list[list[Line]]:
    """The pages without running headers, footers and page numbers: lines near an edge that most pages share but for digits."""
    if len(pages) < _MIN_PAGES:
        return [list(page) for page in pages]
    furniture = _Furniture.of(pages)
    kept = [_kept(page, at % 2, furniture) for at, page in enumerate(pages)]
    return kept if any(kept) else [list(page) for page in pages]  # what is all there is frames nothing


@dataclass(frozen=True)
class _Furniture:
    """What the edges of pages have in common."""

    keys: tuple[frozenset[str], frozenset[str]]
    """Of lines that most pages have, or most of those on this side: the heads of left and right pages may differ."""
    heights: Mapping[str, float]
    """Of the smallest of such lines."""
    is_numbered: bool

    @classmethod
    def of(cls, pages: Sequence[list[Line]]) -> "_Furniture":
        edges = [_edges(page) for page in pages]
        found = [{furniture_key(line.text) for line in lines} for lines in edges]
        everywhere = _common(found, _MIN_PAGES, _SHARE_OF_PAGES)
        sides = [_common(found[side::2], _MIN_SIDES, _SHARE_OF_SIDES) for side in (0, 1)]
        heights: dict[str, float] = {}
        for line in itertools.chain.from_iterable(edges):
            key = furniture_key(line.text)
            heights[key] = min(line.height, heights.get(key, line.height))
        numbered = sum(1 for lines in edges if any(_PAGE_NUMBER.match(line.text) for line in lines))
        return cls(
            (everywhere | sides[0], everywhere | sides[1]),
            heights,
            numbered >= max(_MIN_PAGES, _SHARE_OF_PAGES * len(pages)),
        )

    def has(self, line: Line, side: int) -> bool:
        """Whether a line at the edge is one of them. A title that later pages repeat in small letters is none."""
        key = furniture_key(line.text)
        is_title = 0 < _TITLE_SIZE * self.heights.get(key, 0.0) <= line.height
        return (
            (key in self.keys[side] and not is_title)
            or bool(_EXPLICIT_PAGE_NUMBER.match(line.text))
            or (self.is_numbered and bool(_PAGE_NUMBER.match(line.text)))
        )


def _common(found: Sequence[set[str]], least: int, share: float) -> frozenset[str]:
    counts = Counter(itertools.chain.from_iterable(found))
    return frozenset(key for key, count in counts.items() if count >= max(least, share * len(found)))


def _kept(page: list[Line], side: int, furniture: _Furniture) -> list[Line]:
    dropped = {id(line) for line in _edges(page) if furniture.has(line, side)}
    if dropped:
        lines = _from_the_top(page)
        dropped |= _further_lines(lines, dropped, furniture, side)
        dropped -= _running_text(lines, dropped)
    return [line for line in page if id(line) not in dropped]


def _further_lines(lines: Sequence[Line], dropped: set[int], furniture: _Furniture, side: int) -> set[int]:
    """Lines of furniture that reaches deeper into this page than into others."""
    further: set[int] = set()
    for outwards in (lines, lines[::-1]):
        for outer, line in itertools.pairwise(outwards):
            goes_on = id(outer) in dropped or id(outer) in further
            if goes_on and any(map(str.isalpha, line.text)) and furniture.has(line, side):
                further.add(id(line))
    return further


def _running_text(lines: Sequence[Line], dropped: set[int]) -> set[int]:
    """Lines that would be dropped, though they are the first or last full lines of a paragraph that stays."""
    full, gap_limit = full_width(lines), _gap_limit(lines)
    kept: set[int] = set()
    for inwards in (lines, lines[::-1]):
        for inner, line in itertools.pairwise(inwards):
            stays = id(inner) not in dropped or id(inner) in kept
            if stays and id(line) in dropped and _are_one_text(inner, line, 0.75 * full, gap_limit):
                kept.add(id(line))
    return kept


def _are_one_text(a: Line, b: Line, full: float, gap_limit: float) -> bool:
    if not (a.box and b.box) or min(len(a.text), len(b.text)) < full or _different_size(a, b, _SAME_SIZE):
        return False
    gap = max(a.box[1], b.box[1]) - min(a.box[3], b.box[3])
    return -0.5 * a.height < gap <= gap_limit and abs(a.box[0] - b.box[0]) < 2 * a.height


def _from_the_top(page: list[Line]) -> list[Line]:
    if page and all(line.box for line in page):
        return sorted(page, key=lambda line: line.box[1] if line.box else 0.0)
    return page


def _edges(page: list[Line]) -> list[Line]:
    """The lines nearest to the top and the bottom: by place where it is known (a footer may be first in the file)."""
    page = _from_the_top(page)
    count = min(_EDGE_LINES, max(1, len(page) // 4))
    return page if len(page) <= 2 * count else page[:count] + page[-count:]


def furniture_key(text: str) -> str:
    """What lines of several pages have in common: without digits, spaces and signs, in which recognised pages differ."""
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
    if before.is_bold != line.is_bold and (ended if line.is_bold else _is_short(before, full)):
        return True
    goes_on = not ended and (before.text.endswith(",") or bool(_CONTINUES.match(line.text)))
    if before.box and line.box:
        gap = line.box[1] - before.box[3]
        if gap < -1.5 * max(before.height, line.height):  # the next column, or a note
            return not goes_on
        if before.height > same_size * line.height and _is_short(before, full):
            return True  # a heading, whatever the text below it begins with
        # Boxes hug their letters, so that the gap between two lines varies with what hangs down and sticks up.
        in_mid_line = not ended and len(before.text) >= 0.75 * full
        if gap > gap_limit + (0.45 * before.height if in_mid_line else 0) or _different_size(before, line, same_size):
            is_head = before.is_divided and bool(_BESIDE_PAGE_NUMBER.search(before.text))
            return not goes_on or is_head or gap > 3 * gap_limit
    return ended and len(before.text) < 0.75 * full


def _is_short(line: Line, full: float) -> bool:
    """Whether a line ends where the author ended it."""
    return len(line.text) < 0.75 * full and line.text[-1:] not in ",-"


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
