"""MCP servers and their tools as administrators see them."""

from typing import Annotated, Any, Literal

from groundwork.tools.v1.tools_pb2 import SecretHeaders
from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from services.gateway.schemas.fields import Pattern, RequestBody
from services.gateway.schemas.times import Moment

HeaderName = Annotated[str, StringConstraints(min_length=1, max_length=100)]
_OWN_PROGRAM = Pattern(
    r"^(http://(127\.0\.0\.1|\[::1\]):[0-9]{1,5}/callback)?$",
    "is no address of a program, as http://127.0.0.1:4711/callback",
)
HeaderValue = Annotated[SecretStr, Field(min_length=1, max_length=4000)]


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
    header_names: list[str] = Field(
        description="Names of the headers that are sent to it. Their values are shown to nobody."
    )
    logged_in: bool = Field(description="Whether somebody has logged in there for your tenant.")


class ToolServerList(BaseModel):
    """The MCP servers of a tenant."""

    servers: list[ToolServer] = Field(description="The operator's first.")


class NewToolServer(RequestBody):
    """An MCP server to be added."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer …"}}}
    )

    url: str = Field(
        min_length=8, max_length=2000, description="Where it is reached over streamable HTTP, without secrets."
    )
    headers: dict[HeaderName, HeaderValue] | None = Field(
        default=None,
        max_length=10,
        description="What is sent to it with each request: secrets, which are stored sealed and shown to nobody. Null: those that "
        "its address has already. They go to an https:// address only.",
    )

    def secret_headers(self) -> SecretHeaders | None:
        """For the tools service."""
        if self.headers is None:
            return None
        return SecretHeaders(values={name: value.get_secret_value() for name, value in self.headers.items()})


class NewToolServerLogin(RequestBody):
    """A login at an MCP server that is to begin."""

    model_config = ConfigDict(json_schema_extra={"example": {}})

    redirect_uri: Annotated[str, _OWN_PROGRAM] = Field(
        default="",
        description="Address of your own program on the machine of the browser, as `http://127.0.0.1:4711/callback`; empty: the "
        "page of this gateway.",
    )
    client_id: str = Field(
        default="",
        max_length=1000,
        description="Of a client that is registered at the authorization server; empty: one is registered now.",
    )
    client_secret: SecretStr = Field(
        default=SecretStr(""), max_length=1000, description="Its secret, where it has one."
    )
    scope: str = Field(default="", max_length=1000, description="What to ask for; empty: what the server says.")


class BegunLogin(BaseModel):
    """A login that waits for its person."""

    authorization_url: str = Field(description="What to open in a browser.")
    expires_at: Moment = Field(description="Until when it can be finished.")


class ToolServerLoginAnswer(RequestBody):
    """What the browser was given at the end of a login."""

    model_config = ConfigDict(json_schema_extra={"example": {"state": "crm.9f…", "code": "SplxlO…", "iss": None}})

    state: str = Field(max_length=200, description="`state` of the address.")
    code: SecretStr = Field(
        default=SecretStr(""), max_length=2000, description="`code` of it; empty where it has none."
    )
    iss: str | None = Field(default=None, max_length=2000, description="`iss` of it, where it has one.")


class ToolApproval(RequestBody):
    """What is approved of a tool."""

    model_config = ConfigDict(json_schema_extra={"example": {"digest": "a" * 64, "reads_only": True}})

    digest: Annotated[str, Pattern("^[0-9a-f]{64}$", "is no digest; it is 64 of 0-9 and a-f")] = Field(
        description="The digest of what you have read."
    )
    reads_only: bool = Field(
        default=False, description="Whether it changes nothing: then no person is asked for each call."
    )
