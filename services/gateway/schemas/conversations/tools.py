"""Tools as clients see them."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class Tool(BaseModel):
    """A tool that a run may use."""

    name: str = Field(description="Its name.")
    description: str = Field(description="What it does.")
    parameters: dict[str, Any] | None = Field(description="JSON Schema of its arguments.")
    effect: Literal["none", "idempotent", "once", "unknown"] | None = Field(
        description="What a call does to the world: `none`; `idempotent`: something that is there once, however often it is done; "
        "`once`: something that is never repeated when nobody knows whether it was done."
    )
    needs_approval: bool = Field(description="Whether a person must allow each call.")
    timeout_s: float | None = Field(description="Longest a call may take, seconds.")
    parallel_safe: bool = Field(description="Whether calls may run beside each other.")
    cacheable: bool = Field(description="Whether results may be reused for the same arguments.")


class ToolList(BaseModel):
    """What a run may use."""

    tools: list[Tool] = Field(description="By name.")
