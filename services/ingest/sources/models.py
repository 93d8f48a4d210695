"""What is remembered of a source, and what a source says of its files. Plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from services.ingest.documents.models import Document, Failure

FAILING_KEPT = 200
"""Files that a record names as failing. All are counted."""


@dataclass(frozen=True)
class FileReaders:
    """Who may read a file at its source. With nobody in it, owners of the collection alone read its document."""

    subjects: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    is_public: bool = False
    """All who may read the collection."""


@dataclass(frozen=True)
class SourceFile:
    """A file as its source lists it."""

    key: str
    """Names it at the source for as long as it is there, as its path."""
    version: str = ""
    """Another one whenever the content may be another; empty when the source cannot tell, and the file is read each time."""
    size_bytes: int = 0
    """0 when unknown."""
    name: str = ""
    """Of its document, below the source's name; empty: its key."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    encoding: str = ""
    """Of a text, as the source names it; empty when unknown."""
    settled_at: float = 0.0
    """Seconds since 1970 from which on the version tells every change. What is read before is looked at again by the next sync."""
    readers: FileReaders | None = None
    """None: the source does not say, and the document keeps the list that it has."""


@dataclass(frozen=True)
class FailingFile:
    """A file that could not be taken. The next sync tries again."""

    key: str
    reason: str
    """UPPER_SNAKE."""
    message: str
    """What happened and what to do."""


@dataclass(frozen=True)
class SourceListing:
    """What a source has, or what has changed there since a cursor."""

    files: Sequence[SourceFile]
    is_complete: bool = True
    """Whether a file that is not listed is gone."""
    gone: Sequence[str] = ()
    """Keys of files that are gone, where the listing is not complete."""
    problems: Sequence[FailingFile] = ()
    """What cannot be listed. A file whose key begins with such a key and "/" is not taken to be gone."""
    cursor: str = ""
    """Where the next listing goes on; empty: from the beginning."""


@dataclass(frozen=True)
class Counts:
    """What a sync has done."""

    total: int = 0
    """Files that it has to take or to remove, as far as known."""
    done: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    failed: int = 0


@dataclass(frozen=True)
class SyncState:
    """How a source's syncs went."""

    began_at: datetime | None = None
    """Of the sync under way, or of one that was cut off; None between two."""
    ended_at: datetime | None = None
    """Of the last one."""
    next_at: datetime | None = None
    """When the next is due; None: at once."""
    counts: Counts = Counts()
    """Of the sync under way, else of the last one."""
    failing: tuple[FailingFile, ...] = ()
    """Files that the last sync could not take, at most FAILING_KEPT."""
    failing_count: int = 0
    cursor: str = ""
    error: Failure | None = None
    """Why the last sync as a whole failed."""


@dataclass(frozen=True)
class AccessState:
    """How refreshing who may read a source's documents went."""

    refreshed_at: datetime | None = None
    """When the source last said who may read its files."""
    next_at: datetime | None = None
    """When it is asked again; None: once its interval has passed since it was made."""
    error: Failure | None = None
    """Why it did not say it since."""
    is_withheld: bool = False
    """Whether owners of the collection alone read its documents until the source says it again."""


@dataclass(frozen=True)
class SourceRecord:
    """A source: where its files are, where they go, and how that goes."""

    tenant_id: str
    source_id: str
    kind: str
    name: str
    """The folder of its documents' names."""
    collection_id: str
    owner: str
    """Subject who made it."""
    created_at: datetime
    every_s: int
    settings: dict[str, str] = field(default_factory=dict)
    sealed_secrets: str = ""
    """Base64; empty where there are none."""
    secret_names: tuple[str, ...] = ()
    collection_made_at: datetime | None = None
    """Another collection of that id is not filled."""
    paused: bool = False
    deleting: bool = False
    requested_at: datetime | None = None
    """When a person wanted a sync that has not begun."""
    accepts_empty: bool = False
    """Whether that sync may remove all files."""
    sync: SyncState = SyncState()
    access: AccessState = AccessState()
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """As a document's."""

    @property
    def place(self) -> tuple[str, str]:
        """Tenant and id."""
        return self.tenant_id, self.source_id


class SourceState(StrEnum):
    """What a source is doing."""

    WAITING = "waiting"
    SYNCING = "syncing"
    PAUSED = "paused"
    FAILED = "failed"
    """As waiting, and the last sync failed as a whole."""
    REMOVING = "removing"


def state_of(record: SourceRecord) -> SourceState:
    """The most telling one."""
    if record.deleting:
        return SourceState.REMOVING
    if record.paused:
        return SourceState.PAUSED
    if record.sync.began_at:
        return SourceState.SYNCING
    return SourceState.FAILED if record.sync.error else SourceState.WAITING


@dataclass(frozen=True)
class SourceReport:
    """A source with what its documents say."""

    record: SourceRecord
    file_count: int = 0
    """Documents from it."""
    pending_count: int = 0
    """Those that are being indexed."""
    rejected_count: int = 0
    """Those that could not be read."""
    rejected: Sequence[Document] = ()
    """Some of them, where one source was asked for."""
    access_every_s: float = 0.0
    """How often the source is asked who may read its files; 0 where it does not say it."""
