"""The embedding model of a collection and its change, as the API shows and takes them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from services.gateway.schemas.fields import NOT_BLANK, IndexedId, RequestBody
from services.gateway.schemas.times import Moment


class EvaluationQuestion(RequestBody):
    """A question with the documents that answer it."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"text": "Wann wurde der Turm gebaut?", "document_ids": ["0f3a5c7e9b1d"]}}
    )

    text: Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK] = Field(description="The question.")
    document_ids: list[IndexedId] = Field(
        min_length=1, max_length=8, description="Documents of the collection that answer it."
    )


class EvaluationOrder(RequestBody):
    """What both models are to be compared on."""

    model_config = ConfigDict(json_schema_extra={"example": {"margin": 0.02}})

    questions: list[EvaluationQuestion] = Field(
        default=[],
        max_length=200,
        description="Empty: sentences of up to a hundred passages of the collection, each of which should find its own.",
    )
    margin: float = Field(
        default=0.02,
        ge=0,
        le=1,
        description="By how much the new model's nDCG@10 may be below the old one's for a swap.",
    )


class EmbeddingChange(EvaluationOrder):
    """A change to another model."""

    model_config = ConfigDict(json_schema_extra={"example": {"model": "multilingual-e5-small-q4-centred"}})

    model: str = Field(min_length=1, max_length=200, description="One of `available_models`.")


class EmbeddingSwap(RequestBody):
    """How models are swapped."""

    model_config = ConfigDict(json_schema_extra={"example": {"force": False}})

    force: bool = Field(default=False, description="Whether to swap even where the new model finds less.")


class EmbeddingQuality(BaseModel):
    """How well a model finds what it should: means over the questions, 0 to 1."""

    ndcg_at_10: float = Field(description="Normalised discounted cumulative gain at 10.")
    mrr_at_10: float = Field(description="Mean reciprocal rank at 10.")


class EmbeddingComparison(BaseModel):
    """Both models by one way of searching."""

    before: EmbeddingQuality = Field(description="The model that was searched when they were compared.")
    after: EmbeddingQuality = Field(description="The model that was being built.")


class EmbeddingEvaluation(BaseModel):
    """What a comparison came to."""

    before_model: str = Field(description="Model that was searched when they were compared.")
    after_model: str = Field(description="Model that was being built.")
    question_count: int = Field(description="Questions asked.")
    is_made: bool = Field(description="Whether they were made of the collection, because none were given.")
    vectors: EmbeddingComparison = Field(description="By vectors alone.")
    both: EmbeddingComparison = Field(description="By vectors and words, before reranking.")
    evaluated_at: Moment | None = Field(description="When it was done.")
    worse: list[str] = Field(
        description="Where the new model is below the old one by more than the margin; empty: nowhere."
    )


class EmbeddingAmount(BaseModel):
    """So much of a collection."""

    document_count: int = Field(description="Documents.")
    chunk_count: int = Field(description="Passages.")


class Embedding(BaseModel):
    """The embedding model of a collection, and how far a change of it has come."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "collection_id": "contracts",
                "model": "all-MiniLM-L6-v2-int8",
                "is_chosen": True,
                "stage": "building",
                "other_model": "multilingual-e5-small-q4-centred",
                "whole": {"document_count": 120, "chunk_count": 4100},
                "in_model": {"document_count": 120, "chunk_count": 4100},
                "in_other_model": {"document_count": 31, "chunk_count": 1020},
                "searched": {"all-MiniLM-L6-v2-int8": {"document_count": 120, "chunk_count": 4100}},
                "evaluation": None,
                "margin": 0.02,
                "problem": None,
                "began_at": "2026-01-31T12:00:00.000Z",
                "available_models": ["all-MiniLM-L6-v2-int8", "multilingual-e5-small-q4-centred"],
            }
        }
    )

    collection_id: str = Field(description="The collection.")
    model: str | None = Field(description="Model that its documents are searched with; null where that is not known.")
    is_chosen: bool = Field(
        description="Whether it was chosen for this collection. If not, the collection follows the installation: each document "
        "is searched with the model that it came with."
    )
    stage: str | None = Field(
        description="`settled`; `building` the other model's vectors; `evaluating` both; `ready` to swap; `swapped`, with the "
        "model of before kept; `dropping` the other one. Null: one that only a newer version knows."
    )
    other_model: str | None = Field(description="The model that is being built, is built, or is kept.")
    whole: EmbeddingAmount = Field(description="The whole collection.")
    in_model: EmbeddingAmount = Field(description="What of it has vectors of `model`.")
    in_other_model: EmbeddingAmount = Field(description="What of it has vectors of `other_model`: the progress.")
    searched: dict[str, EmbeddingAmount] = Field(description="What is searched with each model now.")
    evaluation: EmbeddingEvaluation | None = Field(description="The last comparison of this change.")
    margin: float = Field(description="By how much the new model's nDCG@10 may be below the old one's.")
    problem: str | None = Field(description="What keeps the change from going on at the moment.")
    began_at: Moment | None = Field(description="When the change was begun.")
    available_models: list[str] = Field(
        description="Models that there are, that of the installation first; empty when the model server cannot be asked."
    )

    @field_validator("model", "other_model", "problem", mode="before")
    @classmethod
    def _nothing(cls, value: Any) -> Any:
        return value or None
