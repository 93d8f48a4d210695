"""Entries of the audit log as clients see them. They are sent as they are stored: their hash is of that text."""

from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from services.gateway.schemas.documents import search
from services.gateway.schemas.fields import DIGITS
from services.gateway.schemas.identity.keys import TENANT_OR_EMPTY

NDJSON = "application/x-ndjson"
Chain = Literal["tenant", "unknown_callers"]
AuditedTenant = Annotated[
    str, TENANT_OR_EMPTY, Query(description="Entries of this tenant; empty means yours. Others' are for operators.")
]
ChainOf = Annotated[
    Chain,
    Query(
        description="`unknown_callers`: refusals of callers who showed no good key, who belong to no tenant. For operators."
    ),
]
AfterNumber = Annotated[
    int, Query(ge=0, le=2**53 - 1, description="Only entries with a larger number: those that are new to you."), DIGITS
]
BeforeNumber = Annotated[
    int,
    Query(
        ge=0,
        le=2**53 - 1,
        description="With `order=newest`: only entries with a smaller number; 0 means from the last one.",
    ),
    DIGITS,
]
Order = Annotated[
    Literal["oldest", "newest"],
    Query(
        description="`newest`: the newest first, at most 1,000 at a time. Ask again with the last `number` as `before`."
    ),
]
NEWEST_AT_ONCE = 1000
Since = Annotated[search.Moment | None, Query(description="Only entries that were stored at this time or later.")]
Limit = Annotated[
    int, Query(ge=1, le=1_000_000, description="Most entries. The next ones begin behind the last number."), DIGITS
]


class AuditEntry(BaseModel):
    """One entry of the audit log. Members without a value are left out."""

    model_config = ConfigDict(extra="allow")

    number: int = Field(description="Place in the chain of its tenant, without a gap.")
    at: str = Field(description="When it happened, RFC 3339 in UTC.")
    action: str = Field(
        description="`request` (something was changed), `refused`, `login`, `logout`, `key_created`, `key_rotated`, `key_changed`, "
        "`key_revoked`, `user_activated`, `user_deactivated`, `user_deleted` (by SCIM), "
        "`login_reused` (an old cookie of a login was shown)."
    )
    tenant_id: str | None = Field(default=None, description="Tenant of the caller.")
    subject: str | None = Field(default=None, description="The caller.")
    key_id: str | None = Field(default=None, description="The API key that the caller showed.")
    issuer: str | None = Field(default=None, description="Who vouched for the caller, where it was no API key.")
    address: str | None = Field(default=None, description="Where the connection came from.")
    method: str | None = Field(default=None, description="HTTP method, or `WEBSOCKET`.")
    route: str | None = Field(default=None, description="What was asked for, with names in place of ids.")
    about: dict[str, str] | None = Field(
        default=None, description="Ids in the path of a request that succeeded; `made`: the path of what it has made."
    )
    status: int | None = Field(default=None, description="HTTP status of the answer.")
    reason: str | None = Field(default=None, description="Why it was refused.")
    about_key_id: str | None = Field(default=None, description="The API key that was changed.")
    about_tenant_id: str | None = Field(default=None, description="Its tenant.")
    about_subject: str | None = Field(default=None, description="Its user, or the user that SCIM was about.")
    about_scopes: list[str] | None = Field(default=None, description="Its scopes.")
    about_groups: list[str] | None = Field(default=None, description="Its groups.")
    left_out_before: int | None = Field(
        default=None, description="Entries before this one that were not kept, because there were too many."
    )
    trace_id: str | None = Field(default=None, description="Finds the request in logs and traces.")
    previous: str = Field(description="Hash of the entry before it; empty for the first.")
    hash: str = Field(
        description="SHA-256 over this entry without `hash`, as JSON in ASCII with sorted keys and no spaces."
    )
