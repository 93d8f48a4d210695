"""Limits as clients see them."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from services.gateway.schemas.fields import RequestBody
from services.gateway.schemas.times import Moment

_MOST = 1e15


class Limit(RequestBody):
    """At most so much of something in each second, minute, hour, day or month (UTC), or in all."""

    what: Literal[
        "requests",
        "runs",
        "research_runs",
        "tokens",
        "dollars",
        "tool_calls",
        "seconds",
        "documents",
        "credits",
        "storage",
        "stored_documents",
    ] = Field(
        description="What is counted: `seconds` are those worked on answers, `documents` files that are uploaded, "
        "`credits` what answers take from what was granted, `storage` bytes of files that are stored, `stored_documents` "
        "documents that are there."
    )
    amount: Annotated[float, Field(ge=0, le=_MOST, allow_inf_nan=False)] = Field(
        description="At most so much; 0 allows none."
    )
    per: Literal["second", "minute", "hour", "day", "month", "ever"] = Field(
        description="For how long. `ever` of `credits`, a balance that only a grant fills, and of `storage` and "
        "`stored_documents`, which deleting frees. Nothing else is."
    )


class LimitState(BaseModel):
    """A limit that holds for you, and how much of it is used."""

    whose: str = Field(description="Whose use it sums up: `all`, `tenant`, `group:NAME`, `subject` or `key`.")
    limit: Limit = Field(description="The limit.")
    used: float | None = Field(
        default=None,
        description="Used in this window, with what questions that are being answered have reserved. Of `all` only "
        "operators see it.",
    )
    free_at: Moment | None = Field(default=None, description="When counting begins anew; null of what is `ever`.")


class LimitList(BaseModel):
    """What you may use."""

    limits: list[LimitState] = Field(
        description="All of them hold: the tightest decides. Empty where nothing limits you."
    )
    missing: list[Literal["orchestrator", "ingest"]] = Field(
        default=[],
        description="Services that do not answer now. Their limits are left out: `ingest` has those of `storage` and "
        "`stored_documents`, `orchestrator` has all others. Empty where both answer.",
    )


class LimitRule(BaseModel):
    """Limits about somebody."""

    whose: str = Field(
        description="`all` (all tenants together), `tenant:NAME`, `tenant:*` (each tenant without a rule of its own), `group:NAME` "
        "(the members of a group together), `subject:NAME`, `subject:*` (each user of the tenant without a rule of their own), "
        "`key:ID` (an API key) or `key:*` (each key of the tenant without a rule of its own)."
    )
    limits: list[Limit] = Field(description="The limits.")
    tenant_id: str | None = Field(default=None, description="Tenant of a rule about users, groups or keys.")


class LimitRules(BaseModel):
    """Rules that are set."""

    rules: list[LimitRule] = Field(description="By whose they are.")


class NewLimits(RequestBody):
    """The limits of a rule."""

    limits: list[Limit] = Field(
        max_length=43, description="They take the place of those until now; none removes the rule."
    )
