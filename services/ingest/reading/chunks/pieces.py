"""A document as pieces that cover its text without gaps: sentences, rows, code blocks, each with how good a place behind it is to
cut at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from services.ingest.reading.chunks.sentences import sentence_spans
from services.ingest.reading.chunks.tokens import MAX_CHARS_PER_TOKEN, TokenCounter
from services.ingest.reading.models import BlockKind, CleanDocument, Section

CELL_GAP = "; "
"""Between the cells of a row, as parsers write it."""


class Break(IntEnum):
    """How good a place behind a piece is to cut at."""

    NEVER = 0
    WORD = 1
    SENTENCE = 2
    LINE = 3
    BLOCK = 4
    SECTION = 5


@dataclass(frozen=True)
class Piece:
    """Characters of a document that stay together where they can."""

    start: int
    end: int
    cost: int
    """Tokens."""
    after: Break
    section: Section
    repeatable: bool
    """Whether it may be repeated as overlap: prose may, rows and code not."""


class Pieces:
    """Divides a document. `budget` tells the tokens that a chunk has which begins with a piece."""

    def __init__(self, document: CleanDocument, tokens: TokenCounter, budget: Callable[[Piece], int]) -> None:
        self._document = document
        self._text = document.text
        self._tokens = tokens
        self._budget = budget

    def all(self) -> list[Piece]:
        """Pieces that cover every visible character, in order, none larger than a chunk."""
        raw = [piece for i in range(len(self._document.sections)) for piece in self._pieces_of(i)]
        costs = self._tokens.counts([self._text[piece.start : piece.end] for piece in raw])
        sized: list[Piece] = []
        for piece, cost in zip(raw, costs, strict=True):
            sized.extend(self._divided(replace(piece, cost=cost)))
        return sized

    def _pieces_of(self, index: int) -> Iterator[Piece]:
        section = self._document.sections[index]
        last = self._break_after(index)
        whole = section.kind in (BlockKind.ROW, BlockKind.TABLE, BlockKind.CODE, BlockKind.HEADING)
        if whole:
            yield Piece(section.start, section.end, 0, last, section, repeatable=False)
            return
        spans = list(sentence_spans(self._text, section.start, section.end))
        for i, (start, end) in enumerate(spans):
            inner = Break.LINE if "\n" in self._text[start:end] else Break.SENTENCE
            yield Piece(start, end, 0, inner if i + 1 < len(spans) else last, section, repeatable=True)

    def _break_after(self, index: int) -> Break:
        section, sections = self._document.sections[index], self._document.sections
        if index + 1 == len(sections):
            return Break.SECTION
        following = sections[index + 1]
        if following.page != section.page or section.kind is BlockKind.MESSAGE:
            return Break.SECTION
        if section.kind is BlockKind.HEADING:
            return (
                Break.NEVER
                if following.kind is not BlockKind.HEADING or following.level > section.level
                else Break.SECTION
            )
        if following.kind is BlockKind.HEADING:
            return Break.SECTION
        tight = section.kind is following.kind and section.kind in (BlockKind.LIST, BlockKind.TABLE, BlockKind.ROW)
        return Break.LINE if tight else Break.BLOCK

    def _divided(self, piece: Piece) -> Iterator[Piece]:
        """The piece, or parts of it that fit: lines of code, cells of rows, else words."""
        budget = self._budget(piece)
        if piece.cost <= budget:
            yield piece
            return
        spans = list(self._weak_spans(piece))
        costs = self._tokens.counts([self._text[start:end] for start, end in spans])
        for i, ((start, end), cost) in enumerate(zip(spans, costs, strict=True)):
            after = piece.after if i + 1 == len(spans) else Break.LINE if self._text[end - 1] == "\n" else Break.WORD
            part = replace(piece, start=start, end=end, cost=cost, after=after)
            if cost <= budget:
                yield part
            else:
                rest = replace(part, start=part.end - 1)  # of a cell: a chunk with it says the name of its column
                yield from self._words(part, min(budget, self._budget(rest)))

    def _weak_spans(self, piece: Piece) -> Iterator[tuple[int, int]]:
        mark = CELL_GAP if piece.section.kind in (BlockKind.ROW, BlockKind.TABLE) else "\n"
        start = piece.start
        while start < piece.end:
            found = self._text.find(mark, start, piece.end)
            end = piece.end if found < 0 else found + len(mark)
            yield start, end
            start = end

    def _words(self, piece: Piece, budget: int) -> Iterator[Piece]:
        """Cuts between words where it can, anywhere where a "word" is longer than a chunk."""
        start = piece.start
        while start < piece.end:
            end = min(piece.end, start + budget * MAX_CHARS_PER_TOKEN)
            offsets = self._tokens.offsets(self._text[start:end])
            if len(offsets) > budget:
                end = start + self._last_gap(start, offsets, budget)
            after = piece.after if end == piece.end else Break.WORD
            yield replace(piece, start=start, end=end, cost=min(len(offsets), budget), after=after)
            start = end

    def _last_gap(self, start: int, offsets: Sequence[tuple[int, int]], budget: int) -> int:
        for i in range(budget, budget // 2, -1):
            if self._text[start + offsets[i][0] - 1].isspace():
                return offsets[i][0]
        return max(offsets[budget][0], 1)
