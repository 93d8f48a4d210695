"""Which paragraphs of printed pages are headings. Pages say only how large their letters are, and forms, tables and margins have
large letters too: what is set like a heading is none where it reads like a field, a cell or a line that each page has."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.ingest.reading.page_lines import Line, furniture_key

_SIZE, _SIZE_IN_SCANS = 1.15, 1.5
"""Of a heading's letters, in that of the text. Boxes in scans are less exact."""
_BOLD_SIZE = 0.95
_MAX_BOLD_CHARS, _MAX_BOLD_LINES, _MAX_BOLD_IN_A_ROW = 80, 2, 2
_RARELY = 0.3
"""Of all characters: what is in bold more often stresses nothing."""
_MIN_PROSE_CHARS = 60
"""Below what is a heading by being bold alone: names of fields are bold too."""
_MAX_CHARS, _MAX_LINES = 120, 3
_MAX_LEVEL = 6
_MAX_IN_A_ROW = 4
"""Title, subtitle, author, date; more without text below them are the cells of a table or the labels of a drawing."""
_OFTEN_ON_A_PAGE = 3
_OFTEN_ON_PAGES, _SHARE_OF_PAGES = 3, 1 / 3
_MIN_UPRIGHT_CHARS = 4

_UNFINISHED = re.compile(r"[.,;:…。，；：]\s*$")
_WORD = re.compile(r"[^\W\d_]{2}|[\u2e80-\U0003ffff]")
_NO_WORDS = re.compile(r"https?://|www\.|\w@\w|[=<>|{}≤≥∈∪∩∑√]")
_NOT_SECTIONS = re.compile(
    r"^\W*[•◦▪‣●○■□*]|^(?:page|seite)\s+\d|^(?:fig(?:ure|\.)|abb(?:ildung|\.)|tab(?:le|elle|leau|\.)|рис\.|табл\.)\s*\d",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:(?:\d{1,3}\.)+\d*|[IVXLC]{1,6}\.)\s")
_TWO_SENTENCES = re.compile(r"\b[a-z]{4,}[.!?] [A-Z]")
_FIELD = re.compile(r"\w\s?:\s")
_FIELD_OF_A_NUMBER = re.compile(r":\s[\d\s.,/:$€£%-]{2,}$")


@dataclass(frozen=True)
class PrintedPage:
    """The paragraphs of a page in reading order; an empty one stands for the row of a table."""

    groups: Sequence[Sequence[Line]]
    exact: bool
    """Whether its lines have boxes of one height where they have letters of one size, as those of a text layer do."""


def heading_levels(pages: Sequence[PrintedPage]) -> list[list[int]]:
    """For each paragraph of each page the level of its heading: 1 for the document's largest, 0 for text."""
    body = _body_height(pages)
    marked = [[_is_set_apart(group, body, exact=page.exact) for group in page.groups] for page in pages]
    if _is_bold_rare(pages):
        for page, marks in zip(pages, marked, strict=True):
            _mark_bold(page, marks, body)
    repeated = set(_repeated(pages, marked))
    for page, marks in zip(pages, marked, strict=True):
        for at, group in enumerate(page.groups):
            marks[at] = marks[at] and not (repeated & {_text(group), furniture_key(_text(group))})
        _unmark_crowds(page, marks)
        _unmark_last(page, marks)
    sizes = sorted({_size(group) for group in _marked(pages, marked)}, reverse=True)
    levels = {size: min(at, _MAX_LEVEL) for at, size in enumerate(sizes, 1)}
    return [
        [levels[_size(group)] if mark else 0 for group, mark in zip(page.groups, marks, strict=True)]
        for page, marks in zip(pages, marked, strict=True)
    ]


def _is_bold_rare(pages: Sequence[PrintedPage]) -> bool:
    lines = [line for page in pages for line in itertools.chain.from_iterable(page.groups)]
    return sum(len(line.text) for line in lines if line.is_bold) <= _RARELY * sum(len(line.text) for line in lines)


def _mark_bold(page: PrintedPage, marks: list[bool], body_height: float) -> None:
    """Adds short paragraphs in bold type, one or two together, that stand above prose."""
    start = 0
    found = [not mark and _is_bold(group, body_height) for group, mark in zip(page.groups, marks, strict=True)]
    for is_bold, run in itertools.groupby(list(found)):
        end = start + len(list(run))
        if is_bold and end - start <= _MAX_BOLD_IN_A_ROW and end < len(marks) and _is_prose(page.groups[end]):
            marks[start:end] = [True] * (end - start)
        start = end


def _is_bold(group: Sequence[Line], body_height: float) -> bool:
    return (
        0 < len(group) <= _MAX_BOLD_LINES
        and all(line.is_bold and not line.is_divided and line.height >= _BOLD_SIZE * body_height for line in group)
        and len(_text(group)) <= _MAX_BOLD_CHARS
        and _names_a_section(_text(group))
    )


def _is_prose(group: Sequence[Line]) -> bool:
    return sum(len(line.text) for line in group) >= _MIN_PROSE_CHARS


def _body_height(pages: Sequence[PrintedPage]) -> float:
    """Of the boxes of most of the text; 0 when unknown."""
    heights: Counter[float] = Counter()
    for page in pages:
        for line in itertools.chain.from_iterable(page.groups):
            heights[_rounded(line.height)] += len(line.text)
    return max(heights, key=lambda height: heights[height], default=0.0)


def _is_set_apart(group: Sequence[Line], body_height: float, *, exact: bool) -> bool:
    """Whether a paragraph is short, larger than the text, and reads like a heading."""
    if not group or len(group) > _MAX_LINES or any(line.is_divided or _is_turned(line) for line in group):
        return False
    larger = _SIZE if exact else _SIZE_IN_SCANS
    return 0 < body_height * larger <= min(line.height for line in group) and _names_a_section(_text(group))


def _names_a_section(text: str) -> bool:
    return (
        len(text) <= _MAX_CHARS
        and bool(_WORD.search(text))
        and not any(pattern.search(text) for pattern in (_UNFINISHED, _NO_WORDS, _NOT_SECTIONS, _TWO_SENTENCES))
        and len(_FIELD.findall(text)) < 2
        and not _FIELD_OF_A_NUMBER.search(text)
    )


def _is_turned(line: Line) -> bool:
    """Whether it is printed up or down the page: a note in the margin, the label of an axis."""
    return line.box is not None and len(line.text) >= _MIN_UPRIGHT_CHARS and line.height > line.box[2] - line.box[0]


def _repeated(pages: Sequence[PrintedPage], marked: Sequence[Sequence[bool]]) -> Iterator[str]:
    """Answers that a form has again and again, and what stands at the edges of pages."""
    at_edges: Counter[str] = Counter()
    for page, marks in zip(pages, marked, strict=True):
        texts = Counter(_text(group) for group, mark in zip(page.groups, marks, strict=True) if mark)
        yield from (text for text, count in texts.items() if count >= _OFTEN_ON_A_PAGE)
        ends = {at for at in (0, len(marks) - 1) if marks and marks[at]}
        at_edges.update({furniture_key(_text(page.groups[at])) for at in ends})
    often = max(_OFTEN_ON_PAGES, _SHARE_OF_PAGES * len(pages))
    yield from (key for key, count in at_edges.items() if count >= often)


def _unmark_crowds(page: PrintedPage, marks: list[bool]) -> None:
    """Leaves of many in a row the largest, if it is the only one of its size: the title above them."""
    start = 0
    for is_marked, run in itertools.groupby(list(marks)):
        end = start + len(list(run))
        if is_marked and end - start > _MAX_IN_A_ROW:
            sizes = [_size(group) for group in page.groups[start:end]]
            largest = max(sizes)
            marks[start:end] = [size == largest and sizes.count(largest) == 1 for size in sizes]
        start = end


def _unmark_last(page: PrintedPage, marks: list[bool]) -> None:
    """Takes what ends a page of text for a line at its foot, unless it is numbered: a heading has something below it."""
    upright = [at for at, group in enumerate(page.groups) if not any(map(_is_turned, group))]
    last = upright[-1] if upright else 0
    if upright and marks[last] and not all(marks) and not _NUMBERED.match(_text(page.groups[last])):
        marks[last] = False


def _marked(pages: Sequence[PrintedPage], marked: Sequence[Sequence[bool]]) -> Iterator[Sequence[Line]]:
    for page, marks in zip(pages, marked, strict=True):
        yield from itertools.compress(page.groups, marks)


def _text(group: Sequence[Line]) -> str:
    return " ".join(line.text for line in group)


def _size(group: Sequence[Line]) -> float:
    return _rounded(group[0].height)


def _rounded(height: float) -> float:
    return round(height * 2) / 2
