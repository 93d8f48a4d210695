"""Events of a run as clients see them: one model a kind, documented in OpenAPI and held true by a test that sends every
payload of the contract through it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.schemas.runs import AnswerStatus, Citation, RunStatus, SupportStatus, Usage
from services.gateway.schemas.search import BoundingBox, Degradation
from services.gateway.schemas.times import Moment


class Event(BaseModel):
    """What every event carries."""

    model_config = ConfigDict(extra="forbid")

    run_id: str = Field(description="The run.")
    seq: int = Field(description="Position in the run's log, from 1 without gaps; also the event's `id:`.")
    at: Moment | None = Field(description="When it happened.")
    step: str = Field(description="Step of the run that it belongs to; empty for none.")


class BudgetsInForce(BaseModel):
    """Limits of a run."""

    wall_clock_s: float | None = Field(description="Seconds that may be worked on the run.")
    answer_tokens: int = Field(description="Tokens a model may write in the answer.")
    steps: int = Field(
        description="Steps whose result is recorded, of any kind; 0 means no limit, here and below. What a request calls `steps` "
        "is `reasoning_steps`."
    )
    reasoning_steps: int = Field(description="How often the model may ask for tools before it has to answer.")
    tool_calls: int = Field(description="Calls of tools.")
    parallel_calls: int = Field(description="Calls of tools under way at once.")
    tokens: int = Field(description="Tokens that models may read and write in all.")
    cost_usd: float | None = Field(description="Dollars.")


class RunStartedEvent(Event):
    """`run`: the run begins."""

    mode: str | None = Field(description="Pipeline: `qa`, `grounded` or `chat`.")
    thread_id: str | None = Field(description="Thread, if any.")
    question: str = Field(description="The user's words.")
    collection_ids: list[str] = Field(description="Collections.")
    budgets: BudgetsInForce | None = Field(description="Limits in force.")
    model: str = Field(description="Model in use; empty when answers are extractive.")


class AgentEvent(Event):
    """`agent`: an agent was chosen."""

    name: str = Field(description="Its name.")
    chosen_by: str = Field(description="`explicit`, `default` or `classified`.")


class ThinkingEvent(Event):
    """`thinking`: progress, or a degradation."""

    phase: str = Field(
        description="`memory`, `tools`, `plan`, `tool`, `retrieve`, `reason`, `answer`, `verify`, `load` or `resume`."
    )
    text: str = Field(description="For a person.")
    degraded: Degradation | None = Field(description="Set when something was done in a lesser way than asked.")


class PlanEvent(Event):
    """`plan`: what will be searched."""

    route: str = Field(
        description="`lexical`, `dense` or `hybrid`: a search. In a chat `tools`, `search`, `math`, `time` or `talk`."
    )
    queries: list[str] = Field(description="Queries.")


class Evidence(BaseModel):
    """One passage of the evidence set."""

    number: int = Field(description="Citation number.")
    chunk_id: str | None = Field(description="The passage.")
    document_id: str | None = Field(description="Its document.")
    document_name: str = Field(description="Name of its document.")
    page: int | None = Field(description="1-based; null where the format has no pages.")
    heading_path: list[str] = Field(description="Headings above it.")
    text: str = Field(description="The passage.")
    score: float | None = Field(description="Score of the last stage that ranked it.")
    dense_score: float | None = Field(description="Cosine to the question, where vectors found it.")
    char_start: int = Field(description="First character in the document's cleaned text.")
    char_end: int = Field(description="One past the last character.")
    bounding_boxes: list[BoundingBox] = Field(description="Where it stands on its pages.")
    collection_id: str | None = Field(description="Its collection.")


class RetrievalEvent(Event):
    """`retrieval`: what was found. Citation numbers are positions in it."""

    evidence: list[Evidence] = Field(description="Passages, best first.")
    degraded: list[Degradation] = Field(description="What failed and was worked around.")
    timings_ms: dict[str, float | None] = Field(description="Milliseconds by stage.")
    strategy: str = Field(description="Engines that were asked.")


class TokenEvent(Event):
    """`token`: a piece of the answer."""

    text: str = Field(description="Text to put at `offset`.")
    offset: int = Field(
        description="Characters (code points) of the answer before this piece. What was shown from there on is replaced."
    )


class SentenceVerdict(BaseModel):
    """The verdict on one sentence."""

    sentence: str = Field(description="The sentence, citation marks removed.")
    verdict: str = Field(description="`supported` or `unsupported`.")
    citations: list[int] = Field(description="Citation numbers it carries.")
    score: float | None = Field(description="Share of its content words found in the cited passages.")


class VerificationEvent(Event):
    """`verification`: what was checked."""

    sentences: list[SentenceVerdict] = Field(description="In order.")
    citation_precision: float | None = Field(description="Share of citations that carry their sentence.")
    citation_coverage: float | None = Field(description="Share of sentences carried by a citation.")
    support_status: SupportStatus | None = Field(description="Whether its sources carry the text.")
    answer_confidence: float | None = Field(
        default=None,
        description="Calibrated probability that the text answers the question; null where that was not judged.",
    )
    answer_status: AnswerStatus | None = Field(
        default=None, description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )


class AnswerEvent(Event):
    """`answer`: the whole answer."""

    text: str = Field(description="Full text with citation marks [1], [2] …")
    citations: list[Citation] = Field(description="One quote a mark, in order of appearance.")
    support_status: SupportStatus | None = Field(description="Whether its sources carry the text.")
    answer_confidence: float | None = Field(
        default=None,
        description="Calibrated probability that the text answers the question; null where that was not judged.",
    )
    answer_status: AnswerStatus | None = Field(
        default=None, description="The same in a word: `likely` from 0.75 on, `unlikely` under 0.5."
    )
    closest: list[Citation] = Field(
        default_factory=list, description="Of a refusal: the passages that came closest, best first, at most three."
    )
    method: str = Field(description="`model` or `extractive`.")
    block: dict[str, Any] | None = Field(description="A structured block, when the agent makes one.")


class UsageEvent(Event, Usage):
    """`usage`: what it cost."""


class ErrorEvent(Event):
    """`error`: what broke. An error without seq comes from the gateway and says how to resume."""

    code: str = Field(description="gRPC status name.")
    reason: str = Field(description="A constant UPPER_SNAKE word.")
    message: str = Field(description="For a person.")
    retryable: bool = Field(description="Whether asking again may help.")


class DoneEvent(Event):
    """`done`: the run has ended. Always the last event."""

    status: RunStatus | None = Field(description="How.")


class ToolEvent(Event):
    """`tool`: a tool is called."""

    call_id: str | None = Field(description="The call.")
    name: str = Field(description="The tool.")
    arguments: dict[str, Any] = Field(description="Its arguments.")


class ToolError(BaseModel):
    """Why a call of a tool did not work."""

    reason: str = Field(
        description="UPPER_SNAKE. `IN_DOUBT`: nobody knows whether the call took effect, and it is not repeated."
    )
    message: str = Field(description="What happened and what to do, for a person.")


class ToolResultEvent(Event):
    """`tool_result`: a tool has answered."""

    call_id: str | None = Field(description="The call.")
    ok: bool = Field(description="Whether it worked.")
    summary: str = Field(description="What came out, shortened.")
    duration_ms: float | None = Field(description="How long it took, milliseconds.")
    error: ToolError | None = Field(description="Why it did not work; null when it did.")


class ApprovalEvent(Event):
    """`approval`: a person's decision is asked for, or has come."""

    approval_id: str | None = Field(
        description="The question. Unique in the tenant. Decide with POST /v1/approvals/{approval_id}; until then the run waits."
    )
    tool: str = Field(description="Tool that is to be called.")
    arguments: dict[str, Any] = Field(description="Arguments that it is to be called with.")
    arguments_hash: str = Field(description="SHA-256 of the arguments: a decision is about these and no others.")
    may_decide: list[str] = Field(description="Subjects who may decide; empty means the one whose run it is.")
    expires_at: Moment | None = Field(description="After it nobody can decide any more.")
    decision: Literal["pending", "allowed", "denied", "expired", "unknown"] | None = Field(
        description="What was decided."
    )
    decided_by: str = Field(description="Who decided; empty while pending, and when it expired.")


class ParkedEvent(Event):
    """`parked`: the run waits, and its clock stands still. It goes on at the next event that is no `approval`."""

    waits_for: str = Field(description="What it waits for: `approval`, a decision about each of `approval_ids`.")
    approval_ids: list[str] = Field(description="The questions that nobody has decided, in the order of their asking.")
    until: Moment | None = Field(description="At this moment it goes on without.")


EVENT_MODELS: dict[str, type[Event]] = {
    "run": RunStartedEvent,
    "agent": AgentEvent,
    "thinking": ThinkingEvent,
    "plan": PlanEvent,
    "retrieval": RetrievalEvent,
    "tool": ToolEvent,
    "tool_result": ToolResultEvent,
    "approval": ApprovalEvent,
    "parked": ParkedEvent,
    "token": TokenEvent,
    "verification": VerificationEvent,
    "answer": AnswerEvent,
    "usage": UsageEvent,
    "error": ErrorEvent,
    "done": DoneEvent,
}
"""The data of each kind of event."""


def stream_response(description: str, kinds: dict[str, str]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI `responses` of an event stream whose events of kind k carry the schema kinds[k]."""
    # OpenAPI 3.1 has no word for the events in a stream, whose body is a string to it.
    by_kind = {kind: {"$ref": f"#/components/schemas/{name}"} for kind, name in kinds.items()}
    content = {"schema": {"type": "string"}, "x-event-schemas": by_kind}
    example = 'id: 1\nevent: run\ndata: {"run_id":"4f2a","seq":1,"at":"2026-01-31T12:00:00.000Z","mode":"qa"}\n\n'
    listed = "; ".join(f"`{kind}`: {name}" for kind, name in kinds.items())
    return {
        200: {
            "description": f"{description} Events and the schema of their data: {listed}.",
            "content": {"text/event-stream": {**content, "example": example}},
            "headers": {"X-Run-Id": {"description": "The run, on streams of a run.", "schema": {"type": "string"}}},
        }
    }


def run_stream_response(description: str) -> dict[int | str, dict[str, Any]]:
    """`stream_response` of a run's events."""
    return stream_response(description, {kind: model.__name__ for kind, model in EVENT_MODELS.items()})
