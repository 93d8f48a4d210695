"""What the worker reports of its work and learns from its neighbours: dead letters, the state of the indexes, the embedder. Plain
data."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
