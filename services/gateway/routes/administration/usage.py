"""What questions have cost."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.access.principal import SUBJECT_PATTERN
from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.administration.usage import UsageAccount
from services.gateway.schemas.fields import Pattern
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/usage", tags=["usage"], dependencies=[NEEDS_QUERY])

_ALL = "*"
_DATE = Pattern("^(?:[0-9]{4}-[0-9]{2}-[0-9]{2})?$", "is no date; write it as 2026-01-31")
_SUBJECT = Pattern(rf"^(?:\*|{SUBJECT_PATTERN[1:-1]})?$", "is no user; leave it out for yourself, or write * for all")


@router.get("", responses=problems())
async def get_usage(
    services: Services,
    since: Annotated[
        Annotated[str, _DATE], Query(description="First day (UTC); empty means 30 days before the last.")
    ] = "",
    until: Annotated[
        Annotated[str, _DATE], Query(description="Last day; empty means today. At most 400 days are counted.")
    ] = "",
    group_by: Annotated[
        Literal["day", "subject", "thread", "model"], Query(description="What a row stands for.")
    ] = "day",
    subject: Annotated[
        Annotated[str, _SUBJECT],
        Query(
            description="Whose runs; empty means yours. Others', and `*` for all, are for administrators: scope `admin`."
        ),
    ] = "",
) -> UsageAccount:
    """What runs have cost, in tokens and dollars. A run belongs to the day on which it began, and counts once it has ended, also
    when it is deleted later."""
    all_subjects = subject == _ALL
    request = pb.GetUsageRequest(
        since=since,
        until=until,
        group_by=group_by,
        subject="" if all_subjects else subject,
        all_subjects=all_subjects,
    )
    answer = await services.orchestrator.GetUsage(request, timeout=services.settings.rpc_timeout_s)
    return UsageAccount.model_validate(encode(answer))
