"""What becomes of a file: as it was parsed, its cleaned text, its chunks. Plain data, shared by the worker and the child process
that parses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class BlockKind(StrEnum):
    """What a block of a document is, as far as chunking cares."""

    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    CODE = "code"
    TABLE = "table"
    ROW = "row"
    MESSAGE = "message"
    """Of a chat: one unit, never joined with its neighbours."""


@dataclass(frozen=True)
class LineBox:
    """A line on a page. `start` and `end` are characters of the block's text, or of the cleaned text once it is there."""

    start: int
    end: int
    page: int
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in points, origin at the top left of the page."""


@dataclass(frozen=True)
class Block:
    """A paragraph, heading, list, code block or table row as the parser found it."""

    kind: BlockKind
    text: str
    level: int = 0
    """Of a heading, from 1; 0 of one above all others, as the name of an attachment is."""
    page: int = 0
    """1-based; 0 where the format has no pages."""
    lines: tuple[LineBox, ...] = ()
    label: str = ""
    """Of a table row: what names it, repeated when the row has to be split."""
    turn: int = 0
    """Of a page's text: degrees clockwise by which the page has to be turned to be read. Boxes are on the page as it is."""
    begins_part: bool = False
    """Of a heading: whether it is the name of a sheet or an attachment, which shares no chunk with another."""
    bold_starts: frozenset[int] = frozenset()
    """Of printed lines that are all in bold type: where they begin in the text."""
    context: tuple[str, ...] = ()
    """What stands above it without being text of the file: of a message its chat, author and date, above its headings; of code what
    encloses it, below them."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What a search can filter by, beyond the document's own fields."""


@dataclass(frozen=True)
class ParsedDocument:
    """A file as its parser read it, in reading order."""

    title: str
    blocks: tuple[Block, ...]
    page_statuses: tuple[str, ...] = ()
    """"text", "ocr" (read from its picture), "empty" or "failed" for each page."""
    warnings: tuple[str, ...] = ()
    flowing: bool = False
    """Whether the pages come in whole paragraphs (slides) and not in printed lines that have to be joined."""


@dataclass(frozen=True)
class Section:
    """A block's place in the cleaned text, with the headings above it as (text, first character)."""

    kind: BlockKind
    start: int
    end: int
    page: int
    path: tuple[tuple[str, int], ...]
    level: int = 0
    label: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    begins_part: bool = False


@dataclass(frozen=True)
class CleanDocument:
    """The text that character spans refer to, and where its blocks and lines are."""

    title: str
    text: str
    sections: tuple[Section, ...]
    lines: tuple[LineBox, ...] = ()


@dataclass(frozen=True)
class Chunk:
    """A piece of a document. `text` is the cleaned text from `start` to `end`."""

    ordinal: int
    text: str
    embedded_text: str
    start: int
    end: int
    page: int
    heading_path: tuple[str, ...]
    token_count: int
    """Of `embedded_text`, special tokens included."""
    content_hash: str
    boxes: tuple[LineBox, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What a search can filter by, beyond the document's own fields."""
    language: str = ""
    """ISO 639-1 code (639-3 where there is none); empty when unknown."""


@dataclass(frozen=True)
class PreparedDocument:
    """All that is known of a file before it is embedded."""

    title: str
    chunks: tuple[Chunk, ...]
    chunker: str
    page_statuses: tuple[str, ...]
    warnings: tuple[str, ...]
    stage_seconds: dict[str, float]


class ChunkFile(Protocol):
    """The chunks of a file, put aside: of a large file they are more than a worker wants to have in memory."""

    def __len__(self) -> int:
        """How many there are."""

    def size_bytes(self, start: int, stop: int) -> int:
        """Bytes that the chunks from `start` to before `stop` take as they were put aside."""

    async def read(self, start: int, stop: int) -> Sequence[Chunk]:
        """The chunks from `start` to before `stop`."""


@dataclass(frozen=True)
class PreparedFile:
    """What the parsing child made of a file, as the worker has it."""

    chunks: ChunkFile
    token_count: int
    """Of all chunks."""
    languages: tuple[str, ...]
    """Of the chunks, most common first."""
    chunker: str
    page_statuses: tuple[str, ...]
    warnings: tuple[str, ...]
    stage_seconds: dict[str, float]
    title: str = ""


@dataclass(frozen=True)
class PrepareRequest:
    """A file on local disk and what its chunks have to fit."""

    path: str
    media_type: str
    name: str
    tokenizer_path: str
    """The embedder's tokenizer JSON; empty when its provider publishes none."""
    window_tokens: int
    usual_encoding: str = ""
    """Of texts that do not say theirs; empty when it has to be guessed."""
