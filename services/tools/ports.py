"""What the toolbox needs from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from services.tools.documents import Document, DocumentPage
from services.tools.models import ToolOutcome
from services.tools.passages.retrieval import Found, SearchQuery, Section, Window

Vector: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class NotedCall:
    """A call that was begun, and what came of it, if that is known."""

    fingerprint: str
    """Digest of tool and arguments: a call id stands for one call. Empty when the note cannot be read."""
    begun_at: datetime
    outcome: ToolOutcome | None = None
    forgotten: bool = False
    """Whether its outcome was erased, with the run that it was a part of. Nothing is noted of it again."""


class CallStore(Protocol):
    """Calls by tenant and call id. Raises Unavailable."""

    async def begin(self, tenant_id: str, call_id: str, call: NotedCall) -> NotedCall | None:
        """Notes that a call is about to be made. None when it was noted; what is noted already when there is something, which is
        `forgotten` when its caller is."""
        ...

    async def get(self, tenant_id: str, call_id: str) -> NotedCall | None: ...

    async def end(self, tenant_id: str, call_id: str, call: NotedCall) -> None:
        """Notes what came of it, unless it is forgotten."""
        ...

    async def forget(self, tenant_id: str, caller: str) -> None:
        """Erases what came of the calls whose ids begin with `caller`, up to a slash, and refuses those that still arrive. Harmless
        when repeated."""
        ...


class Retriever(Protocol):
    """Passages of the tenant's documents. Raises ToolError."""

    async def search(self, query: SearchQuery) -> Found:
        """The best passages, with what the search had to do without."""
        ...

    async def fetch(self, chunk_ids: Sequence[str], window: int = 0) -> Sequence[Window]:
        """Chunks with up to `window` neighbours (at most 10) on each side, in the order of the ids (1 to 200). What is not there
        (any more) is left out."""
        ...

    async def section(self, document_id: str, first_ordinal: int, chunk_count: int) -> Section:
        """Chunks of a document in reading order, from a position on; at most 200."""
        ...


@dataclass(frozen=True)
class EmbeddedQuery:
    """What a query means to a model, comparable with passages of the same one."""

    vector: Vector
    """L2-normalised."""
    model: str


@dataclass(frozen=True)
class ClaimVerdict:
    """What a judge says of a claim."""

    probability: float
    """That its passages carry it, 0 to 1."""
    passage: int
    """Position of the passage that decides."""
    quote: str
    """The words of it that decide; may be empty."""


@dataclass(frozen=True)
class JudgedClaims:
    """The verdicts on claims, in their order, and the judge."""

    judge: str
    measured: bool
    """Whether the judge's error is small enough for it to say that a source supports a claim."""
    verdicts: Sequence[ClaimVerdict]


class ModelServer(Protocol):
    """Embeddings, rerank scores and judgements of claims. Raises ToolError."""

    async def judge(self, claims: Sequence[str], passages: Sequence[tuple[str, str]]) -> JudgedClaims:
        """Each claim against all passages together; a passage is a heading and a text."""
        ...

    async def rerank(
        self, query_text: str, texts: Sequence[str], content_hashes: Sequence[str] = ()
    ) -> Sequence[float]:
        """One score a text, higher is better; comparable with each other only. `content_hashes`: none, or one a text."""
        ...

    async def embed_query(self, text: str) -> EmbeddedQuery:
        """By the model for new texts."""
        ...

    async def embed_passages(self, texts: Sequence[str], model: str = "") -> Sequence[Vector]:
        """One a text, L2-normalised, by a model or by that for new texts."""
        ...


@dataclass(frozen=True)
class Remembered:
    """Something that is remembered of the caller."""

    source: str
    """`fact`, `message` of a thread, or `note`."""
    text: str
    said_at: str
    """ISO 8601; empty where it is not known."""
    thread_id: str = ""
    document_id: str = ""
    """The document of a note."""
    document_name: str = ""
    fact_id: str = ""
    message_id: str = ""


class Memory(Protocol):
    """What is remembered of the caller. Raises ToolError."""

    async def search(self, query: str, top_k: int) -> Sequence[Remembered]:
        """What fits a text, best first."""
        ...


class Documents(Protocol):
    """Documents and collections of the tenant in whose name the tool was called. Every method raises ToolError, which says in plain
    words what the other service refused, or that it does not answer."""

    async def keep(self, collection_id: str, name: str, text: str, *, call_key: str, append: bool = False) -> Document:
        """Stores `text` as a document, and answers before it is searchable. A document of that name gets the new text; `append`: it
        keeps its own in front, also when another caller writes. A repeated call with the same `call_key` (visible ASCII) and
        text returns the same document. Raises CollectionMissing."""
        ...

    async def index_source_file(self, path: str, collection_ids: Sequence[str]) -> Document:
        """Takes the file of a source at `path`, which begins with the source's name, as it is now, and answers before it is
        searchable. Empty `collection_ids`: of every source that the caller knows. Harmless when repeated."""
        ...

    async def settled(self, document_id: str, *, timeout_s: float) -> Document | None:
        """The document once it is READY or FAILED, or as it is after `timeout_s`; None when it has been deleted."""
        ...

    async def get(self, document_id: str) -> Document | None: ...

    async def page(self, collection_id: str, *, page_size: int, page_token: str = "") -> DocumentPage:
        """Documents of a collection, newest first. Raises CollectionMissing."""
        ...

    async def delete(self, document_id: str) -> bool:
        """Removes a document everywhere. False when there is none (any more)."""
        ...

    async def collection_ids(self) -> Sequence[str]:
        """All collections that the caller may read, sorted."""
        ...

    async def create_collection(self, collection_id: str) -> None:
        """Harmless when it is there."""
        ...
