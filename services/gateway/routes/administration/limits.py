"""How much a caller may use, and rules about it."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path
from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from starlette.convertors import StringConvertor, register_url_convertor

from kit.access.principal import GROUP_PATTERN
from kit.errors import DeadlineExceeded, Unavailable, Unimplemented
from services.gateway.access.scopes import NEEDS_ADMIN, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.errors import RequestsNotCounted
from services.gateway.schemas.administration.limits import LimitList, LimitRule, LimitRules, LimitState, NewLimits
from services.gateway.schemas.fields import Pattern
from services.gateway.schemas.problem import problems


class _RuleName(StringConvertor):
    """One part of a path, or a group's name, which may have slashes."""

    regex = r"group:[\s\S]+|[^/]+"


register_url_convertor("rule_name", _RuleName())
router = APIRouter(prefix="/v1/limits", tags=["usage"])

_WHOSE = Pattern(
    r"^(?:all|tenant:(?:\*|[a-z0-9][a-z0-9_-]{0,63})|subject:(?:\*|[A-Za-z0-9][A-Za-z0-9._@+:|-]{0,127})|key:(?:\*|bootstrap|[0-9a-f]{24})"
    rf"|group:{GROUP_PATTERN[1:-1]})$",
    "is no such name; use all, tenant:NAME, tenant:*, group:NAME, subject:NAME, subject:*, key:ID or key:*",
)


_AWAY = (Unavailable, DeadlineExceeded, Unimplemented)
"""How a service answers that is away, or of a version that knows no such limits."""


@router.get("", dependencies=[NEEDS_QUERY], responses=problems())
async def get_limits(services: Services) -> LimitList:
    """How many requests, questions, tokens, dollars, calls of tools and seconds you may use, how many bytes and documents you may
    store, and how much of that is used. Where one of the services that know does not answer, those that the other one knows."""
    timeout_s = services.settings.rpc_timeout_s
    used, stored = await asyncio.gather(
        services.orchestrator.GetLimits(pb.GetLimitsRequest(), timeout=timeout_s),
        services.ingest.GetStorageLimits(ingest_pb2.GetStorageLimitsRequest(), timeout=timeout_s),
        return_exceptions=True,
    )
    answers = {"orchestrator": used, "ingest": stored}
    missing = [name for name, answer in answers.items() if isinstance(answer, _AWAY)]
    for answer in answers.values():
        if isinstance(answer, BaseException) and (not isinstance(answer, _AWAY) or len(missing) == len(answers)):
            raise answer
    limits = [] if isinstance(used, BaseException) else LimitList.model_validate(encode(used)).limits
    storage = [] if isinstance(stored, BaseException) else [_storage_state(each) for each in stored.limits]
    return LimitList(limits=[*limits, *storage], missing=missing)


def _storage_state(state: ingest_pb2.StorageLimit) -> LimitState:
    """A limit of what is stored, as the others are shown."""
    limit = {"what": state.what, "amount": state.amount, "per": "ever"}
    used = state.used if state.HasField("used") else None
    return LimitState.model_validate({"whose": state.whose, "limit": limit, "used": used})


@router.get("/rules", dependencies=[NEEDS_ADMIN], responses=problems())
async def list_limit_rules(services: Services) -> LimitRules:
    """The rules about users, groups and keys of your tenant and the tenant itself; operators see all."""
    answer = await services.orchestrator.ListLimitRules(
        pb.ListLimitRulesRequest(), timeout=services.settings.rpc_timeout_s
    )
    return LimitRules.model_validate(encode(answer))


@router.put("/rules/{whose:rule_name}", dependencies=[NEEDS_ADMIN], responses=problems(413, 415))
async def set_limit_rule(
    whose: Annotated[
        Annotated[str, _WHOSE],
        Path(
            description="Whom the rule is about. Rules about tenants and about `all` need the scope `operator`. `GET /v1/keys` has "
            "the ids of API keys. Slashes in the name of a group are not escaped."
        ),
    ],
    limits: NewLimits,
    services: Services,
) -> LimitRule:
    """Sets the limits of somebody, on all replicas and after a restart. Questions that are being answered keep what they may use.
    Harmless when repeated."""
    if services.settings.auth == "none" and any(each.what == "requests" for each in limits.limits):
        raise RequestsNotCounted(
            "requests are counted where callers say who they are; set GROUNDWORK_AUTH=api_keys, or limit runs instead"
        )
    request = pb.SetLimitRuleRequest(
        whose=whose, limits=[pb.Limit(what=each.what, amount=each.amount, per=each.per) for each in limits.limits]
    )
    answer = await services.orchestrator.SetLimitRule(request, timeout=services.settings.rpc_timeout_s)
    return LimitRule.model_validate(encode(answer)["rule"])
