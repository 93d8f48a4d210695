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
    logins: list[str] = Field(
        description="Services of these that a login at the service itself connects: see POST /v1/connections/{service}/login."
    )


Account = Annotated[
    str,
    Field(max_length=200, description="The user that opens the mailbox, mostly its address. Needed for `mail` alone."),
]
_LOGIN_CHARACTERS_MAX = 32_000


class NewToolConnection(RequestBody):
    """A service to be connected."""

    model_config = ConfigDict(json_schema_extra={"example": {"secret": "github_pat_…", "shared": False}})

    secret: SecretStr = Field(
        min_length=1,
        max_length=8000,
        description="What the service lets you in by: of GitHub a personal access token, of mail the password, of Google Drive the "
        "JSON file of a service account's key. Stored sealed and shown to nobody.",
    )
    account: Account = ""
    shared: bool = Field(
        default=False, description="Whether everybody in your tenant may use it, which needs the scope `admin`."
    )


class NewConnectionLogin(RequestBody):
    """A service to be connected by a login there."""

    model_config = ConfigDict(json_schema_extra={"example": {"shared": False}})

    account: Account = ""
    shared: bool = Field(
        default=False, description="Whether everybody in your tenant may use it, which needs the scope `admin`."
    )


class ConnectionLogin(BaseModel):
    """A login at a service that waits for you."""

    user_code: str = Field(description="The code that you type there.")
    verification_url: str = Field(description="Where you type it.")
    expires_at: Moment = Field(description="When the code ends.")
    login: str = Field(description="The login, sealed: what POST /v1/connections/{service}/login/finish takes.")


class WaitingConnectionLogin(RequestBody):
    """A login that waits for its person."""

    login: str = Field(min_length=1, max_length=_LOGIN_CHARACTERS_MAX, description="As it was returned last.")


class ConnectionProgress(BaseModel):
    """Whether the person has agreed at the service."""

    connection: ToolConnection | None = Field(description="The connection; null while the person has not agreed.")
    login: str = Field(description="The login to ask again with, at once; empty where there is a connection.")
    trouble: str = Field(
        default="",
        description="Why there is no connection though the person has agreed: it cannot be stored now. Ask again. Empty otherwise.",
    )
