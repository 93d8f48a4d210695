"""Pages of printed lines, from a text layer or recognised from a picture."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.ingest.errors import DocumentRejected
from services.ingest.reading.geometry import turned_box
from services.ingest.reading.models import Block, BlockKind, LineBox
from services.ingest.reading.page_lines import line_number
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.pages.pdf_tables import CarriedHeader, Table, row_blocks
from services.ingest.reading.parsers.tables.aligned_tables import find_aligned_tables
from services.ingest.reading.reading_order import Fragment, lines_in_order
from services.ingest.reading.recognition import OcrBudget, RecognizedPicture

_MAX_LISTED = 20
_MAX_FURNITURE = 3
"""Lines above a table that goes on from the page before, and below one that goes on: running heads, numbers of pages."""
_MIN_LINE_NUMBERS = 5
_CONSECUTIVE = 0.8

_TOLD_UNREAD_SHARE = 0.2
"""Of unread lines on a page that is worth a word; stamps and smudges are fewer."""
_MAX_PAGES = 20_000


@dataclass(frozen=True)
class PageResult:
    """What came of a page."""

    status: str
    """"text", "ocr", "empty" or "failed"."""
    blocks: tuple[Block, ...] = ()
    warning: str = ""
    """What a person should know about it."""
    scripts: tuple[str, ...] = ()
    """In which it is written, as far as text recognition could see."""
    is_foreign: bool = False
    """Whether it is written in a script that text recognition does not read."""
    picture_count: int = 0
    """Pictures beside its text, which were not read."""


@dataclass(frozen=True)
class Verdict:
    """What a recognised picture is worth."""

    status: str
    """"ocr" when it can be used, "empty" when nothing is written there, "failed" when it is but was not read."""
    text: str = ""
    """What is wrong, for a person; empty when nothing is."""
    is_foreign: bool = False
    """Whether it is written in a script that the recogniser does not read."""


def verdict(picture: RecognizedPicture, scripts: str) -> Verdict:
    """Judges what was recognised. `scripts`: what the recogniser reads."""
    read, unread = len(picture.lines), picture.unread_count
    missing = f"text recognition (OCR) could not read {unread} of its {read + unread} lines: it reads {scripts} writing"
    if unread >= max(1, read):
        return Verdict("failed", missing, is_foreign=True)
    if not picture.complete:
        text = "text recognition (OCR) took too long and was stopped; the rest of the page is missing"
        return Verdict("ocr" if read else "failed", text)
    if unread >= max(1, _TOLD_UNREAD_SHARE * (read + unread)):
        return Verdict("ocr", missing)
    return Verdict("ocr") if read else Verdict("empty", "text recognition (OCR) found no text in it")


def check_page_count(count: int, name: str) -> None:
    """The record of a document remembers what became of each page. Raises DocumentRejected: TOO_MANY_PAGES."""
    if count > _MAX_PAGES:
        raise DocumentRejected(
            "TOO_MANY_PAGES", f"{name} has more than {_MAX_PAGES} pages; split it into smaller files"
        )


def page_warnings(pages: Sequence[PageResult]) -> Iterator[str]:
    """One for each page that is not simply text, with its number; only the first of many."""
    odd = [(number, page) for number, page in enumerate(pages, 1) if page.warning or page.status in ("empty", "failed")]
    for number, page in odd[:_MAX_LISTED]:
        if page.warning:
            yield f"page {number}: {page.warning}"
        else:
            yield f"page {number} has no text" if page.status == "empty" else f"page {number} could not be read"
    if len(odd) > _MAX_LISTED:
        rest = ", ".join(str(number) for number, _ in odd[_MAX_LISTED:][:100])
        yield f"{len(odd) - _MAX_LISTED} more pages without text or with problems: {rest}"
    yield from left_out(sum(page.picture_count for page in pages), "picture")
    seen = Counter(script for page in pages if page.status == "ocr" for script in page.scripts)
    if seen:
        counts = ", ".join(
            f"{script} ({count} {'page' if count == 1 else 'pages'})" for script, count in seen.most_common()
        )
        yield f"text recognition (OCR) saw writing in {counts}"


def nothing_recognized(name: str, pages: Sequence[PageResult], ocr: OcrBudget) -> DocumentRejected | None:
    """What to say of a document without text whose pages are written in a script that the recogniser does not read; None of
    others."""
    foreign = sum(1 for page in pages if page.is_foreign)
    if not foreign or 2 * foreign < sum(1 for page in pages if page.status == "failed"):
        return None
    install = f"{ocr.missing} on the worker's machine and upload it again, or " if ocr.missing else ""
    return DocumentRejected(
        "OCR_SCRIPT_UNSUPPORTED",
        f"{name} is a picture of text in a script that text recognition (OCR) does not read: it reads {ocr.scripts}, not "
        f"handwriting; {install}upload a version with a text layer",
    )


def page_of(
    fragments: Sequence[Fragment],
    page: int,
    *,
    turn: int = 0,
    trust_order: bool,
    tables: Sequence[Table] = (),
    carried: CarriedHeader | None = None,
) -> tuple[Block, ...]:
    """A page's text in reading order, with the place of each line, and the rows of its tables between. The boxes of fragments are
    upright, those of the blocks are on the page as it is shown. `carried`: of the page before, and from then on of this one."""
    blocks: list[Block] = []
    aligned, fragments = find_aligned_tables(fragments, len(tables))
    fragments = _without_line_numbers(fragments)
    tables = [*tables, *aligned]
    lines = lines_in_order(fragments, trust_order=trust_order)
    carried = carried or CarriedHeader()
    beside, last = 0, None
    for table, together in itertools.groupby(lines, key=lambda line: line.table):
        if table is None:
            text = list(together)
            beside += len(text)
            blocks.append(_text_block(text, page, turn))
            continue
        goes_on = last is None and beside <= _MAX_FURNITURE
        names = carried.carried_for(tables[table]) if goes_on else ()
        blocks += row_blocks(tables[table], page, turn, names)
        last, beside = (tables[table], names), 0
    carried.keep(*(last if last and beside <= _MAX_FURNITURE else (None, ())))
    return tuple(blocks)


def _without_line_numbers(fragments: Sequence[Fragment]) -> Sequence[Fragment]:
    """The page without numbers beside its lines, as pleadings, transcripts and drafts have them: 1, 2, 3 … in a margin."""
    found = ((line_number(f.text), f) for f in fragments if not f.is_aside)
    numbers = sorted(((number, f) for number, f in found if number is not None), key=lambda each: each[1].box[1])
    others = [f for f in fragments if f.table is None and line_number(f.text) is None]
    if len(numbers) < _MIN_LINE_NUMBERS or not others:
        return fragments
    steps = sum(1 for (a, _), (b, _) in itertools.pairwise(numbers) if b == a + 1)
    beside = max(f.box[2] for _, f in numbers) <= min(f.box[0] for f in others) + 1
    if not beside or steps < _CONSECUTIVE * (len(numbers) - 1):
        return fragments
    dropped = {id(f) for _, f in numbers}
    return [f for f in fragments if id(f) not in dropped]


def _text_block(lines: Sequence[Fragment], page: int, turn: int) -> Block:
    places: list[LineBox] = []
    bold: set[int] = set()
    start = 0
    for line in lines:
        places.append(LineBox(start, start + len(line.text), page, turned_box(line.box, -turn)))
        bold |= {start} if line.is_bold else set()
        start += len(line.text) + 1
    text = "\n".join(line.text for line in lines)
    return Block(BlockKind.TEXT, text, page=page, lines=tuple(places), turn=turn, bold_starts=frozenset(bold))


def recognized_fragments(picture: RecognizedPicture, points_per_pixel: float) -> tuple[Fragment, ...]:
    """The lines of a picture, upright, in points."""
    fragments = []
    for line in picture.lines:
        x0, y0, x1, y1 = (value * points_per_pixel for value in line.box)
        fragments.append(Fragment(line.text, turned_box((x0, y0, x1, y1), picture.turn)))
    return tuple(fragments)
