"""The general chat as clients see it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kit.vocabulary.memory_modes import MemoryMode
from services.gateway.schemas.administration.models import BroughtModel
from services.gateway.schemas.conversations.approvals import TAINTED, TAINTED_ARGUMENTS
from services.gateway.schemas.conversations.events import ToolError
from services.gateway.schemas.conversations.runs import VERIFY, QaResponse, ToolBudgets, Verify
from services.gateway.schemas.fields import (
    GUARD,
    MEMORY,
    CollectionId,
    Guard,
    Question,
    RequestBody,
    ThreadId,
    ToolName,
)
from services.gateway.schemas.times import Moment


class ToolChatRequest(RequestBody):
    """The next message of a conversation that may use tools."""

    model_config = ConfigDict(json_schema_extra={"example": {"message": "How many days are left of this year?"}})

    message: Question = Field(description="The user's words.")
    thread_id: ThreadId | None = Field(default=None, description="Thread to continue; null means none.")
    tools: Annotated[list[ToolName], Field(max_length=100)] | None = Field(
        default=None, description="Tools that may be used, of GET /v1/tools; null means all, an empty list none."
    )
    collection_ids: Annotated[list[CollectionId], Field(min_length=1, max_length=64)] | None = Field(
        default=None, description="Collections that tools may read; null means all."
    )
    verify: Verify | None = Field(default=None, description=VERIFY)
    guard: Guard | None = Field(default=None, description=GUARD)
    budgets: ToolBudgets = Field(default_factory=ToolBudgets, description="Limits.")
    memory: MemoryMode | None = Field(default=None, description=MEMORY)
    model: BroughtModel | None = Field(default=None, description="Your own model; null means the installation's.")


class ToolUse(BaseModel):
    """A call of a tool and what came of it."""

    call_id: str | None = Field(description="The call.")
    name: str = Field(description="The tool.")
    arguments: dict[str, Any] = Field(description="Its arguments.")
    step: str = Field(description="Step of the run.")
    ok: bool | None = Field(description="Whether it worked; null until it has ended.")
    summary: str = Field(description="What came out, shortened.")
    duration_ms: float | None = Field(description="How long it took, milliseconds.")
    error: ToolError | None = Field(description="Why it did not work; null when it did.")


class ToolChatResponse(QaResponse):
    """An answer, its grounds, and the tools that were used for it."""

    thread_id: str | None = Field(description="The thread, if there is one.")
    tool_calls: list[ToolUse] = Field(description="Calls of tools, in order of their beginning.")


class WaitingApproval(BaseModel):
    """A call that waits for a decision."""

    id: str = Field(description="Decide with POST /v1/approvals/{id}.")
    run_id: str = Field(description="Its run.")
    tool: str = Field(description="Tool that is to be called.")
    arguments: dict[str, Any] = Field(description="Arguments that it is to be called with.")
    arguments_hash: str = Field(description="To be sent with the decision: it is about these arguments and no others.")
    expires_at: Moment | None = Field(description="After it nobody can decide any more, and the call is not made.")
    is_tainted: bool = Field(default=False, description=TAINTED)
    tainted_arguments: list[str] = Field(default=[], description=TAINTED_ARGUMENTS)


class WaitingInput(BaseModel):
    """A question to the user."""

    question: str = Field(description="What is asked. Answer with POST /v1/runs/{run_id}/input.")
    expires_at: Moment | None = Field(description="After it nobody can answer any more, and the run goes on without.")


class WaitingRun(BaseModel):
    """A run that goes on once a person has decided or answered."""

    run_id: str = Field(description="The run.")
    status: Literal["waiting"] = Field(description="It waits.")
    thread_id: str | None = Field(description="The thread, if there is one.")
    answer: str | None = Field(
        default=None,
        description="What was answered so far: all of it where an e-mail waits that is to be sent with it.",
    )
    approvals: list[WaitingApproval] = Field(description="Calls that wait for a decision.")
    input: WaitingInput | None = Field(default=None, description="The question that waits for an answer of the user.")
    until: Moment | None = Field(description="At this moment it goes on without.")
    tool_calls: list[ToolUse] = Field(description="Calls of tools so far, in order of their beginning.")
    next: str = Field(description="How to go on, for a person.")
