"""How near the reading of a page comes to its golden text: text, tables, headings, order."""

import difflib
import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from services.ingest.reading.models import BlockKind, CleanDocument

_ROWS = (BlockKind.ROW, BlockKind.TABLE)


@dataclass(frozen=True)
class Page:
    """What is on a page, read or golden: lines in order, rows of tables as cells, headings with their levels."""

    lines: tuple[str, ...]
    cells: tuple[str, ...]
    headings: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Nearness:
    """From 0 to 1; None where the page has nothing of the kind."""

    text: float
    cells: float | None
    headings: float | None
    order: float | None


def page_of_golden(text: str) -> Page:
    """Reads a golden page: a line a heading (#), a row of a table (| cell; cell), or a line of text."""
    lines: list[str] = []
    cells: list[str] = []
    headings: list[tuple[int, str]] = []
    for line in text.splitlines():
        words = line.lstrip("#| ").strip()
        if line.startswith("#"):
            headings.append((len(line) - len(line.lstrip("#")), words))
        elif line.startswith("|"):
            cells += words.split("; ")
        lines += [words] if words else []
    return Page(tuple(lines), tuple(cells), tuple(headings))


def page_of_document(document: CleanDocument) -> Page:
    """What ingestion read, headers of messages in front of their texts."""
    sections = [each for each in document.sections if each.kind is not BlockKind.CODE]
    named = [(each.start, tuple(name for name, at in each.path if at < 0)) for each in sections]
    above = {start: names for (_, before), (start, names) in itertools.pairwise([(0, ()), *named]) if names != before}
    texts = [(section, document.text[section.start : section.end]) for section in document.sections]
    lines = (line.strip() for each, text in texts for line in (*above.pop(each.start, ()), *text.split("\n")))
    cells = (cell for section, text in texts if section.kind in _ROWS for cell in text.split("; "))
    headings = ((max(section.level, 1), text) for section, text in texts if section.kind is BlockKind.HEADING)
    return Page(tuple(filter(None, lines)), tuple(cells), tuple(headings))


def nearness(read: Page, golden: Page) -> Nearness:
    """Compares a page that was read with the golden one."""
    return Nearness(
        text=_similarity(_words(read.lines), _words(golden.lines)),
        cells=_f1(read.cells, golden.cells) if golden.cells or read.cells else None,
        headings=_f1(read.headings, golden.headings) if golden.headings or read.headings else None,
        order=_order(read.lines, golden.lines),
    )


def _words(lines: Iterable[str]) -> list[str]:
    return [word for line in lines for word in line.split()]


def _similarity(read: Sequence[str], golden: Sequence[str]) -> float:
    """1 less the distance in words, as a share of the longer text."""
    matcher = difflib.SequenceMatcher(None, read, golden, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return same / max(len(read), len(golden), 1)


def _f1(read: Sequence[Hashable], golden: Sequence[Hashable]) -> float:
    """The harmonic mean of precision and recall, with each as often as it stands there."""
    same = sum((Counter(read) & Counter(golden)).values())
    return 2 * same / (len(read) + len(golden)) if same else 0.0


def _order(read: Sequence[str], golden: Sequence[str]) -> float | None:
    """The share of pairs of lines that follow each other as in the golden text, of lines that stand in both once."""
    place = {line: at for at, line in enumerate(read) if read.count(line) == 1}
    places = [place[line] for line in golden if line in place and golden.count(line) == 1]
    pairs = list(itertools.combinations(places, 2))
    return sum(first < second for first, second in pairs) / len(pairs) if pairs else None
