"""The record that remembers a document, and what belongs to it: its file, its name, its collection, its job. Plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from kit.stores.collections import Member, Visibility


class Status(StrEnum):
    """Where a document is on its way."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    """Another one, which a newer version wrote: shown, and left to that version."""
    KEPT = "kept"
    """Its file is stored and not read, to be copied into collections."""


@dataclass(frozen=True)
class Content:
    """A stored file."""

    sha256: str
    size_bytes: int
    media_type: str


class Lane(StrEnum):
    """Where a job waits among its tenant's. The lanes take turns, so that one upload by hand does not wait behind an import."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


@dataclass(frozen=True)
class Revision:
    """One reading of a file: fixed when its job is queued, so that a redelivered job rewrites the same revision."""

    revision_id: str
    number: int
    """Order of the revisions of one document, from 1."""
    content: Content
    lane: Lane = Lane.INTERACTIVE
    by: str = ""
    """Subject who asked for it; empty of a source, and where the service itself did."""
    queued_at: datetime | None = None
    """None in a record that an earlier version wrote."""


@dataclass(frozen=True)
class Failure:
    """Why a document could not be read."""

    reason: str
    message: str


class RevisionPhase(StrEnum):
    """Where a revision is in its life."""

    PENDING = "pending"
    ACTIVE = "active"
    REPLACED = "replaced"
    """It was searchable until a newer one was."""
    FAILED = "failed"
    SUPERSEDED = "superseded"
    """A newer one was asked for before it was made."""


@dataclass(frozen=True)
class PastRevision:
    """What stays known of a revision once its making has ended. Its text and its file may be gone."""

    revision: Revision
    state: str
    """A RevisionPhase, or the word of a newer version: how its making ended."""
    ended_at: datetime | None = None
    page_count: int = 0
    chunk_count: int = 0
    error: Failure | None = None


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
class Origin:
    """Which file of a source a document is."""

    source_id: str
    key: str
    """Names the file at its source."""
    version: str
    """Of the file, as its source tells it, when it was taken; empty: it has to be looked at again."""


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
    not_scanned: bool = False
    """Whether its file was taken although the scanner for viruses could not look into it."""
    origin: Origin | None = None
    """None of a document that was uploaded."""
    copy_of: str = ""
    """Document whose file it is a copy of."""
    copies: dict[str, str] = field(default_factory=dict)
    """Its copies, by collection. They may have been deleted since."""
    batch: str = ""
    """The caller's word under which it was copied last."""
    history: tuple[PastRevision, ...] = ()
    """Revisions whose making has ended, oldest first; the last MAX_PAST of them."""
    counted_for: tuple[str, ...] = ()
    """Under whose limits of storage it counts besides its tenant's, as `subject:ann`. Empty in a record of an earlier version."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """What a newer version wrote that this one does not know, as JSON; written back with every change."""

    @property
    def lane(self) -> Lane:
        """Of the pending revision."""
        return self.pending.lane if self.pending else Lane.INTERACTIVE


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
    owner: str = ""
    """Subject; empty in a record that a version before owners wrote, which is everybody's."""
    visibility: str = Visibility.PRIVATE.value
    """Who reads it besides its owner; a word that is unknown here is read as private."""
    deleting: bool = False
    members: tuple[Member, ...] = ()
    """Who has a role on it besides its owner."""
    memory: str = ""
    """Mode of memory of chats over it that name none; empty: as the service is set."""
    local_models_only: bool = False
    """Whether operations on it ask local models only."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """As a document's."""


@dataclass(frozen=True)
class IngestJob:
    """What the queue carries: the document and the revision to make of it."""

    tenant_id: str
    document_id: str
    revision_id: str
    lane: Lane = Lane.INTERACTIVE


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
