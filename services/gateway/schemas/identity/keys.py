"""API keys as clients see them."""

from typing import Annotated, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, field_validator

from kit.access.principal import MAX_GROUPS, SUBJECT_PATTERN, TENANT_PATTERN, usable_groups
from kit.vocabulary.memory_modes import MemoryMode
from services.gateway.schemas.documents import search
from services.gateway.schemas.fields import GroupName, Guard, Pattern, RequestBody, Title
from services.gateway.schemas.times import Moment

Scope = Literal["query", "ingest", "admin", "operator"]
_KEY_ID = Pattern(
    "^[0-9a-f]{24}$", "is no key id; it is 24 of 0-9 and a-f, those between the two '_' of the API key", is_private=True
)
_NO_TENANT = "is no tenant; use 1 to 64 of a-z, 0-9, '-' and '_', beginning with a letter or digit"
TENANT_OR_EMPTY = Pattern(f"^(?:{TENANT_PATTERN[1:-1]})?$", _NO_TENANT)
_SUBJECT_OR_EMPTY = Pattern(f"^(?:{SUBJECT_PATTERN[1:-1]})?$", "is no user; use letters, digits and . _ @ + : | -")
KeyPath = Annotated[str, _KEY_ID, Path(description="The key's id: what stands between its two `_`.")]
TenantFilter = Annotated[str, TENANT_OR_EMPTY, Query(description="Keys of this tenant; empty means yours.")]


class Caller(BaseModel):
    """Who is asking."""

    tenant: str = Field(description="The tenant whose data it is.")
    subject: str = Field(description="The user within the tenant.")
    scopes: list[Scope] = Field(description="All that the caller may do, with what their scopes include.")
    groups: list[str] = Field(default_factory=list, description="The groups that the caller is in, by name.")


class NewApiKey(RequestBody):
    """An API key to be made."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"name": "Laptop of Anna", "subject": "anna", "scopes": ["query", "ingest"]}}
    )

    name: Title
    subject: Annotated[str, _SUBJECT_OR_EMPTY] = Field(
        default="", description="The user within the tenant for whom it speaks; empty means yourself."
    )
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=16,
        description="What it may do, none of which you may not: `query` (search, ask, chat), `ingest` (change documents and "
        "collections), `admin` (both, all that belongs to others of the tenant, and its keys), `operator` (everything).",
    )
    expires_at: search.Moment | None = Field(
        default=None,
        description="Until when it is good: an ISO 8601 time to come, UTC unless it says so; a date means its first moment. Null "
        "means until it is revoked.",
    )
    tenant_id: Annotated[str, TENANT_OR_EMPTY] = Field(
        default="", description="The tenant; empty means yours. Others' are for operators."
    )
    groups: list[GroupName] = Field(
        default_factory=list,
        max_length=MAX_GROUPS,
        description="The groups that its user is in: what is shared with a group is shared with the key.",
    )
    guard: Guard | None = Field(
        default=None,
        description="Least of what becomes of unsafe questions that are asked with it, on every route: `flag` or `block`. Null "
        "means as your own key has it, else the service's setting. A request may only be stricter.",
    )
    memory: MemoryMode | None = Field(
        default=None,
        description="How what is remembered is used in what is asked with it, where a request does not say: `auto`, `agentic`, "
        "`always` or `off`. Null means as your own key has it, else as the collection or the service is set.",
    )

    @field_validator("expires_at")
    @classmethod
    def _check_time(cls, value: str | None) -> str | None:
        if value is not None:
            search.start_of(value)
        return value

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, value: list[str]) -> list[str]:
        if len(usable_groups(value)) < len(set(value)):
            raise ValueError("the names of the groups are too long together; name fewer groups")
        return value


class ApiKeyChange(RequestBody):
    """What is changed of an API key."""

    memory: MemoryMode | Literal["unset"] = Field(
        description="How what is remembered is used in what is asked with it, where a request does not say; `unset` means as the "
        "collection or the service is set."
    )


class Rotation(RequestBody):
    """How a key's text is changed."""

    keep_old_for_s: float = Field(
        default=86_400.0,
        ge=0,
        le=30 * 86_400,
        description="How long the present text stays good beside the new one, in seconds, so that clients can be given the new one "
        "without a stop. 0 when the present one has leaked.",
    )


class ApiKey(BaseModel):
    """An API key. Its text is not kept, hence never shown again."""

    id: str = Field(description="Names the key, and is no secret: what stands between the two `_` of its text.")
    name: str = Field(description="For people.")
    tenant_id: str = Field(description="The tenant for whom it speaks.")
    subject: str = Field(description="The user within the tenant.")
    scopes: list[str] = Field(description="What it may do.")
    groups: list[str] = Field(default_factory=list, description="The groups that its user is in.")
    status: Literal["active", "revoked", "expired"] = Field(description="Whether it is good.")
    created_at: Moment = Field(description="When it was made.")
    created_by: str = Field(description="Who made it.")
    expires_at: Moment | None = Field(description="Until when it is good; null means until it is revoked.")
    revoked_at: Moment | None = Field(description="When it was revoked.")
    rotated_at: Moment | None = Field(description="When it got its present text, if not when it was made.")
    old_text_until: Moment | None = Field(description="Until when the text before the last rotation is good too.")
    last_used_at: Moment | None = Field(
        description="When it was last used, to a minute or so; null when not for a year."
    )
    guard: Guard | None = Field(
        default=None, description="Least of what becomes of unsafe questions that are asked with it; null means as set."
    )
    memory: str | None = Field(
        default=None, description="How what is remembered is used where a request does not say; null means as set."
    )


class ShownApiKey(ApiKey):
    """A key that was just made or rotated, with its text."""

    key: str = Field(description="The text that is sent as `Authorization: Bearer …`. Shown now, and never again.")


class ApiKeyList(BaseModel):
    """A page of keys."""

    keys: list[ApiKey] = Field(description="Newest first.")
    next_page_token: str | None = Field(description="For the next page; null at the end.")
