"""Jobs and dead letters as clients see them."""

from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from services.gateway.schemas.documents.documents import Document
from services.gateway.schemas.fields import CollectionFilter, RequestBody
from services.gateway.schemas.times import Moment

Outcome = Literal["requeued", "already_requeued", "document_deleted", "superseded"]


class JobCounts(BaseModel):
    """Documents by where they are, at this moment."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "queued_count": 12,
                "processing_count": 8,
                "dead_letter_count": 1,
                "oldest_queued_at": "2026-01-31T12:00:00.000Z",
            }
        }
    )

    queued_count: int = Field(description="Documents whose job waits.")
    processing_count: int = Field(description="Documents that a worker has in hand.")
    dead_letter_count: int = Field(description="Jobs that were given up and wait for you.")
    oldest_queued_at: Moment | None = Field(
        default=None, description="Since when the document that has waited longest waits; null when none does."
    )


class DeadLetter(BaseModel):
    """A job that was given up. A file that cannot be read is none: its document is `failed`, and trying again would not help."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "5d0c7be9f2c1",
                "document_id": "9f1c2d3e4b5a",
                "collection_id": "default",
                "document_name": "handbook.pdf",
                "reason": "WORKER_DIED",
                "message": "reading this file ended the worker 5 times; it is probably damaged",
                "stage": "embed",
                "failures": 0,
                "deaths": 5,
                "first_failed_at": "2026-01-31T12:00:00.000Z",
                "last_failed_at": "2026-01-31T12:02:00.000Z",
            }
        }
    )

    id: str = Field(validation_alias=AliasChoices("id", "dead_letter_id"), description="Its id in paths.")
    document_id: str | None = Field(description="Its document.")
    collection_id: str | None = Field(description="The document's collection.")
    document_name: str = Field(description="The document's name.")
    reason: str = Field(description="A constant UPPER_SNAKE word.")
    message: str = Field(description="What happened last, for a person.")
    stage: str = Field(
        default="",
        description="Where it was: `parse`, `clean`, `chunk`, `embed`, `index`, `activate`; empty when unknown.",
    )
    failures: int = Field(description="Tries that ended in an error.")
    deaths: int = Field(description="Tries that ended with the death of the worker.")
    first_failed_at: Moment | None = Field(default=None, description="End of the first failed try.")
    last_failed_at: Moment | None = Field(default=None, description="End of the last one.")


class DeadLetterList(BaseModel):
    """One page of dead letters."""

    dead_letters: list[DeadLetter] = Field(description="Newest first.")
    next_page_token: str | None = Field(description="For the next page; null on the last.")


class Requeued(BaseModel):
    """What became of a dead letter."""

    outcome: Outcome = Field(
        description="`requeued`: its document is queued under a fresh revision. `already_requeued`: it was before. "
        "`document_deleted` and `superseded` (uploaded or read again since): there is nothing to queue, the letter is dropped."
    )
    document: Document | None = Field(description="The document as it is now; null when it has been deleted.")


class RequeueMany(RequestBody):
    """Which dead letters to queue again; without anything, all."""

    model_config = ConfigDict(json_schema_extra={"example": {"collection_id": "default", "reason": "WORKER_DIED"}})

    collection_id: CollectionFilter = Field(default="", description="Only this collection; empty means all.")
    reason: str = Field(default="", max_length=64, description="Only this reason; empty means all.")


class RequeuedMany(BaseModel):
    """What became of many dead letters."""

    requeued_count: int = Field(description="Documents queued again.")
    dropped_count: int = Field(description="Letters dropped: their document has been deleted or read again since.")
    remaining_count: int = Field(description="Letters that match and were not reached; ask again while this is not 0.")
