"""Questions, runs and threads as clients see them."""

import json
from typing import Annotated, Any, Literal

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from kit.vocabulary.memory_modes import MemoryMode
from services.gateway.schemas.administration.models import BroughtModel
from services.gateway.schemas.conversations.events import (
    AnswerStatus,
    Artefact,
    Citation,
    Conflict,
    Coverage,
    InputState,
    RunStatus,
    SupportStatus,
    Usage,
    Verification,
)
from services.gateway.schemas.documents.search import Degradation, MetadataFilters, end_of, start_of
from services.gateway.schemas.fields import (
    GUARD,
    MEMORY,
    NOT_BLANK,
    WHOLE,
    CollectionIds,
    DocumentIds,
    Evidence,
    Guard,
    ListedName,
    Question,
    RequestBody,
    ThreadId,
    Title,
    ToolName,
)
from services.gateway.schemas.times import Moment

Verify = Literal["mark", "remove", "off"]
VERIFY = (
    "What becomes of a claim that its sources do not carry: `mark` (it loses its citation), `remove` (its sentence is left out), "
    "or `off` (nothing is checked). Null means the service's setting."
)


class AskedBudgets(RequestBody):
    """Limits of a run. One that is left out is the service's setting, and of all but `answer_tokens` that is also the most."""

    wall_clock_s: float | None = Field(default=None, gt=0, le=86_400, description="Seconds that may be worked on it.")
    answer_tokens: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = Field(
        default=None, description="Tokens that a model may write in the answer."
    )
    tokens: Annotated[int, Field(ge=1, le=1_000_000_000), WHOLE] | None = Field(
        default=None,
        description="Tokens that models may read and write in all. When they are used up, the documents are quoted instead.",
    )
    cost_usd: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Dollars that models may cost, by the configured prices; then as above.",
    )

    def asked(self) -> pb.Budgets | None:
        """Zero for what was left out; None for no limit at all."""
        budgets = pb.Budgets(
            answer_tokens=self.answer_tokens or 0, tokens=self.tokens or 0, cost_usd=self.cost_usd or 0.0
        )
        if self.wall_clock_s:
            budgets.wall_clock.FromMilliseconds(round(self.wall_clock_s * 1000))
        return budgets if budgets.ByteSize() else None


class ToolBudgets(AskedBudgets):
    """Limits of a run that may use tools."""

    steps: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = Field(
        default=None, description="How often the model may ask for tools before it has to answer."
    )
    tool_calls: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = Field(
        default=None, description="Calls of tools in all. For none at all give an empty list of `tools`."
    )
    parallel_calls: Annotated[int, Field(ge=1, le=100), WHOLE] | None = Field(
        default=None, description="Calls of tools under way at once."
    )

    def asked(self) -> pb.Budgets | None:
        """Zero for what was left out; None for no limit at all."""
        budgets = super().asked() or pb.Budgets()
        budgets.reasoning_steps = self.steps or 0
        budgets.tool_calls = self.tool_calls or 0
        budgets.parallel_calls = self.parallel_calls or 0
        return budgets if budgets.ByteSize() else None


class QaRequest(RequestBody):
    """A question to documents: one search, one answer."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"question": "How long is the notice period?", "collection_ids": ["default"]}},
    )

    question: Question = Field(description="The question.")
    collection_ids: CollectionIds = Field(default=["default"])
    document_ids: DocumentIds = Field(default_factory=list)
    top_k: Evidence = 0
    verify: Verify | None = Field(default=None, description=VERIFY)
    guard: Guard | None = Field(default=None, description=GUARD)
    budgets: AskedBudgets = Field(default_factory=AskedBudgets, description="Limits.")
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")


class ChatRequest(RequestBody):
    """The next message of a conversation over a collection."""

    model_config = ConfigDict(json_schema_extra={"example": {"message": "And during probation?"}})

    message: Question = Field(description="The user's words.")
    thread_id: ThreadId | None = Field(default=None, description="Thread to continue; null means none.")
    memory: MemoryMode | None = Field(default=None, description=MEMORY)
    agent: ListedName | None = Field(
        default=None, description="`auto`, or the name of an agent of GET /v1/agents. Null means `auto`."
    )
    mode: ListedName = Field(default="grounded", description="How it is answered; the modes are in GET /v1/agents.")
    document_ids: DocumentIds = Field(default_factory=list)
    top_k: Evidence = 0
    verify: Verify | None = Field(default=None, description=VERIFY)
    guard: Guard | None = Field(default=None, description=GUARD)
    budgets: AskedBudgets = Field(default_factory=AskedBudgets, description="Limits.")
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")


_MOST_FIELDS = 40
_MOST_SCHEMA_CHARS = 8000
"""Of a schema as JSON: it is the message that the agent reads."""


class ExtractRequest(RequestBody):
    """Fields to read out of documents."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "schema": {
                    "type": "object",
                    "properties": {"invoice_number": {"type": "string"}, "total": {"type": "number"}},
                }
            }
        }
    )

    fields: dict[str, Any] = Field(
        alias="schema",
        description="JSON Schema of an object, or of a list of objects: its simple properties are the fields, at most 40. "
        "`type` is string, number, integer or boolean; `description` explains the field. At most 8000 characters.",
    )
    document_ids: DocumentIds = Field(default_factory=list)
    budgets: AskedBudgets = Field(default_factory=AskedBudgets, description="Limits.")
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")

    @field_validator("fields")
    @classmethod
    def _has_fields(cls, schema: dict[str, Any]) -> dict[str, Any]:
        items = schema.get("items")
        properties = (items if isinstance(items, dict) else schema).get("properties")
        if not isinstance(properties, dict) or not properties:
            raise ValueError('it describes no object: write {"type": "object", "properties": {…}}')
        if len(properties) > _MOST_FIELDS:
            raise ValueError(f"it has {len(properties)} fields; {_MOST_FIELDS} are the most")
        if len(json.dumps(schema, ensure_ascii=False)) > _MOST_SCHEMA_CHARS:
            raise ValueError(f"it is too long; {_MOST_SCHEMA_CHARS} characters are the most")
        return schema

    def message(self) -> str:
        """The agent's instructions."""
        return json.dumps(self.fields, ensure_ascii=False)


class _Grounds(BaseModel):
    """What speaks for an answer's text."""

    citations: list[Citation] = Field(description="One quote a mark, in order of appearance.")
    support_status: SupportStatus | None = Field(
        description="Whether its sources carry the text, as far as `verification.checked_by` can tell. Of a quoted answer they do, "
        "word for word; whether it answers is in `answer_status`."
    )
    answer_confidence: float | None = Field(
        default=None,
        description="Calibrated probability that a quoted text answers the question; of a refusal, that an answer stands in the "
        "closest passages. Null of written answers.",
    )
    answer_status: AnswerStatus | None = Field(
        default=None, description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )
    closest: list[Citation] = Field(
        default_factory=list, description="Of a refusal: the passages that came closest, best first, at most three."
    )
    verification: Verification | None = Field(
        default=None,
        description="What was checked: a verdict a claim, and by whom. Null where there was nothing to check.",
    )
    conflicts: list[Conflict] = Field(
        default_factory=list, description="What the sources disagree about, of what was asked. The text says it, too."
    )
    method: str = Field(description="`model` or `extractive`.")
    block: dict[str, Any] | None = Field(default=None, description="A structured block, when the agent makes one.")
    coverage: Coverage | None = Field(default=None, description="What the evidence covers. Of a research run.")
    artefacts: list[Artefact] = Field(
        default_factory=list, description="What the agent has made besides the text: tables, quizzes, diagrams."
    )
    ending: str = Field(
        default="",
        description="How a research run ended: `answer`, `caveat` (something was left open), `conflict` (sources disagree), `gap` "
        "(something was not found) or `refusal`. Empty of other runs.",
    )


class SafetyNote(BaseModel):
    """Something that is not safe was seen; see the event `safety`."""

    place: str = Field(description="`question`, `passage`, `tool_result`, `answer`, `reasoning` or `arguments`.")
    kind: str = Field(description="`injection`, `exfiltration`, `abuse`, `canary` or `address`.")
    rule: str = Field(description="The rule that found it.")
    action: str = Field(description="`flagged`, `removed` or `ended`.")
    passage: int = Field(description="Number of the passage; 0 where it is none.")
    start: int = Field(description="First character of it in the text of its place.")
    end: int = Field(description="Behind its last character.")
    text: str = Field(description="Its words, at most 200 characters; of an address the host.")


class QaResponse(_Grounds):
    """An answer and its grounds."""

    run_id: str = Field(description="The run; its events are at /v1/runs/{run_id}/events.")
    status: RunStatus = Field(
        description="`refused`: the documents do not say, or could not be searched (see `support_status`). `timeout`: the answer "
        "is what a chat had found when its time was over."
    )
    answer: str = Field(description="Full text with citation marks [1], [2] …")
    usage: Usage = Field(description="What it cost.")
    degraded: list[Degradation] = Field(description="What was done in a lesser way than asked.")
    safety: list[SafetyNote] = Field(
        default_factory=list,
        description="What was seen that is not safe: orders in texts, and what was held back of the answer.",
    )


class ResearchBudgets(AskedBudgets):
    """Limits of a research run. When one is used up the answer is made from what was found by then, and says what was left out."""

    steps: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = Field(
        default=None, description="Recorded steps: each plan, round, measurement and draft is one."
    )
    searches: Annotated[int, Field(ge=1, le=1000), WHOLE] | None = Field(
        default=None, description="Searches in all rounds together."
    )

    def asked(self) -> pb.Budgets | None:
        """Zero for what was left out; None for no limit at all."""
        budgets = super().asked() or pb.Budgets()
        budgets.steps = self.steps or 0
        budgets.tool_calls = self.searches or 0
        return budgets if budgets.ByteSize() else None


class ResearchFilters(MetadataFilters):
    """What every search of a research run keeps to. All conditions must hold."""

    def asked(self) -> pb.SearchFilter | None:
        """None for no condition at all."""
        found = pb.SearchFilter(
            metadata=[
                pb.MetadataValues(key=key, values=[values] if isinstance(values, str) else values)
                for key, values in self.metadata.items()
            ]
        )
        if self.date_from:
            found.date_from.FromDatetime(start_of(self.date_from))
        if self.date_to:
            found.date_to.FromDatetime(end_of(self.date_to))
        return found if found.ByteSize() else None


class ResearchRequest(RequestBody):
    """A question to documents that may take several searches."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "question": "Which supplier of the Leeds plant is older?",
                "collection_ids": ["default"],
                "effort": "medium",
            }
        },
    )

    question: Question = Field(description="The question.")
    collection_ids: CollectionIds = Field(default=["default"])
    document_ids: DocumentIds = Field(default_factory=list)
    thread_id: ThreadId | None = Field(default=None, description="Thread to continue; null means none.")
    effort: Literal["auto", "low", "medium", "high"] = Field(
        default="auto",
        description="`low`: one round of searches; `medium`: up to two; `high`: up to four. `auto` decides by the question.",
    )
    answer: Literal["short", "report"] = Field(
        default="short", description="A short answer, or a report with sections."
    )
    filters: ResearchFilters | None = Field(default=None, description="What every search keeps to.")
    tools: Annotated[list[ToolName], Field(max_length=100)] | None = Field(
        default=None,
        description="Tools of GET /v1/tools that the plan may call besides searching; their passages join the evidence. Only such "
        "as change nothing. Null and an empty list mean none.",
    )
    top_k: Evidence = 0
    verify: Verify | None = Field(default=None, description=VERIFY)
    guard: Guard | None = Field(default=None, description=GUARD)
    budgets: ResearchBudgets = Field(default_factory=ResearchBudgets, description="Limits.")
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")

    def options(self) -> pb.ResearchOptions:
        """As the contract has them."""
        filters = self.filters.asked() if self.filters else None
        return pb.ResearchOptions(effort=self.effort, answer=self.answer, filter=filters)


class RunInput(RequestBody):
    """An answer to what a run asks its user."""

    model_config = ConfigDict(json_schema_extra={"example": {"text": "The plant in Leeds"}})

    text: Annotated[str, Field(min_length=1, max_length=2000), NOT_BLANK] = Field(description="The answer.")


class AnsweredInput(BaseModel):
    """What a run asked its user, and the answer."""

    run_id: str = Field(description="The run; its events are at /v1/runs/{run_id}/events.")
    question: str = Field(description="What was asked.")
    state: InputState | None = Field(description="What came of it.")
    text: str = Field(description="The answer.")
    expires_at: Moment | None = Field(description="The last moment at which somebody could answer.")


class Run(BaseModel):
    """A run's summary."""

    id: str = Field(validation_alias=AliasChoices("id", "run_id"), description="Unique within the tenant.")
    mode: str | None = Field(description="How it is answered; the modes are in GET /v1/agents.")
    status: RunStatus | None = Field(description="State.")
    subject: str = Field(description="Who asked. Operators see the runs of others too.")
    question: str = Field(description="The user's words.")
    thread_id: str | None = Field(description="Thread, if any.")
    created_at: Moment | None = Field(description="Start.")
    finished_at: Moment | None = Field(description="End, once there is one.")
    collection_ids: list[str] = Field(description="Collections searched.")
    forgotten_at: Moment | None = Field(
        description="When its events were erased, because a document that they quote was deleted; null otherwise."
    )


class RunAnswer(_Grounds):
    """What a run answered."""

    text: str = Field(description="Full text with citation marks [1], [2] …")
    block: dict[str, Any] | None = Field(description="A structured block, when the agent makes one.")


class RunFailure(BaseModel):
    """Why a run failed."""

    code: str = Field(description="gRPC status name.")
    reason: str = Field(description="A constant UPPER_SNAKE word.")
    message: str = Field(description="For a person.")
    retryable: bool = Field(description="Whether asking again may help.")


class RunWithAnswer(Run):
    """A run with what came of it."""

    answer: RunAnswer | None = Field(
        description="The answer; null until there is one, and once a document that it quotes was deleted."
    )
    usage: Usage | None = Field(description="What it cost; null until the run has ended.")
    error: RunFailure | None = Field(description="Why it failed, when it did.")


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
    citations: list[Citation] = Field(description="The passages that an answer cites, by number.")
    support_status: SupportStatus | None = Field(
        description="How well the passages carry an answer; null where nothing was judged."
    )
    method: str | None = Field(default=None, description="How an answer was written: `model` or `extractive`.")
    answer_confidence: float | None = Field(
        default=None, description="Calibrated probability that an answer answers; null where that was not judged."
    )
    answer_status: AnswerStatus | None = Field(
        default=None, description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )
    run_status: RunStatus | None = Field(
        default=None,
        description="How the run of an answer ended. The text of a run that was `cancelled`, had a `timeout` or `failed` is as "
        "far as it got, and may be empty.",
    )
    artefacts: list[Artefact] = Field(
        default_factory=list,
        description="What the run of an answer has made besides the text. One that is too long for a message has a null `body`: "
        "GET /v1/runs/{run_id} has it.",
    )
    verification: Verification | None = Field(
        default=None,
        description="The verdict on each claim of an answer; null where nothing was judged, and of answers of an earlier version.",
    )


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
