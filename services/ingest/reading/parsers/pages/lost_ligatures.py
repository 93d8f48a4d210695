"""Ligatures that the fonts of a PDF do not name: `di\ufffdculties`. The other words of the document say which one it is; what they
do not say stands in the report."""

import re
from collections.abc import Sequence
from dataclasses import replace

from services.ingest.reading.models import Block, LineBox
from services.ingest.reading.parsers.pages.printed_page import PageResult

_LOST = "\ufffd"
_LIGATURES = ("ff", "fi", "fl", "ffi", "ffl")
_WORD = re.compile(r"[^\W\d_]+")
_DAMAGED_WORD = re.compile(rf"[^\W\d_]*{_LOST}[^\W\d_]+|[^\W\d_]+{_LOST}")
_SURELY_WORD = re.compile(rf"[^\W\d_]+{_LOST}[a-zß-ÿ]{{2,}}|(?<!\w){_LOST}[a-zß-ÿ]{{3,}}")
"""What lacks a letter, and no sign of a formula: `di\ufffdculties`, not `m\ufffd`."""


def with_ligatures(pages: Sequence[PageResult]) -> list[PageResult]:
    """The pages with the ligatures that only one word of the document fits, and a warning where there are others."""
    if not any(_LOST in block.text for page in pages for block in page.blocks):
        return list(pages)
    vocabulary = {word for page in pages for block in page.blocks for word in _whole_words(block.text)}
    return [_mended(page, vocabulary) for page in pages]


def _whole_words(text: str) -> list[str]:
    return _WORD.findall(_DAMAGED_WORD.sub(" ", text).lower())


def _mended(page: PageResult, vocabulary: set[str]) -> PageResult:
    blocks = tuple(_mended_block(block, vocabulary) if _LOST in block.text else block for block in page.blocks)
    left = sum(len(_SURELY_WORD.findall(block.text)) for block in blocks)
    if not left:
        return replace(page, blocks=blocks)
    words = "1 of its words lacks letters" if left == 1 else f"{left} of its words lack letters"
    warning = f"{words}, because its fonts do not say what they are"
    return replace(page, blocks=blocks, warning="; ".join(filter(None, (page.warning, warning))))


def _mended_block(block: Block, vocabulary: set[str]) -> Block:
    """The block with its words mended and its lines where they then are. Lines of a page cover its text, one below the other."""
    text, lines, bold, done = "", [], set(), 0
    for line in block.lines:
        text += _mended_text(block.text[done : line.start], vocabulary)
        start = len(text)
        text += _mended_text(block.text[line.start : line.end], vocabulary)
        lines.append(LineBox(start, len(text), line.page, line.box))
        bold |= {start} if line.start in block.bold_starts else set()
        done = line.end
    text += _mended_text(block.text[done:], vocabulary)
    label = _mended_text(block.label, vocabulary)
    return replace(block, text=text, lines=tuple(lines), bold_starts=frozenset(bold), label=label)


def _mended_text(text: str, vocabulary: set[str]) -> str:
    return _DAMAGED_WORD.sub(lambda found: _mended_word(found[0], vocabulary), text)


def _mended_word(word: str, vocabulary: set[str]) -> str:
    whole = [word.replace(_LOST, ligature) for ligature in _LIGATURES]
    known = [each for each in whole if each.lower() in vocabulary]
    return known[0] if len(known) == 1 else word
