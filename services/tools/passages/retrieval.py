"""What tools ask of the search, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from services.tools.models import Passage


class Strategy(StrEnum):
    """Which engines a search asks."""

    AUTO = "auto"
    """The size of the collections decides."""
    DENSE = "dense"
    LEXICAL = "lexical"
    HYBRID = "hybrid"


@dataclass(frozen=True)
class SearchQuery:
    """A search. All conditions must hold."""

    queries: Sequence[str]
    """1 to 8, the user's own words first; their rankings are fused."""
    collection_ids: Sequence[str]
    """1 to 64."""
    top_k: int
    strategy: Strategy = Strategy.AUTO
    document_ids: Sequence[str] = ()
    metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Fields that must equal one of the values."""
    date_from: datetime | None = None
    """Only passages whose metadata field "date" is at or after this."""
    date_to: datetime | None = None
    """Only passages whose date is before this."""
    must_phrases: Sequence[str] = ()
    """Each is in every passage."""


@dataclass(frozen=True)
class Degradation:
    """What could not be done as asked, and what was done instead."""

    part: str
    reason: str
    """UPPER_SNAKE."""
    message: str
    """A sentence for a person."""


@dataclass(frozen=True)
class Found:
    """Passages, best first."""

    passages: Sequence[Passage]
    degraded: Sequence[Degradation] = ()
    strategy: str = ""
    """The engines that were asked: dense, lexical or hybrid."""


@dataclass(frozen=True)
class Window:
    """A chunk with its neighbours in reading order."""

    passage: Passage
    before: Sequence[Passage] = ()
    after: Sequence[Passage] = ()


@dataclass(frozen=True)
class Section:
    """Chunks of a document that follow each other."""

    passages: Sequence[Passage]
    document_chunk_count: int
    """Of the whole document; 0 when there is none (any more)."""
