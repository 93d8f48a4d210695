"""Cut a passage into the units an extractive answer is made of: sentences, list items, table rows.

Rules, no model: an answer must be exact, fast (microseconds a sentence) and work for any script. Every unit keeps its
span in the passage's text, so that a citation can highlight it.
"""

import enum
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kit.language.log_entries import LOG_ENTRY
from kit.language.terms import words


class UnitKind(enum.Enum):
    """What a unit is; decides how it may be used in an answer."""

    PROSE = "prose"
    """A sentence."""
    HEADING = "heading"
    """A title line: context for what follows, hardly ever an answer."""
    ITEM = "item"
    """One item of a list."""
    LIST = "list"
    """A line that introduces a list, with the list's items; the items stand as units of their own too."""
    ROW = "row"
    """A table row or a run of `name: value` lines."""


@dataclass(frozen=True)
class Unit:
    """One citable unit; `text == passage[start:end]`."""

    text: str
    start: int
    """First character in the passage."""
    end: int
    """One past the last character."""
    kind: UnitKind = UnitKind.PROSE
    block: int = 0
    """Paragraph number within the passage; units of one block belong together."""
    lead_in: str = ""
    """For a list item: the line that introduces the list ("The plan covers:"); for a table row: the table's first row."""
    heading: str = ""
    """The last title line above the unit, within the passage."""


MAX_RECORD_CHARS = 320
"""A run of `name: value` lines up to this length is one record: a value means little without its key column."""
MAX_HEADING_CHARS = 90
"""A line without a full stop, up to this length, alone in its paragraph, is a title."""
MAX_UNIT_CHARS = 600
"""Longer units are cut at a clause or a space: text without punctuation must not become one endless sentence."""

_BULLET = re.compile(r"^\s*(?:[-*•‣◦–—+·]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+")
_MARKDOWN_HEADING = re.compile(r"^\s*#{1,6}\s+\S")
_FIELD = re.compile(r"^\s*[^\W\d][^:\n.!?]{0,40}:\s+\S")
_TABLE_ROW = re.compile(r"\s\|\s|\t")
_NAME = r"(?:[^;:\n.!?]|\.(?!\s[A-Z])){1,120}"
_LABELLED_ROW = re.compile(rf"^{_NAME}(?:;\s{_NAME}:\s[^;\n]+)+$")
"""A row whose first cell stands below no name: `Revenue; Note: 2; 2023: 512.3`."""
_ENDS_SENTENCE = re.compile(r"[.!?…。！？؟۔।॥။។][\"'”’»)\]]*$")
_WITHOUT_STOPS = re.compile("[\u0e00-\u0eff]")
"""Thai and Lao end no sentence with a sign: a line alone is one as often as a title."""
# A terminator, the quotes, brackets and footnote marks that still belong to the sentence, then a gap. Ideographic stops
# need no gap. The look-behind and the possessive quantifier keep a line of ten thousand full stops linear.
_BOUNDARY = re.compile(
    r"(?<![.!?…؟۔।॥။។])(?P<stop>[.!?…؟۔।॥။។]++)(?P<tail>[\"'”’»)\]]*(?:\[[\w ]{1,12}\])*)(?=\s)"
    r"|(?P<wide>[。！？]+)(?P<wide_tail>[」』”’）]*)"
)
_WORD_BEFORE = re.compile(r"[^\s(\[\"'“‘«]+$")
_WORD_AFTER = re.compile(r"\s*[\"'“‘«(\[]*([^\s]+)")
_INITIAL = re.compile(r"^(?:[^\W\d_]\.)*[^\W\d_]$")
_NUMBER_BEFORE = re.compile(r"\d\s?\Z")
_INTRODUCES = (":", "：")
_OPENING = "\"'“‘«([¿¡"

_TITLES = words(
    "mr mrs ms dr prof st sr jr rev hon gen col maj capt lt sgt gov sen rep pres messrs mme mlle hr fr frau sra vs "
    "cf ca approx inc ltd co corp dept est fig eq sec ch vol ed eds pp al e.g i.e viz z.b d.h bzw usw jan feb mar "
    "apr jun jul aug sep sept oct nov dec mt ft ave blvd rd univ op"
)
_NEVER_LAST = words(
    "the a an of and or in on at by for to with from as that which is are was were than but into its their"
)
_UNITS = words("h m g l s t")
"""Letters that are no initials behind a number: "de 9 h à 18 h. Elle …"."""
_BEFORE_NUMBER = words("no nos nr p pp art fig eq sec ch vol cap c ca approx")
_STARTERS = words(
    "the a an it its he she they we you i this that these those in on at by for from to as if when while after "
    "before however although but and there here his her their our since during under with according also most many "
    "some"
)


def split_units(text: str) -> list[Unit]:
    """Units of `text` in reading order, none empty. Spans overlap only where a LIST holds its ITEMs."""
    units: list[Unit] = []
    heading, lead_in = "", ""
    for block, (start, end) in enumerate(_blocks(text)):
        header_row = ""
        for kind, line_start, line_end in _logical_lines(text, start, end):
            line = text[line_start:line_end]
            if kind is UnitKind.HEADING:
                heading = line.lstrip("# ").strip()
            elif kind is UnitKind.ROW and _TABLE_ROW.search(line):
                header_row = header_row or line
            context = {UnitKind.ITEM: lead_in, UnitKind.ROW: header_row}.get(kind, "")
            for piece_start, piece_end in _pieces(text, kind, line_start, line_end):
                piece = text[piece_start:piece_end]
                units.append(Unit(piece, piece_start, piece_end, kind, block, context, heading))
            if kind is not UnitKind.ITEM:
                lead_in = line if line.endswith(_INTRODUCES) else ""
    return _with_lists(text, units)


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Spans of paragraphs: runs of lines without an empty one."""
    position = 0
    for gap in itertools.chain(re.finditer(r"\n[ \t\r]*\n\s*", text), [None]):
        end = gap.start() if gap else len(text)
        if text[position:end].strip():
            yield position, end
        position = gap.end() if gap else end


def _pieces(text: str, kind: UnitKind, start: int, end: int) -> Iterator[tuple[int, int]]:
    whole = kind in (UnitKind.HEADING, UnitKind.ROW)
    spans = [(start, end)] if whole else _sentences(text, start, end)
    for span_start, span_end in spans:
        yield from _bounded(text, span_start, span_end)


def _with_lists(text: str, units: Sequence[Unit]) -> list[Unit]:
    """Extends each line that introduces a list over as many items as fit into one unit."""
    extended = list(units)
    for index, unit in enumerate(units):
        if unit.kind is not UnitKind.PROSE or not unit.text.endswith(_INTRODUCES):
            continue
        end = unit.end
        for item in itertools.takewhile(lambda later: later.kind is UnitKind.ITEM, units[index + 1 :]):
            if item.end - unit.start > MAX_UNIT_CHARS:
                break
            end = item.end
        if end > unit.end:
            extended[index] = replace(unit, text=text[unit.start : end], end=end, kind=UnitKind.LIST)
    return extended


def _logical_lines(text: str, start: int, end: int) -> list[tuple[UnitKind, int, int]]:
    """Lines with wrapped prose joined and runs of `name: value` lines merged into one record."""
    lines = list(_line_spans(text, start, end))
    widest = max((e - s for s, e in lines), default=0)
    merged: list[tuple[UnitKind, int, int]] = []
    for line_start, line_end in lines:
        line = text[line_start:line_end]
        kind = _line_kind(line, alone=len(lines) == 1)
        if merged and _continues(text, merged[-1], kind, line, line_end, widest):
            merged[-1] = (merged[-1][0], merged[-1][1], line_end)
        else:
            merged.append((kind, line_start, line_end))
    return [_as_heading(text, line, index, len(merged)) for index, line in enumerate(merged)]


def _line_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"[^\n]+", text[start:end]):
        raw = match.group()
        stripped = raw.strip()
        if stripped:
            offset = start + match.start() + (len(raw) - len(raw.lstrip()))
            yield offset, offset + len(stripped)


def _line_kind(line: str, *, alone: bool) -> UnitKind:
    if _MARKDOWN_HEADING.match(line):
        return UnitKind.HEADING
    if _BULLET.match(line):
        return UnitKind.ITEM
    if _TABLE_ROW.search(line) or (_FIELD.match(line) and not (alone and _ends_sentence(line))):
        return UnitKind.ROW
    if _is_labelled_row(line):
        return UnitKind.ROW
    return UnitKind.PROSE


def _ends_sentence(line: str) -> bool:
    # The last characters only: the pattern tries every full stop, and a table of contents has thousands of them.
    return _ENDS_SENTENCE.search(line[-8:]) is not None


def _continues(
    text: str, previous: tuple[UnitKind, int, int], kind: UnitKind, line: str, line_end: int, widest: int
) -> bool:
    """Whether `line` belongs to the line above: a record's next field, or prose wrapped by a fixed width."""
    previous_kind, start, end = previous
    if kind is UnitKind.ROW and previous_kind is UnitKind.ROW:
        is_field = _FIELD.match(line) and not _TABLE_ROW.search(line) and not _is_record(text[start:end])
        return bool(is_field) and line_end - start <= MAX_RECORD_CHARS
    if kind is not UnitKind.PROSE or previous_kind not in (UnitKind.PROSE, UnitKind.ITEM) or LOG_ENTRY.match(line):
        return False
    above = text[start:end]
    if above.endswith(_INTRODUCES):
        return False
    if line[0].islower() or _breaks_off(above):
        return True
    last_line = above.rsplit("\n", 1)[-1]
    return widest >= 40 and len(last_line) >= 0.6 * widest


def _breaks_off(line: str) -> bool:
    """Whether a line ends in a word that no sentence and no title ends in: it goes on below."""
    return line.rsplit(maxsplit=1)[-1] in _NEVER_LAST


def _is_record(text: str) -> bool:
    """Whether one line already holds several fields: then each line is a record of its own."""
    first_line = text.split("\n", 1)[0]
    if _is_labelled_row(first_line):
        return True
    return len(re.findall(r"(?:(?:^|[,|]\s*)[^\W\d]|;\s*\w)[^:;,|]{0,40}:\s", first_line)) > 1


def _is_labelled_row(line: str) -> bool:
    return bool(_LABELLED_ROW.match(line)) and not _ends_sentence(line)


def _as_heading(text: str, line: tuple[UnitKind, int, int], index: int, line_count: int) -> tuple[UnitKind, int, int]:
    """A short first line of a block without a full stop, followed by other lines or alone, is a title."""
    kind, start, end = line
    content = text[start:end]
    if kind is not UnitKind.PROSE or index != 0 or len(content) > MAX_HEADING_CHARS or LOG_ENTRY.match(content):
        return line
    if _ends_sentence(content) or content.endswith((":", "：", ",", ";")) or len(content.split()) > 12:
        return line
    if line_count == 1 and (text.strip() == content or _WITHOUT_STOPS.search(content)):
        return line
    return UnitKind.HEADING, start, end


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    position = start
    for match in _BOUNDARY.finditer(text, start, end):
        if match.start() < position or not _is_boundary(text, match, position, end):
            continue
        yield position, match.end()
        position = match.end()
        while position < end and text[position].isspace():
            position += 1
    if position < end:
        yield position, end


def _is_boundary(text: str, match: re.Match[str], sentence_start: int, end: int) -> bool:
    if match.group("wide"):
        return match.end() < end
    following = _WORD_AFTER.match(text, match.end(), end)
    if following is None:
        return False
    word_after = following.group(1)
    starts_lower = word_after[0].islower()
    if match.group("stop") != ".":
        return not starts_lower or text[match.end() :].lstrip()[:1] in _OPENING
    if starts_lower:
        return False
    return not _is_abbreviation(text, match, sentence_start, word_after)


def _is_abbreviation(text: str, match: re.Match[str], sentence_start: int, word_after: str) -> bool:
    """Whether the full stop ends an abbreviation, an initial or an enumeration mark rather than a sentence."""
    before = _WORD_BEFORE.search(text, sentence_start, match.start())
    if before is None or match.group("tail"):
        return False
    word = before.group().lower()
    if word_after[0].isdigit() and word in _BEFORE_NUMBER:
        return True
    if word in _TITLES:
        return True
    starts_sentence = re.sub(r"\W+$", "", word_after).lower() in _STARTERS
    if _INITIAL.match(word):
        return not starts_sentence and not (
            word in _UNITS and _NUMBER_BEFORE.search(text, sentence_start, before.start())
        )
    # "1. First" at the start of a sentence is an enumeration mark.
    return word.isdigit() and before.start() == sentence_start


def _bounded(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cuts a unit that is too long at the last clause mark or space before the limit."""
    while end - start > MAX_UNIT_CHARS:
        window = text[start : start + MAX_UNIT_CHARS]
        cut = max(window.rfind(mark) for mark in ("; ", ", ", "，", "、", "\n"))
        if cut < MAX_UNIT_CHARS // 2:
            cut = window.rfind(" ")
        cut = cut + 1 if cut > 0 else MAX_UNIT_CHARS
        yield start, start + len(window[:cut].rstrip())
        start += cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end
