"""Documents and collections as tools see them, and which collections a call may touch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from services.tools.errors import ToolError


class DocumentState(StrEnum):
    """Where a document is on its way."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    """Searchable."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """One that only a newer ingest service knows."""


@dataclass(frozen=True)
class Document:
    """A document of the tenant."""

    document_id: str
    collection_id: str
    name: str
    state: DocumentState
    created_at: datetime
    updated_at: datetime
    chunk_count: int = 0
    """Chunks of the version that was read last; 0 until one was."""
    error_reason: str = ""
    """UPPER_SNAKE. A READY document with one is searchable in the version before."""
    error_message: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Fields given at its upload."""

    @property
    def is_settled(self) -> bool:
        return self.state in (DocumentState.READY, DocumentState.FAILED)


@dataclass(frozen=True)
class DocumentPage:
    """Some documents of a collection, newest first."""

    documents: Sequence[Document]
    next_page_token: str = ""
    """Empty on the last page."""


class CollectionNotAllowed(ToolError):
    """The call is bound to other collections."""

    reason = "COLLECTION_NOT_ALLOWED"


class CollectionMissing(ToolError):
    """The tenant has no such collection."""

    reason = "COLLECTION_NOT_FOUND"
