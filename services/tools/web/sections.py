"""Cuts the text of a page into passages that can be cited one by one, each under the headings above it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

PASSAGE_CHARACTERS = 1_500
"""Of a passage, as far as paragraphs allow: some three hundred tokens, as chunks of documents have."""
_LONGEST = 2 * PASSAGE_CHARACTERS
_HEADING = re.compile(r"(#{1,6})\s+(.*\S)\s*")
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class PagePassage:
    """A part of a page."""

    text: str
    heading_path: tuple[str, ...]
    char_start: int
    """In the text of the page."""
    page_number: int = 0
    """Of a file with pages, from 1."""


def passages_of(text: str) -> list[PagePassage]:
    """The passages of a text in Markdown, in its order. A paragraph that is too long is cut between words."""
    found: list[PagePassage] = []
    path: list[tuple[int, str]] = []
    begins, ends = 0, 0

    def close() -> None:
        passage = text[begins:ends].lstrip()
        if passage:
            found.append(PagePassage(passage.rstrip(), tuple(title for _, title in path), ends - len(passage)))

    for start, end in _pieces(text):
        piece = text[start:end]
        heading = _HEADING.fullmatch(piece.partition("\n")[0])
        if heading is not None or end - begins > PASSAGE_CHARACTERS:
            close()
            begins = start
        if heading is not None:
            level = len(heading[1])
            path = [each for each in path if each[0] < level] + [(level, heading[2])]
            body = piece.partition("\n")[2]
            begins = end - len(body)  # the heading stands in the path
        ends = end
    close()
    return found or [PagePassage(text.strip(), (), len(text) - len(text.lstrip()))]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each paragraph, of long ones in parts."""
    at = 0
    for gap in [*_PARAGRAPH.finditer(text), None]:
        end = gap.start() if gap else len(text)
        while end - at > _LONGEST:
            cut = max(text.rfind(" ", at, at + PASSAGE_CHARACTERS), text.rfind("\n", at, at + PASSAGE_CHARACTERS))
            cut = cut if cut > at else at + PASSAGE_CHARACTERS
            yield at, cut
            at = cut
        if end > at:
            yield at, end
        at = gap.end() if gap else end
