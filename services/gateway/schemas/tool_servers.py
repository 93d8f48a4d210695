"""MCP servers and their tools as administrators see them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from services.gateway.schemas.fields import Pattern, RequestBody


class ServerTool(BaseModel):
    """A tool of an MCP server, as the server describes it."""

    name: str = Field(description="Its own name; agents know it as `server__tool`.")
    description: str = Field(description="What it says of itself: a stranger's text.")
    parameters: dict[str, Any] | None = Field(description="JSON Schema of its arguments.")
    digest: str = Field(description="SHA-256 of all that its server says of it: what is approved.")
    state: Literal["approved", "new", "changed", "unusable"] = Field(
        description="`changed`: it says something else than what was approved, and is withheld."
    )
    why: str = Field(description="Why it is not offered; empty when it is.")
    reads_only: bool = Field(description="Whether no person is asked for each call.")


class ToolServer(BaseModel):
    """An MCP server."""

    name: str = Field(description="Its name.")
    url: str = Field(description="Its address; empty of the operator's.")
    error: str = Field(description="Why it could not be asked for its tools; empty when it could.")
    tools: list[ServerTool] = Field(description="Its tools.")


class ToolServerList(BaseModel):
    """The MCP servers of a tenant."""

    servers: list[ToolServer] = Field(description="The operator's first.")


class NewToolServer(RequestBody):
    """An MCP server to be added."""

    model_config = ConfigDict(json_schema_extra={"example": {"url": "https://mcp.example.com/mcp"}})

    url: str = Field(
        min_length=8, max_length=2000, description="Where it is reached over streamable HTTP, without secrets."
    )


class ToolApproval(RequestBody):
    """What is approved of a tool."""

    model_config = ConfigDict(json_schema_extra={"example": {"digest": "a" * 64, "reads_only": True}})

    digest: Annotated[str, Pattern("^[0-9a-f]{64}$", "is no digest; it is 64 of 0-9 and a-f")] = Field(
        description="The digest of what you have read."
    )
    reads_only: bool = Field(
        default=False, description="Whether it changes nothing: then no person is asked for each call."
    )
