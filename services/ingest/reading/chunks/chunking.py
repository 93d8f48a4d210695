"""Cuts a cleaned document into chunks that fit the embedder's window.

A document becomes pieces (sentences, rows, code blocks) that cover its text without gaps; pieces are packed up to the size
and cut at the strongest break in reach: section, then paragraph, then line, then sentence. What is longer than a chunk is cut
between words; the rest of a row begins with the name of the row and of the column. A page, sheet or attachment ends a chunk, and
so does a section that the chunk does not hold from its heading on. Neighbours on a page share up to `overlap` tokens in whole
sentences. Sizes are those of the text as embedded: title, heading path, text.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from services.ingest.reading.chunks.pieces import CELL_GAP, Break, Piece, Pieces
from services.ingest.reading.chunks.prefixes import Prefixes
from services.ingest.reading.chunks.tokens import TokenCounter
from services.ingest.reading.geometry import Boxes
from services.ingest.reading.models import BlockKind, Chunk, CleanDocument

TARGET_TOKENS = 512
"""Size of a chunk where the embedder's window allows it."""
OVERLAP_TOKENS = 64
"""Shared by neighbours: about two sentences, so that an answer that straddles a cut is whole in one of them."""

_TABULAR = (BlockKind.ROW, BlockKind.TABLE)
_LEFT_OUT = " … "
_MAX_LEAD_SHARE = 0.33
_MIN_HEADINGS = 3
_MIN_FILL = 0.5
_MIN_SECTION_FILL = 0.35


def chunker_for(document: CleanDocument, *, has_pages: bool) -> str:
    """The strategy: "messages", "rows", "pages", "headings" (from three on) or "recursive"."""
    if any(section.kind is BlockKind.MESSAGE for section in document.sections):
        return "messages"
    if any(section.kind is BlockKind.ROW for section in document.sections):
        return "rows"
    if has_pages:
        return "pages"
    headings = sum(1 for section in document.sections if section.kind is BlockKind.HEADING)
    return "headings" if headings >= _MIN_HEADINGS else "recursive"


def chunk(
    document: CleanDocument,
    tokens: TokenCounter,
    *,
    window_tokens: int,
    target_tokens: int = TARGET_TOKENS,
    overlap_tokens: int = OVERLAP_TOKENS,
) -> list[Chunk]:
    """Chunks in reading order. None is longer than the window; together they hold every visible character."""
    size = min(target_tokens, window_tokens - tokens.special_tokens)
    packer = _Packer(document, tokens, size, min(overlap_tokens, size // 4))
    spans = _without_contained(span for pieces in packer.packed() for span in packer.fitted(pieces))
    boxes = Boxes(document.lines)
    return [_chunk(packer, span, ordinal, boxes) for ordinal, span in enumerate(spans)]


@dataclass(frozen=True)
class _Span:
    """A chunk to be: its characters, and what is embedded in front of them."""

    start: int
    end: int
    prefix: str
    lead: str
    """What is said again in front of the rest of a row that was cut."""
    path: tuple[str, ...]
    page: int
    token_count: int
    metadata: Mapping[str, str]


def _chunk(packer: "_Packer", span: _Span, ordinal: int, boxes: Boxes) -> Chunk:
    text = span.lead + packer.text[span.start : span.end]
    shift = len(span.lead)
    lines = boxes.of(span.start, span.end)
    embedded = span.prefix + text
    digest = hashlib.sha256(embedded.encode()).hexdigest()
    return Chunk(
        ordinal,
        text,
        embedded,
        span.start,
        span.end,
        span.page,
        span.path,
        span.token_count,
        digest,
        tuple(replace(line, start=line.start + shift, end=line.end + shift) for line in lines),
        span.metadata,
    )


class _Packer:
    def __init__(self, document: CleanDocument, tokens: TokenCounter, size: int, overlap: int) -> None:
        self.text = document.text
        self._document = document
        self._tokens = tokens
        self._size = size
        self._overlap = overlap
        self._prefixes = Prefixes(document.title, tokens, size)

    def packed(self) -> Iterator[list[Piece]]:
        """Groups of consecutive pieces that fit a chunk; neighbours may share pieces."""
        pieces = Pieces(self._document, self._tokens, self._budget).all()
        first = 0
        while first < len(pieces):
            stop = self._reach(pieces, first)
            if stop < len(pieces):
                stop = self._best_cut(pieces, first, stop)
            group = pieces[first:stop]
            if any(self.text[piece.start : piece.end].strip() for piece in group):
                yield group
            first = stop if stop >= len(pieces) else self._with_overlap(pieces, first, stop)

    def _reach(self, pieces: Sequence[Piece], first: int) -> int:
        """One past the last piece that fits, ending early at a section once there is enough."""
        budget = self._budget(pieces[first])
        total = 0
        for i in range(first, len(pieces)):
            total += pieces[i].cost
            if i > first and (total > budget or _leaves_section(pieces[first], pieces[i])):
                return i
            if pieces[i].after is Break.SECTION and total >= _MIN_SECTION_FILL * self._size:
                return i + 1
            if _must_end(pieces, i):
                return i + 1
        return len(pieces)

    def _budget(self, first: Piece) -> int:
        """Tokens that a chunk which begins with this piece has for it and what follows."""
        return max(1, self._prefixes.budget(first) - self._prefixes.cost(self._lead(first)))

    def _best_cut(self, pieces: Sequence[Piece], first: int, stop: int) -> int:
        """The strongest break in the second half of what fits; the latest of equals."""
        total = sum(piece.cost for piece in pieces[first:stop])
        filled, best = 0, stop
        strength = Break.NEVER
        for i in range(first, stop):
            filled += pieces[i].cost
            if filled >= _MIN_FILL * total and pieces[i].after >= strength:
                best, strength = i + 1, pieces[i].after
        return best

    def _with_overlap(self, pieces: Sequence[Piece], first: int, stop: int) -> int:
        if pieces[stop - 1].after is Break.SECTION:
            return stop
        shared, start = 0, stop
        while (
            start - 1 > first
            and pieces[start - 1].repeatable
            and pieces[start - 1].section.path == pieces[stop].section.path
        ):
            shared += pieces[start - 1].cost
            if shared > self._overlap or shared + pieces[stop].cost > self._prefixes.budget(pieces[start - 1]):
                break
            start -= 1
        return start

    def fitted(self, pieces: Sequence[Piece]) -> list[_Span]:
        """The chunk of these pieces, or several when together they have more tokens than apart."""
        left = next((i for i, piece in enumerate(pieces) if _leaves_section(pieces[0], piece)), 0)
        if left:
            return [*self.fitted(pieces[:left]), *self.fitted(pieces[left:])]
        span = self._span(pieces)
        if span.token_count <= self._size + self._tokens.special_tokens:
            return [span]
        if len(pieces) > 1:
            half = len(pieces) // 2
            return [*self.fitted(pieces[:half]), *self.fitted(pieces[half:])]
        piece = pieces[0]
        if piece.end - piece.start < 2:
            return [replace(span, prefix="", lead="", token_count=self._counted(self.text[piece.start : piece.end]))]
        middle = (piece.start + piece.end) // 2
        middle = self.text.rfind(" ", piece.start + 1, middle) + 1 or middle
        first = replace(piece, end=middle, cost=self._cost(piece.start, middle))
        rest = replace(piece, start=middle, cost=self._cost(middle, piece.end))
        return [*self.fitted([first]), *self.fitted([rest])]

    def _span(self, pieces: Sequence[Piece]) -> _Span:
        start, end = self._trimmed(pieces[0].start, pieces[-1].end)
        bodies = [piece for piece in pieces if piece.section.kind is not BlockKind.HEADING] or pieces
        path = _common_path([piece.section.path for piece in bodies])
        above = [name for name, at in path if not start <= at < end]
        names = tuple(name for name, _ in path)
        label = pieces[0].section.label
        lead = self._lead(pieces[0])
        if label and not lead and pieces[0].start > pieces[0].section.start and label not in above:
            above.append(label)  # the rest of a function that was cut: say whose it is
            names = (*names, label)
        prefix = self._prefixes.prefix(above)
        if self._tokens.additive and not lead and self._cut_at_spaces(pieces):
            count = self._prefixes.cost(prefix) + sum(piece.cost for piece in pieces) + self._tokens.special_tokens
        else:
            count = self._counted(prefix + lead + self.text[start:end])
        section = pieces[0].section
        return _Span(start, end, prefix, lead, names, section.page, count, section.metadata)

    def _lead(self, piece: Piece) -> str:
        """The name of the row that the piece is the rest of, and of the column where it begins within a cell. Empty for what is no
        such rest, and where it would take more than its share of the chunk."""
        section = piece.section
        if section.kind not in _TABULAR or not section.label or piece.start == section.start:
            return ""
        cell = self.text.rfind(CELL_GAP, section.start, piece.start)
        if cell < 0:
            lead = f"{section.label}{_LEFT_OUT}"
        else:
            name, colon, _ = self.text[cell + len(CELL_GAP) : piece.start].partition(": ")
            lead = f"{section.label}{CELL_GAP}{f'{name}:{_LEFT_OUT}' if colon else ''}"
        return lead if self._prefixes.cost(lead) <= _MAX_LEAD_SHARE * self._size else ""

    def _cut_at_spaces(self, pieces: Sequence[Piece]) -> bool:
        """Whether no word lies across two of the pieces and each one's cost is of all its words."""
        text = self.text
        joints = all(text[piece.start - 1].isspace() or text[piece.start].isspace() for piece in pieces[1:])
        return joints and all(piece.after is not Break.WORD for piece in pieces)

    def _cost(self, start: int, end: int) -> int:
        return self._tokens.counts([self.text[start:end]])[0]

    def _counted(self, embedded: str) -> int:
        return self._tokens.counts([embedded])[0] + self._tokens.special_tokens

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        text = self.text[start:end]
        return start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))


def _must_end(pieces: Sequence[Piece], i: int) -> bool:
    """Whether a chunk ends with this piece: a citation names one page, sheet, attachment, and message with its author and date."""
    if i + 1 == len(pieces):
        return False
    section, following = pieces[i].section, pieces[i + 1].section
    if following.begins_part and following is not section:
        return True
    return following.page != section.page or (section.kind is BlockKind.MESSAGE and following is not section)


def _leaves_section(first: Piece, piece: Piece) -> bool:
    """Whether a chunk that begins with `first`, behind the heading of its section, would hold text of another section with this
    piece: nothing in it would say where the one ends that it began with."""
    path = first.section.path
    is_inside = bool(path) and first.section.kind is not BlockKind.HEADING and path[-1][1] < first.start
    return is_inside and piece.section.path[: len(path)] != path


def _without_contained(spans: Iterable[_Span]) -> list[_Span]:
    """Leaves out what lies within its neighbour: the overlap with a group that did not fit and was split."""
    kept: list[_Span] = []
    for span in spans:
        while kept and span.start <= kept[-1].start and kept[-1].end <= span.end:
            kept.pop()
        if not kept or span.end > kept[-1].end:
            kept.append(span)
    return kept


def _common_path(paths: Sequence[tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
    common = paths[0]
    for path in paths[1:]:
        same = next(
            (i for i, (a, b) in enumerate(zip(common, path, strict=False)) if a != b), min(len(common), len(path))
        )
        common = common[:same]
    return common
