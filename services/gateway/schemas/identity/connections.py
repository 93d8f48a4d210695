"""Connections to other services as their owners see them."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from services.gateway.schemas.fields import TRUE_OR_FALSE, Pattern, RequestBody
from services.gateway.schemas.times import Moment

_SERVICE = Pattern(r"^[a-z][a-z0-9-]{0,31}$", "is no such name; services are listed at GET /v1/connections")
ServicePath = Annotated[str, _SERVICE, Path(description="The service: one of `services` of the list.")]
IsShared = Annotated[
    bool,
    TRUE_OR_FALSE,
    Query(description="`true`: the connection of your tenant, which needs the scope `admin`; else your own."),
]


class ToolConnection(BaseModel):
    """A connection to another service. Its credential is shown to nobody."""

    service: str = Field(description="Which service.")
    shared: bool = Field(description="Whether everybody in your tenant uses it; else it is your own.")
    account: str = Field(description="As whom the service knows its holder.")
    address: str = Field(description="Where the service is.")
    connected_at: Moment = Field(description="When it was connected.")
    error: str = Field(description="Why it cannot be used, and what to do; empty when it can.")


class ToolConnectionList(BaseModel):
    """The connections that you may use."""

    connections: list[ToolConnection] = Field(description="Your own first. Tools use it before that of the tenant.")
    services: list[str] = Field(description="Services that can be connected here.")


class NewToolConnection(RequestBody):
    """A service to be connected."""

    model_config = ConfigDict(json_schema_extra={"example": {"secret": "github_pat_…", "shared": False}})

    secret: SecretStr = Field(
        min_length=1,
        max_length=1000,
        description="What the service lets you in by: of GitHub a personal access token. Stored sealed and shown to nobody.",
    )
    shared: bool = Field(
        default=False, description="Whether everybody in your tenant may use it, which needs the scope `admin`."
    )
