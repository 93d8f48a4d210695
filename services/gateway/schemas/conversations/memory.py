"""What is remembered of a person, as clients see it."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator

from services.gateway.schemas.documents import search
from services.gateway.schemas.documents.search import Degradation
from services.gateway.schemas.fields import NOT_BLANK, WHOLE, FactId, RequestBody, ThreadId
from services.gateway.schemas.times import Moment

FactKind = Literal["profile", "preference", "plan", "relation", "instruction"]
KnownKind = Literal["profile", "preference", "plan", "relation", "instruction", "unknown"]
FactText = Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK]


class Fact(BaseModel):
    """Something that you have said of yourself."""

    id: str = Field(description="Its id.")
    text: str = Field(description="One sentence.")
    kind: KnownKind = Field(description="What it is about.")
    status: Literal["active", "superseded", "expired"] = Field(
        description="`active`: it holds. `superseded`: another fact took its place. `expired`: its time is over."
    )
    learnt_at: Moment = Field(description="When it was learnt.")
    valid_from: Moment | None = Field(description="From when it holds.")
    valid_to: Moment | None = Field(description="Until when; null where no end is known.")
    confidence: float = Field(description="How sure it is that you said this, 0 to 1.")
    learnt_by: Literal["rules", "model", "owner", "unknown"] = Field(
        description="Who wrote it; `owner` is you. Without a model, `rules` read Dutch, English, French, German, Italian, "
        "Portuguese and Spanish only."
    )
    said: str = Field(description="Your words that it was taken from.")
    run_id: str | None = Field(description="The run in which you said it.")
    thread_id: str | None = Field(description="The thread of that run.")
    superseded_by: str | None = Field(description="The fact that took its place.")
    edited_at: Moment | None = Field(description="When you last changed it.")


class FactList(BaseModel):
    """One page of facts."""

    facts: list[Fact] = Field(description="Newest first.")
    next_page_token: str | None = Field(description="For the next page; null on the last.")


class FactWithHistory(Fact):
    """A fact, and what it took the place of."""

    earlier: list[Fact] = Field(description="What it took the place of, newest first.")


class FactChange(RequestBody):
    """What is to change of a fact; null stays as it is."""

    text: FactText | None = Field(default=None, description="Other words.")
    kind: FactKind | None = Field(default=None, description="Another kind.")
    valid_to: search.Moment | None = Field(
        default=None,
        description="Until when it holds: an ISO 8601 time, UTC unless it says so; a date means its first moment.",
    )

    @field_validator("valid_to")
    @classmethod
    def _check_time(cls, value: str | None) -> str | None:
        if value is not None:
            search.start_of(value)
        return value

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.text is None and self.kind is None and self.valid_to is None:
            raise ValueError("say what is to change: text, kind or valid_to")
        return self


class MemorySummary(BaseModel):
    """What is known of you in short."""

    summary: str = Field(description="At most 300 tokens; empty where nothing is known.")
    summary_by: Literal["model", "rules"] | None = Field(
        description="Who wrote it: a model, or `rules`, which list the newest facts; null where nothing is known."
    )
    fact_count: int = Field(description="Facts that hold.")
    paused: bool = Field(description="Whether nothing is learnt now, because you want it so.")
    enabled: bool = Field(description="Whether the operator lets anything be remembered.")
    notes_collection_id: str = Field(
        description="Your collection of notes, whose documents are remembered too; made when the first one is written."
    )


class MemoryPause(RequestBody):
    """Whether anything is learnt."""

    paused: bool = Field(
        description="`true`: nothing is learnt from now on; what is known stays. `false`: it is again."
    )


class MemoryForgetting(RequestBody):
    """What is to be forgotten: exactly one of the four."""

    fact_ids: Annotated[list[FactId], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="These facts."
    )
    text: FactText | None = Field(default=None, description="All facts that hold these words, in any case.")
    thread_id: ThreadId | None = Field(default=None, description="What was learnt in this thread.")
    everything: Literal[True] | None = Field(default=None, description="All facts, and the summary.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        said = [each for each in (self.fact_ids, self.text, self.thread_id, self.everything) if each is not None]
        if len(said) != 1:
            raise ValueError("say what is to be forgotten: fact_ids, text, thread_id or everything; one of them")
        return self


class MemoryForgotten(BaseModel):
    """What was forgotten."""

    forgotten: int = Field(description="Facts that were removed, with those that they had taken the place of.")


class MemoryQuery(RequestBody):
    """A search of what is remembered."""

    query: Annotated[str, Field(min_length=1, max_length=2000), NOT_BLANK] = Field(description="What to look for.")
    top_k: Annotated[int, Field(ge=1, le=50), WHOLE] = Field(default=10, description="At most this many.")
    source: Literal["fact", "message", "note"] | None = Field(
        default=None, description="`fact`, `message` of your threads, or `note`; null means all."
    )


class MemoryHit(BaseModel):
    """Something that is remembered."""

    source: Literal["fact", "message", "note", "unknown"] = Field(description="Where it comes from.")
    text: str = Field(description="What it says.")
    score: float = Field(
        description="How well it fits; comparable within one answer only, and not between notes and the rest."
    )
    fact: Fact | None = Field(description="The fact; null for a message.")
    thread_id: str | None = Field(description="The thread of a message.")
    message_id: str | None = Field(description="The message.")
    document_id: str | None = Field(description="The document of a note.")
    document_name: str | None = Field(description="Its name.")
    at: Moment | None = Field(description="When it was said.")


class MemoryHits(BaseModel):
    """What is remembered that fits."""

    hits: list[MemoryHit] = Field(description="Best first.")
    degraded: list[Degradation] = Field(description="What the search had to do without.")


class MemoryExport(BaseModel):
    """All that is remembered of you, but for threads and documents."""

    summary: str = Field(description="What is known in short.")
    paused: bool = Field(description="Whether nothing is learnt now.")
    facts: list[Fact] = Field(description="All facts, also those that do not hold any more, newest first.")
