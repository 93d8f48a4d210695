"""What ingestion works on: a parsed file, its cleaned text, its chunks; and the record that remembers a document. Plain data,
shared by the API, the worker and the child process that parses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


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
    """Of a heading, from 1."""
    page: int = 0
    """1-based; 0 where the format has no pages."""
    lines: tuple[LineBox, ...] = ()
    label: str = ""
    """Of a table row: what names it, repeated when the row has to be split."""
    turn: int = 0
    """Of a page's text: degrees clockwise by which the page has to be turned to be read. Boxes are on the page as it is."""
    context: tuple[str, ...] = ()
    """Of a message: what stands above it without being text of the file, such as its chat, author and date."""
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


class Status(StrEnum):
    """Where a document is on its way."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    """Another one, which a newer version wrote: shown, and left to that version."""


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
class Tries:
    """How the tries at the pending revision ended. Neither a stop in good order nor a neighbour that was away or full counts."""

    failures: int = 0
    """Tries that ended in an error which may be the document's."""
    deaths: int = 0
    """Tries that ended with the death of their worker."""
    worker_id: str = ""
    """The process that has the document in hand; one that was killed leaves its own behind."""
    last_failure: Failure | None = None
    first_failed_at: datetime | None = None
    last_failed_at: datetime | None = None


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
    reused_chunk_count: int = 0
    """Chunks whose vectors came from the active revision."""
    languages: tuple[str, ...] = ()
    """Of the chunks, most common first."""


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
    tries: Tries = field(default_factory=Tries)
    """Of the pending revision."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """What a newer version wrote that this one does not know, as JSON; written back with every change."""


@dataclass(frozen=True)
class StoredDocument:
    """A record with the store's revision, which compare-and-set compares."""

    document: Document
    version: int


@dataclass(frozen=True)
class NameClaim:
    """Which document has a name. `place` is the store's key, `version` what compare-and-set compares."""

    tenant_id: str
    document_id: str
    place: str
    version: int
    claimed_at: datetime


@dataclass(frozen=True)
class StoredFile:
    """A file that is in the store."""

    tenant_id: str
    sha256: str
    stored_at: datetime


@dataclass(frozen=True)
class Collection:
    """A set of documents that is searched together."""

    tenant_id: str
    collection_id: str
    name: str
    created_at: datetime | None
    """None for the collection that exists without having been made."""
    deleting: bool = False
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """As a document's."""


@dataclass(frozen=True)
class IngestJob:
    """What the queue carries: which revision of which document to make."""

    tenant_id: str
    document_id: str
    revision_id: str


@dataclass(frozen=True)
class DeadLetter:
    """A job that was given up although nothing is known to be wrong with its file."""

    tenant_id: str
    revision_id: str
    """Of the revision that could not be made; a revision is given up once, so this names the letter."""
    revision_number: int
    document_id: str
    collection_id: str
    document_name: str
    failure: Failure
    stage: str
    failures: int
    deaths: int
    first_failed_at: datetime
    last_failed_at: datetime
    requeued_at: datetime | None = None
    """When its document was queued again. Such a letter is kept for a while, so that asking twice gets the same answer."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """As a document's."""


class RequeueOutcome(StrEnum):
    """What became of the wish to queue a dead letter again."""

    REQUEUED = "requeued"
    ALREADY_REQUEUED = "already_requeued"
    DOCUMENT_DELETED = "document_deleted"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class JobCounts:
    """A tenant's documents by where they are."""

    queued: int
    processing: int
    dead_letters: int
    oldest_queued_at: datetime | None


class RevisionState(StrEnum):
    """What the indexes hold of a revision."""

    ACTIVE = "active"
    INCOMPLETE = "incomplete"
    INACTIVE = "inactive"
    DELETED = "deleted"


@dataclass(frozen=True)
class RevisionCheck:
    """The state of a revision, and the number of the document's visible one; 0 when there is none."""

    state: RevisionState
    active_number: int


@dataclass(frozen=True)
class EmbeddingModel:
    """The model server's embedder, as far as chunking and indexing need to know it."""

    name: str
    window_tokens: int
    """Tokens that it sees of a text, special tokens included."""
