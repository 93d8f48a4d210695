"""Search and passages as clients see them."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from services.gateway.schemas.fields import WHOLE, CollectionIds, DocumentIds, Pattern, Question, RequestBody

MAX_QUERIES = 8

Phrase = Annotated[str, Field(min_length=1, max_length=500)]
Weight = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
MetadataKey = Annotated[str, Field(min_length=1, max_length=256)]
Moment = Annotated[
    str,
    Pattern(
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]+(?:Z|[+-][0-9:]+)?)?$",
        "is no ISO 8601 date or time; write 2024-12-31 or 2024-12-31T18:00:00Z",
    ),
]
"""An ISO 8601 date, or a date with a time."""


class Degradation(BaseModel):
    """What could not be done as asked, and what was done instead."""

    part: str = Field(description="`dense`, `lexical`, `rerank`, `llm`, `memory` or `durability`.")
    reason: str = Field(description="A constant UPPER_SNAKE word.")
    message: str = Field(description="One sentence for a person.")


class BoundingBox(BaseModel):
    """The place of a line on a page, in PDF points (1/72 inch), origin at the top left of the page."""

    page: int | None = Field(description="1-based.")
    x0: float = Field(description="Left edge.")
    y0: float = Field(description="Top edge.")
    x1: float = Field(description="Right edge.")
    y1: float = Field(description="Bottom edge.")
    char_start: int = Field(default=0, description="First character of the line in the passage's `text`.")
    char_end: int = Field(
        default=0, description="One past the last; 0 where it is not known which characters the rectangle is of."
    )


class Origin(BaseModel):
    """Who wrote a passage, when and where. What is not known is empty."""

    channel: str = Field(description="Chat or channel of a message.")
    author: str = Field(description="Author.")
    date: str = Field(description="ISO 8601; in UTC for messages.")
    message_id: str | None = Field(description="Id in its channel, or the Message-ID of an e-mail.")
    read_at: str | None = Field(default=None, description="When a page of the web was read, ISO 8601.")


class MetadataFilters(RequestBody):
    """Restricts searches by what is known of passages. All conditions must hold."""

    metadata: dict[MetadataKey, str | Annotated[list[str], Field(min_length=1, max_length=100)]] = Field(
        default_factory=dict,
        max_length=32,
        description="Fields that must equal one of the values, keys as given at upload.",
    )
    date_from: Moment | None = Field(
        default=None,
        description="Only passages whose metadata field `date` is at or after this ISO 8601 date or time, UTC unless it says so.",
        examples=["2024-01-01"],
    )
    date_to: Moment | None = Field(
        default=None,
        description="Only passages whose `date` is before this time or, when it is a date, not after that day. With either, "
        "passages without a date are left out.",
        examples=["2024-12-31"],
    )

    @field_validator("date_from", "date_to")
    @classmethod
    def _check_date(cls, value: str | None) -> str | None:
        if value is not None:
            start_of(value)
        return value


def start_of(value: str) -> datetime:
    """The moment that an ISO 8601 date or time begins. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is no ISO 8601 date or time; write 2024-12-31 or 2024-12-31T18:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def end_of(value: str) -> datetime:
    """The moment before which it must be: the next midnight after a date, and a time itself. Raises ValueError."""
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return start_of(value)
    return datetime.combine(day, time.min, UTC) + timedelta(days=1)


class Filters(MetadataFilters):
    """Restricts a search inside both engines. All conditions must hold."""

    document_ids: DocumentIds = Field(default_factory=list)


class EngineWeights(RequestBody):
    """How much each engine counts when their lists are fused. Only the ratio matters."""

    dense: Weight = Field(description="Weight of what vectors find, 0 or more.")
    lexical: Weight = Field(description="Weight of what words find, 0 or more.")

    @model_validator(mode="after")
    def _check_sum(self) -> Self:
        if self.dense + self.lexical <= 0:
            raise ValueError("one of the weights must be over 0")
        return self


class SearchRequest(RequestBody):
    """A search. What is null is decided by the size of the collections and the service's settings."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"query": "notice period", "collection_ids": ["default"], "top_k": 5, "explain": True},
            "anyOf": [
                {"required": ["query"], "properties": {"query": {"type": "string"}}},
                {"required": ["queries"], "properties": {"queries": {"minItems": 1}}},
            ],
        },
    )

    query: Question | None = Field(
        default=None,
        description="What to look for. What it has in quotation marks must be in each hit, as in `must`.",
    )
    queries: list[Question] = Field(
        default_factory=list,
        max_length=MAX_QUERIES,
        description="The same in several wordings, instead of `query` or beside it; their lists are fused.",
    )
    query_weights: list[Weight] = Field(
        default_factory=list,
        max_length=MAX_QUERIES,
        description="One weight a query, `query` first; empty: all count alike.",
    )
    collection_ids: CollectionIds = Field(default=["default"])
    must: list[Phrase] = Field(
        default_factory=list,
        max_length=8,
        description="Phrases that each hit contains, word for word; case, accents and punctuation do not count.",
    )
    top_k: Annotated[int, Field(ge=1, le=200), WHOLE] | None = Field(
        default=None, description="Hits wanted; null: 5 in collections under 500 passages, else 10."
    )
    filters: Filters | None = Field(default=None, description="Further restriction.")
    explain: bool = Field(
        default=False,
        description="Whether each hit tells where it stood at each stage, and the answer what was decided and dropped.",
    )
    strategy: Literal["dense", "lexical", "hybrid"] | None = Field(
        default=None, description="Engines; null means the default."
    )
    rerank: Literal["on", "off", "auto"] | None = Field(
        default=None, description="Whether to rerank; `auto`: when it pays; null means the default."
    )
    fusion: Literal["rrf", "convex"] | None = Field(
        default=None, description="How lists are fused; null means the default."
    )
    weights: EngineWeights | None = Field(default=None, description="How much each engine counts.")
    diversity: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of diversity against relevance when hits are chosen; 0 switches it off, 0.5 is usual.",
    )
    min_score: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="Least similarity (cosine) of a hit; null: only what vectors alone found is held to the model's threshold.",
    )
    window: Annotated[int, Field(ge=0, le=10), WHOLE] = Field(
        default=0, description="Neighbours of each hit on each side, in `before` and `after`."
    )
    cache: bool = Field(default=True, description="Whether a remembered answer will do, while nothing has changed.")

    @model_validator(mode="after")
    def _check_queries(self) -> Self:
        count = len(self.all_queries)
        if not 1 <= count <= MAX_QUERIES:
            raise ValueError(
                f"a search has 1 to {MAX_QUERIES} queries, this one {count}; give `query`, `queries` or both"
            )
        if self.query_weights and len(self.query_weights) != count:
            raise ValueError(f"{len(self.query_weights)} query_weights came with {count} queries; give one a query")
        if self.query_weights and not sum(self.query_weights):
            raise ValueError("one of the query_weights must be over 0")
        return self

    @property
    def all_queries(self) -> list[str]:
        """`query` first."""
        return [*([self.query] if self.query is not None else []), *self.queries]


class Explanation(BaseModel):
    """Where a hit stood at each stage. Ranks are 1-based; null means that stage did not return it."""

    dense_rank: int | None = Field(default=None, description="Rank by vectors.")
    dense_score: float | None = Field(default=None, description="Cosine similarity.")
    lexical_rank: int | None = Field(default=None, description="Rank by words.")
    lexical_score: float | None = Field(default=None, description="BM25 score.")
    fused_rank: int | None = Field(default=None, description="Rank after fusion.")
    fused_score: float | None = Field(default=None, description="Score after fusion.")
    rerank_rank: int | None = Field(default=None, description="Rank after reranking.")
    rerank_score: float | None = Field(default=None, description="The reranker's score.")
    diversity_rank: int | None = Field(default=None, description="With `diversity`: the turn in which it was chosen.")


class Passage(BaseModel):
    """A piece of a document: what is searched, shown and cited."""

    chunk_id: str | None = Field(description="Unique within the tenant, fresh with every revision of the document.")
    document_id: str | None = Field(description="Its document.")
    document_name: str = Field(description="Name of its document.")
    collection_id: str | None = Field(description="Its collection.")
    text: str = Field(
        description="The text as shown and cited. The rest of a table's row that was cut begins with the row's name."
    )
    page: int | None = Field(description="First page it stands on, 1-based; null where the format has no pages.")
    heading_path: list[str] = Field(description="Headings above it, outermost first.")
    ordinal: int = Field(description="Position in the document, from 0.")
    char_start: int = Field(description="First character in the document's cleaned text.")
    char_end: int = Field(description="One past the last character.")
    token_count: int = Field(description="Tokens, as the embedding model counts.")
    bounding_boxes: list[BoundingBox] = Field(description="Its lines on their pages.")
    metadata: dict[str, str] = Field(description="Filterable fields.")
    language: str = Field(description="BCP 47 code; empty when unknown.")


class Hit(Passage):
    """A found passage."""

    score: float | None = Field(description="Score of the last stage; comparable within one answer only.")
    dense_score: float | None = Field(default=None, description="Cosine of query and passage, where known.")
    before: list[Passage] = Field(default_factory=list, description="With `window`: those before it, in reading order.")
    after: list[Passage] = Field(default_factory=list, description="With `window`: those after it, in reading order.")
    explain: Explanation | None = Field(default=None, description="With `explain`: where it stood at each stage.")


class DroppedHit(BaseModel):
    """A candidate that was found and left out."""

    chunk_id: str | None = Field(description="The passage.")
    document_id: str | None = Field(description="Its document.")
    stage: str = Field(
        description="`revision`, `must_phrase`, `gate`, `duplicate`, `near_duplicate`, `diversity` or `top_k`."
    )
    reason: str = Field(description="One sentence for a person.")


class SearchPlan(BaseModel):
    """What was decided before the search, and why."""

    chunk_count: int = Field(description="Passages in the collections.")
    strategy: str = Field(description="Engines.")
    fusion: str = Field(description="How lists are fused.")
    weights: EngineWeights = Field(description="How much each engine counts, summing up to 1.")
    top_k: int = Field(description="Hits wanted.")
    candidates: int = Field(description="Candidates asked of each engine for each query.")
    rerank: str = Field(description="`on`, `off` or `auto`.")
    rerank_depth: int = Field(description="Candidates to rerank.")
    reason: str = Field(description="Why, for a person.")
    rerank_reason: str = Field(description="Why it was, or was not, reranked, for a person.")


class SearchResponse(BaseModel):
    """The answer to a search."""

    hits: list[Hit] = Field(description="Best first.")
    timings_ms: dict[str, Any] = Field(description="Milliseconds by stage.")
    strategy: str | None = Field(description="Engines that were asked.")
    fusion: str | None = Field(description="The fusion that was used.")
    degraded: list[Degradation] = Field(description="What failed and was worked around.")
    dropped: list[DroppedHit] = Field(description="With `explain`: candidates that were left out.")
    cache: str | None = Field(
        default=None,
        description="`miss`: computed now; `hit`: remembered; `semantic`: remembered of the same question in other words; "
        "`off`: computed now, as wanted.",
    )
    plan: SearchPlan | None = Field(default=None, description="With `explain`: what was decided before the search.")


class PassageWindow(BaseModel):
    """A passage with its neighbours in the document."""

    chunk: Passage = Field(description="The passage that was asked for.")
    before: list[Passage] = Field(description="Those before it, in reading order.")
    after: list[Passage] = Field(description="Those after it, in reading order.")
