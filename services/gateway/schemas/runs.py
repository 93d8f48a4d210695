"""Questions, runs and threads as clients see them."""

from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from services.gateway.schemas.fields import CollectionIds, DocumentIds, Evidence, Question, RequestBody, Title
from services.gateway.schemas.models import BroughtModel
from services.gateway.schemas.search import BoundingBox, Degradation
from services.gateway.schemas.times import Moment

SupportStatus = Literal["supported", "partial", "insufficient", "unavailable", "unknown"]
RunStatus = Literal["running", "completed", "refused", "cancelled", "timeout", "failed", "unknown"]
"""`unknown` is what a newer version of a service wrote."""


class QaRequest(RequestBody):
    """A question to documents: one search, one answer."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"question": "How long is the notice period?", "collection_ids": ["default"]}},
    )

    question: Question = Field(description="The question.")
    collection_ids: CollectionIds = Field(default=["default"])
    document_ids: DocumentIds = Field(default_factory=list)
    top_k: Evidence = 0
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")


class ChatRequest(RequestBody):
    """The next message of a conversation over a collection."""

    model_config = ConfigDict(json_schema_extra={"example": {"message": "And during probation?"}})

    message: Question = Field(description="The user's words.")
    thread_id: str | None = Field(default=None, description="Thread to continue; null means none.")
    agent: Literal["auto", "reasoning"] | None = Field(default=None, description="`auto`, or an agent's name.")
    mode: Literal["grounded"] = Field(default="grounded", description="Pipeline.")
    document_ids: DocumentIds = Field(default_factory=list)
    top_k: Evidence = 0
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")


class Citation(BaseModel):
    """A cited passage."""

    number: int = Field(description="Number in the answer's text.")
    document_id: str | None = Field(description="Its document.")
    document_name: str = Field(description="Name of its document.")
    chunk_id: str | None = Field(description="The passage.")
    page: int | None = Field(description="1-based; null where the format has no pages.")
    text: str = Field(description="The passage's text.")
    quote_start: int = Field(description="First character of the cited words in the passage.")
    quote_end: int = Field(description="One past the last; equal to quote_start when the whole passage is meant.")
    bounding_boxes: list[BoundingBox] = Field(description="Where it stands on its pages.")
    heading_path: list[str] = Field(description="Headings above it.")


class Usage(BaseModel):
    """What an answer cost."""

    prompt_tokens: int = Field(default=0, description="Tokens the model read.")
    completion_tokens: int = Field(default=0, description="Tokens the model wrote.")
    seconds: float | None = Field(default=0.0, description="Seconds from start to end.")
    cost_usd: float | None = Field(default=0.0, description="Dollars, by the configured prices.")
    step_seconds: dict[str, float | None] = Field(default_factory=dict, description="Seconds by step.")
    model: str = Field(default="", description="Model that wrote the answer; empty when extractive.")


class QaResponse(BaseModel):
    """An answer and its grounds."""

    run_id: str = Field(description="The run; its events are at /v1/runs/{run_id}/events.")
    status: RunStatus = Field(
        description="`refused`: the documents do not say, or could not be searched (see `support_status`)."
    )
    answer: str = Field(description="Full text with citation marks [1], [2] …")
    citations: list[Citation] = Field(description="The passages it cites, by number.")
    support_status: SupportStatus | None = Field(description="How well the evidence carries the answer.")
    usage: Usage = Field(description="What it cost.")
    method: str = Field(description="`model` or `extractive`.")
    degraded: list[Degradation] = Field(description="What was done in a lesser way than asked.")


class Run(BaseModel):
    """A run's summary."""

    id: str = Field(validation_alias=AliasChoices("id", "run_id"), description="Unique within the tenant.")
    mode: str | None = Field(description="Pipeline: `qa` or `grounded`.")
    status: RunStatus | None = Field(description="State.")
    question: str = Field(description="The user's words.")
    thread_id: str | None = Field(description="Thread, if any.")
    created_at: Moment | None = Field(description="Start.")
    finished_at: Moment | None = Field(description="End, once there is one.")
    collection_ids: list[str] = Field(description="Collections searched.")
    forgotten_at: Moment | None = Field(
        description="When its events were erased, because a document that they quote was deleted; null otherwise."
    )


class RunList(BaseModel):
    """One page of runs."""

    runs: list[Run] = Field(description="Newest first.")
    next_page_token: str | None = Field(description="For the next page; null on the last.")


class Thread(BaseModel):
    """A conversation."""

    id: str = Field(validation_alias=AliasChoices("id", "thread_id"), description="Unique for its owner.")
    title: str = Field(description="For people; the first question until renamed.")
    created_at: Moment | None = Field(description="When it was made.")
    updated_at: Moment | None = Field(description="Last message.")
    message_count: int = Field(description="Messages in it.")


class Message(BaseModel):
    """One message."""

    id: str | None = Field(validation_alias=AliasChoices("id", "message_id"), description="Unique within the thread.")
    role: Literal["user", "assistant", "unknown"] | None = Field(description="Who wrote it.")
    text: str = Field(description="Its text.")
    run_id: str | None = Field(description="Run that made it.")
    at: Moment | None = Field(description="When it was written.")
    forgotten: bool = Field(description="The text was removed with a document that it quoted, and is a notice now.")


class ThreadWithMessages(Thread):
    """A conversation and its last messages."""

    messages: list[Message] = Field(description="Oldest first.")


class ThreadList(BaseModel):
    """One page of threads."""

    threads: list[Thread] = Field(description="Last used first.")
    next_page_token: str | None = Field(description="For the next page; null on the last.")


class NewThread(RequestBody):
    """A thread to make."""

    title: str = Field(default="", max_length=200, description="For people; empty means the first question.")


class ThreadTitle(RequestBody):
    """A thread's new title."""

    title: Title
