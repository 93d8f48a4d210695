"""What ingestion works on: a parsed file, its cleaned text, its chunks; and the record that remembers a document. Plain data,
shared by the API, the worker and the child process that parses."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class BlockKind(StrEnum):
    """What a block of a document is, as far as chunking cares."""

    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    CODE = "code"
    TABLE = "table"
    ROW = "row"


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
    """Of a heading, from 1."""
    page: int = 0
    """1-based; 0 where the format has no pages."""
    lines: tuple[LineBox, ...] = ()
    label: str = ""
    """Of a table row: what names it, repeated when the row has to be split."""


@dataclass(frozen=True)
class ParsedDocument:
    """A file as its parser read it, in reading order."""

    title: str
    blocks: tuple[Block, ...]
    page_statuses: tuple[str, ...] = ()
    """"text", "empty" or "failed" for each page."""
    warnings: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class PreparedDocument:
    """All that is known of a file before it is embedded."""

    title: str
    chunks: tuple[Chunk, ...]
    chunker: str
    page_statuses: tuple[str, ...]
    warnings: tuple[str, ...]
    stage_seconds: dict[str, float]


class Status(StrEnum):
    """Where a document is on its way."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"
    DELETED = "deleted"


@dataclass(frozen=True)
class Content:
    """A stored file."""

    sha256: str
    size_bytes: int
    media_type: str


@dataclass(frozen=True)
class Revision:
    """One reading of a file: fixed when its job is queued, so that a redelivered job rewrites the same revision."""

    revision_id: str
    number: int
    """Order of the revisions of one document, from 1."""
    content: Content


@dataclass(frozen=True)
class Failure:
    """Why a document could not be read."""

    reason: str
    message: str


@dataclass(frozen=True)
class Report:
    """What happened on the way."""

    page_count: int = 0
    chunk_count: int = 0
    token_count: int = 0
    embed_batch_count: int = 0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    page_statuses: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    attempts: int = 0
    chunker: str = ""


@dataclass(frozen=True)
class Document:
    """The record of a document.

    `pending` is the revision being made, `active` the searchable one. A tombstone (DELETED) stays for a while, so that a
    late worker or a late upload sees it.
    """

    tenant_id: str
    document_id: str
    collection_id: str
    name: str
    created_at: datetime
    updated_at: datetime
    status: Status
    content: Content
    """The file last uploaded; that of `active` again when it could not be read."""
    revision_count: int
    """Revisions ever queued: the number of the newest."""
    metadata: dict[str, str] = field(default_factory=dict)
    pending: Revision | None = None
    active: Revision | None = None
    stage: str = ""
    progress: float = 0.0
    error: Failure | None = None
    report: Report | None = None
    swept: bool = False
    """Of a tombstone: everything it had is removed."""


@dataclass(frozen=True)
class StoredDocument:
    """A record with the store's revision, which compare-and-set compares."""

    document: Document
    version: int


@dataclass(frozen=True)
class Collection:
    """A set of documents that is searched together."""

    tenant_id: str
    collection_id: str
    name: str
    created_at: datetime | None
    """None for the collection that exists without having been made."""
    deleting: bool = False


@dataclass(frozen=True)
class IngestJob:
    """What the queue carries: which revision of which document to make."""

    tenant_id: str
    document_id: str
    revision_id: str


@dataclass(frozen=True)
class EmbeddingModel:
    """The model server's embedder, as far as chunking and indexing need to know it."""

    name: str
    window_tokens: int
    """Tokens that it sees of a text, special tokens included."""
