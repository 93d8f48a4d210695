"""Calls that wait for a person, as clients see them."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from services.gateway.schemas.conversations.events import ApprovalDecision
from services.gateway.schemas.fields import Pattern, RequestBody
from services.gateway.schemas.times import Moment

TAINTED = (
    "Whether text that the user did not write (a passage, a tool's result, an earlier answer) is in the run's context: then each "
    "call that changes something is asked about."
)
TAINTED_ARGUMENTS = "Names of the arguments with words of such text that the user did not write: look at these closely."
_SHA256 = Pattern("^[0-9a-f]{64}$", "is no SHA-256 in hex; send the `arguments_hash` of the approval as it was shown")


class Approval(BaseModel):
    """A call of a tool that a person is asked about, or was."""

    id: str = Field(
        validation_alias=AliasChoices("id", "approval_id"),
        description="Unique within the tenant; begins with its run's.",
    )
    run_id: str = Field(description="The run that waits; its events are at /v1/runs/{run_id}/events.")
    subject: str = Field(description="Whose run it is.")
    tool: str = Field(description="Tool that is to be called.")
    arguments: dict[str, Any] | None = Field(description="Arguments that it is to be called with.")
    arguments_hash: str = Field(description="SHA-256 of the arguments: a decision is about these and no others.")
    may_decide: list[str] = Field(description="Subjects who may decide; empty means the one whose run it is.")
    yours_to_decide: bool = Field(description="Whether you may decide.")
    expires_at: Moment | None = Field(description="After it nobody can decide any more, and the call counts as denied.")
    decision: ApprovalDecision | None = Field(description="What was decided.")
    decided_by: str = Field(description="Who decided; empty while pending.")
    is_tainted: bool = Field(default=False, description=TAINTED)
    tainted_arguments: list[str] = Field(default=[], description=TAINTED_ARGUMENTS)


class ApprovalList(BaseModel):
    """One page of what waits."""

    approvals: list[Approval] = Field(description="Oldest first.")
    next_page_token: str | None = Field(description="For the next page; null on the last.")


class ApprovalChoice(RequestBody):
    """A decision about a call."""

    model_config = ConfigDict(json_schema_extra={"example": {"decision": "allow", "arguments_hash": "9f86d081…"}})

    decision: Literal["allow", "deny"] = Field(description="Whether the call may be made.")
    arguments_hash: Annotated[str, _SHA256] = Field(
        description="`arguments_hash` of what you have read: another call is not decided by mistake."
    )
