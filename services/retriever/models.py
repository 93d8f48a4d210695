"""The retriever's domain: chunks, the scope of a search, candidates, hits, and the pointer that makes a revision visible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""float32 [n, dimension], each row L2-normalised."""

Vector: TypeAlias = NDArray[np.float32]
"""float32 [dimension], L2-normalised."""


class Strategy(Enum):
    """Which engines a search asks."""

    DENSE = "dense"
    LEXICAL = "lexical"
    HYBRID = "hybrid"


class FusionMethod(Enum):
    """How ranked lists become one."""

    RRF = "rrf"
    CONVEX = "convex"


class RerankMode(Enum):
    """Whether candidates are scored again."""

    OFF = "off"
    ON = "on"
    AUTO = "auto"


class CacheOutcome(Enum):
    """Whether an answer was computed or remembered."""

    MISS = "miss"
    HIT = "hit"
    SEMANTIC = "semantic"
    OFF = "off"


@dataclass(frozen=True)
class BoundingBox:
    """The place of a line on a page, PDF points, origin at the top left."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float
    char_start: int = 0
    char_end: int = 0
    """0 where it is not known which characters of the chunk's text the rectangle is of."""


@dataclass(frozen=True)
class Chunk:
    """A piece of a document as it is shown and cited; the fields are those of the contract.

    `embedded_prefix`: what stood in front of the text when it was embedded, kept so that an index that was lost can be filled
    from the other one; None where it is not known.
    """

    chunk_id: str
    document_id: str
    collection_id: str
    revision_id: str
    ordinal: int
    document_name: str
    text: str
    page: int = 0
    heading_path: tuple[str, ...] = ()
    char_start: int = 0
    char_end: int = 0
    token_count: int = 0
    content_hash: str = ""
    bounding_boxes: tuple[BoundingBox, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    language: str = ""
    embedded_prefix: str | None = None


@dataclass(frozen=True)
class IndexedChunk:
    """A chunk on its way into the indexes, with the text that is searched."""

    chunk: Chunk
    embedded_text: str


@dataclass(frozen=True)
class IndexBatch:
    """Chunks with their vectors: row i belongs to chunk i."""

    chunks: Sequence[IndexedChunk]
    vectors: Vectors
    space: "EmbeddingSpace | None" = None
    """Where the vectors live; None for who needs no vectors."""


@dataclass(frozen=True)
class RevisionKey:
    """One revision of one document of one tenant: the unit that is written, counted, activated and removed."""

    tenant_id: str
    document_id: str
    revision_id: str


@dataclass(frozen=True)
class WriteKey:
    """One attempt at writing a revision. A later attempt replaces what earlier ones left."""

    revision: RevisionKey
    started_at_ms: int
    attempt_id: str


@dataclass(frozen=True)
class EmbeddingSpace:
    """What the vectors of an index have in common. Vectors of different spaces never meet."""

    model: str
    dimension: int


@dataclass(frozen=True)
class Languages:
    """Chunks in one of these languages, or, `are_left_out`, in none of them; those of unknown language are in none."""

    codes: tuple[str, ...]
    are_left_out: bool = False


QueryVectors = Mapping[EmbeddingSpace, Vectors]
"""Queries in each of the spaces that are searched: row i is query i in all of them."""


@dataclass(frozen=True)
class MetadataCondition:
    """One metadata field and the values it may have."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SearchScope:
    """What a search may see. Tenant and collections are never empty; the filters are, when not wanted.

    Dates are Unix seconds, `date_from_s` inclusive and `date_to_s` exclusive; a chunk without a date is outside of both.
    """

    tenant_id: str
    collection_ids: tuple[str, ...]
    document_ids: tuple[str, ...] = ()
    metadata: tuple[MetadataCondition, ...] = ()
    date_from_s: int | None = None
    date_to_s: int | None = None
    chunk_ids: tuple[str, ...] = ()
    hidden_document_ids: frozenset[str] = frozenset()
    """Documents of the collections that the caller may not read."""


@dataclass(frozen=True)
class LexicalQuery:
    """One query as the lexical engine gets it.

    Every chunk found contains each of `must_phrases` as `phrases.contains_phrase` says; with an empty `text` it contains
    nothing else of note. `languages`: ISO 639-1 codes of the languages that it may be in, likeliest first; empty when unknown.
    """

    text: str
    must_phrases: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchRequest:
    """A search as it was asked for; the fields are those of the contract. None: the service decides."""

    scope: SearchScope
    queries: tuple[str, ...]
    top_k: int | None = None
    strategy: Strategy | None = None
    rerank: RerankMode | None = None
    fusion: FusionMethod | None = None
    must_phrases: tuple[str, ...] = ()
    exact_quotes: bool = False
    query_weights: tuple[float, ...] = ()
    dense_weight: float | None = None
    lexical_weight: float | None = None
    diversity: float = 0.0
    min_score: float | None = None
    window: int = 0
    no_cache: bool = False
    explain: bool = False


@dataclass(frozen=True)
class SearchPlan:
    """What was decided before the search. `candidates` are asked of each engine for each query."""

    chunk_count: int
    strategy: Strategy
    fusion: FusionMethod
    dense_weight: float
    lexical_weight: float
    top_k: int
    candidates: int
    rerank: RerankMode
    rerank_depth: int
    reason: str
    weighs_by_language: bool = True
    """Whether the weights hold only for chunks in a language of the query; see `ranking.py` for the others."""


@dataclass(frozen=True)
class Degradation:
    """What failed and was worked around."""

    part: str
    reason: str
    message: str


@dataclass(frozen=True)
class Explanation:
    """Where a hit stood at each stage. Ranks are 1-based; None means that stage did not return it."""

    dense_rank: int | None = None
    dense_score: float | None = None
    lexical_rank: int | None = None
    lexical_score: float | None = None
    fused_rank: int | None = None
    fused_score: float | None = None
    rerank_rank: int | None = None
    rerank_score: float | None = None
    diversity_rank: int | None = None


@dataclass(frozen=True)
class Hit:
    """A found chunk. `score` is of the last stage that ranked it, comparable within one answer only."""

    chunk: Chunk
    score: float
    explanation: Explanation
    before: tuple[Chunk, ...] = ()
    after: tuple[Chunk, ...] = ()


@dataclass(frozen=True)
class DroppedHit:
    """A candidate that was found and left out at `stage`, which is one of the contract's."""

    chunk_id: str
    document_id: str
    stage: str
    reason: str


@dataclass(frozen=True)
class SearchResult:
    """The answer to a search, best hit first."""

    hits: tuple[Hit, ...]
    plan: SearchPlan
    rerank_reason: str
    degraded: tuple[Degradation, ...]
    dropped: tuple[DroppedHit, ...]
    timings_ms: Mapping[str, float]
    cache: CacheOutcome = CacheOutcome.MISS


@dataclass(frozen=True)
class ChunkWindow:
    """A chunk with its neighbours in reading order."""

    chunk: Chunk
    before: tuple[Chunk, ...]
    after: tuple[Chunk, ...]


@dataclass(frozen=True)
class Section:
    """Chunks of a document that follow each other, and how many its visible revision has in all: 0 when none is visible."""

    chunks: Sequence[Chunk]
    document_chunk_count: int


@dataclass(frozen=True)
class Activation:
    """A request for the pointer flip."""

    key: RevisionKey
    collection_id: str
    number: int
    chunk_count: int
    languages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pointer:
    """The visible revision of a document. `deleted` makes it a tombstone: nothing of the document is ever visible again.

    `embedding_model` made its vectors; empty for what was activated by a version that had one model for all. `copies` are other
    models in whose spaces all of its chunks lie, too (docs/adr/0018).

    `newer_fields` are those that a newer version stored: this one does not know them, and stores them again as they were.
    """

    revision_id: str
    number: int
    collection_id: str
    chunk_count: int
    activated_at_ms: int
    deleted: bool = False
    languages: tuple[str, ...] = ()
    embedding_model: str = ""
    copies: tuple[str, ...] = ()
    newer_fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def models(self) -> tuple[str, ...]:
        """All models in whose spaces it lies, the one that it came with first."""
        return (self.embedding_model, *self.copies)

    def shows(self, revision_id: str) -> bool:
        """Whether searches may show this revision."""
        return not self.deleted and self.revision_id == revision_id


@dataclass(frozen=True)
class PointerEntry:
    """A pointer as stored; None when what is stored cannot be read, which hides the document. `version` grows with every change
    and is what a compare-and-set compares."""

    tenant_id: str
    document_id: str
    pointer: Pointer | None
    version: int


@dataclass(frozen=True)
class PointerRemoved:
    """A pointer that is not stored any more, since `version`."""

    tenant_id: str
    document_id: str
    version: int


@dataclass(frozen=True)
class Amount:
    """So many documents with so many chunks."""

    documents: int = 0
    chunks: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.documents + other.documents, self.chunks + other.chunks)


@dataclass(frozen=True)
class CollectionStats:
    """Size of a collection over active revisions."""

    collection_id: str
    document_count: int
    chunk_count: int
