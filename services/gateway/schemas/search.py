"""Search and passages as clients see them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Degradation(BaseModel):
    """What could not be done as asked, and what was done instead."""

    part: str = Field(description="`dense`, `lexical`, `rerank`, `llm`, `memory` or `durability`.")
    reason: str = Field(description="A constant UPPER_SNAKE word.")
    message: str = Field(description="One sentence for a person.")


class BoundingBox(BaseModel):
    """A rectangle on a page, in PDF points (1/72 inch), origin at the top left."""

    page: int | None = Field(description="1-based.")
    x0: float = Field(description="Left edge.")
    y0: float = Field(description="Top edge.")
    x1: float = Field(description="Right edge.")
    y1: float = Field(description="Bottom edge.")


class Filters(BaseModel):
    """Restricts a search inside both engines. All conditions must hold."""

    model_config = ConfigDict(extra="forbid")

    document_ids: list[str] = Field(default_factory=list, max_length=1000, description="Any of these; empty means all.")
    metadata: dict[str, str | list[str]] = Field(
        default_factory=dict, description="Fields that must equal one of the values, keys as given at upload."
    )


class SearchRequest(BaseModel):
    """A search."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"query": "notice period", "collection_ids": ["default"], "top_k": 5, "explain": True}
        },
    )

    query: str = Field(min_length=1, max_length=8000, description="What to look for.")
    collection_ids: list[str] = Field(default=["default"], min_length=1, max_length=64, description="Where to look.")
    top_k: int = Field(default=10, ge=1, le=200, description="Hits wanted.")
    filters: Filters | None = Field(default=None, description="Further restriction.")
    explain: bool = Field(default=False, description="Whether each hit tells where it stood at each stage.")
    strategy: Literal["dense", "lexical", "hybrid"] | None = Field(
        default=None, description="Engines; null means the default."
    )
    rerank: Literal["on", "off"] | None = Field(default=None, description="Whether to rerank; null means the default.")
    fusion: Literal["rrf", "convex"] | None = Field(
        default=None, description="How lists are fused; null means the default."
    )


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


class Passage(BaseModel):
    """A piece of a document: what is searched, shown and cited."""

    chunk_id: str | None = Field(description="Unique within the tenant, fresh with every revision of the document.")
    document_id: str | None = Field(description="Its document.")
    document_name: str = Field(description="Name of its document.")
    collection_id: str | None = Field(description="Its collection.")
    text: str = Field(description="The text as shown and cited.")
    page: int | None = Field(description="First page it stands on, 1-based; null where the format has no pages.")
    heading_path: list[str] = Field(description="Headings above it, outermost first.")
    ordinal: int = Field(description="Position in the document, from 0.")
    char_start: int = Field(description="First character in the document's cleaned text.")
    char_end: int = Field(description="One past the last character.")
    token_count: int = Field(description="Tokens, as the embedding model counts.")
    bounding_boxes: list[BoundingBox] = Field(description="Where it stands on its pages.")
    metadata: dict[str, str] = Field(description="Filterable fields.")
    language: str = Field(description="BCP 47 code; empty when unknown.")


class Hit(Passage):
    """A found passage."""

    score: float | None = Field(description="Score of the last stage; comparable within one answer only.")
    dense_score: float | None = Field(default=None, description="Cosine of query and passage, where vectors found it.")
    explain: Explanation | None = Field(default=None, description="With `explain`: where it stood at each stage.")


class DroppedHit(BaseModel):
    """A candidate that was found and left out."""

    chunk_id: str | None = Field(description="The passage.")
    document_id: str | None = Field(description="Its document.")
    stage: str = Field(description="`revision`, `duplicate` or `top_k`.")
    reason: str = Field(description="One sentence for a person.")


class SearchResponse(BaseModel):
    """The answer to a search."""

    hits: list[Hit] = Field(description="Best first.")
    timings_ms: dict[str, Any] = Field(description="Milliseconds by stage.")
    strategy: str | None = Field(description="Engines that were asked.")
    fusion: str | None = Field(description="The fusion that was used.")
    degraded: list[Degradation] = Field(description="What failed and was worked around.")
    dropped: list[DroppedHit] = Field(description="With `explain`: candidates that were left out.")


class PassageWindow(BaseModel):
    """A passage with its neighbours in the document."""

    chunk: Passage = Field(description="The passage that was asked for.")
    before: list[Passage] = Field(description="Those before it, in reading order.")
    after: list[Passage] = Field(description="Those after it, in reading order.")
