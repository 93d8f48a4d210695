"""Limits between the core and the messages of the API."""

import math
import re
from collections.abc import Iterable, Sequence

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.access.principal import GROUP_PATTERN, OPERATOR, SUBJECT_PATTERN, TENANT_PATTERN, Principal
from kit.limits.rules import EACH, Limit, Per, Scope, What, Whose
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.limits.reservations import LimitState

_TENANT = re.compile(TENANT_PATTERN)
_MEMBERS = {
    Scope.GROUP: re.compile(GROUP_PATTERN),
    Scope.SUBJECT: re.compile(rf"{SUBJECT_PATTERN}|^\{EACH}$"),
    Scope.KEY: re.compile(rf"^[0-9a-f]{{24}}$|^bootstrap$|^\{EACH}$"),
}
"""How the members of a tenant are named in rules."""
_MOST = 1e15
"""Counters count up to 2^63 millionths of dollars."""


def whose_of(text: str, principal: Principal) -> Whose:
    """Whom a rule is about that `principal` may set. Raises InvalidRequest, PermissionDenied."""
    scope, _, name = text.partition(":")
    if text == "all":
        principal.require(OPERATOR)
        return Whose(Scope.ALL)
    if scope == "tenant" and (name == EACH or _TENANT.match(name)):
        principal.require(OPERATOR)
        return Whose(Scope.TENANT, name)
    for each, names in _MEMBERS.items():
        if scope == each.value and names.fullmatch(name):
            return Whose(each, principal.tenant_id, name)
    raise InvalidRequest(
        f"whose is {text[:200]!r}; use all, tenant:NAME, tenant:*, group:NAME, subject:NAME, subject:*, key:ID or key:*",
        field="whose",
    )


def limits_of(messages: Iterable[pb.Limit]) -> Sequence[Limit]:
    """Raises InvalidRequest."""
    limits = [_limit(each) for each in messages]
    if len({(each.what, each.per) for each in limits}) < len(limits):
        raise InvalidRequest("limits names the same thing twice for the same time; leave one out", field="limits")
    return limits


def _limit(message: pb.Limit) -> Limit:
    known = [*(each.value for each in What)], [*(each.value for each in Per)]
    if message.what not in known[0] or message.per not in known[1]:
        raise InvalidRequest(
            f"a limit is {message.what[:40]!r} for each {message.per[:40]!r}; use one of {', '.join(known[0])} for each "
            f"{', '.join(known[1])}",
            field="limits",
        )
    limit = Limit(What(message.what), message.amount, Per(message.per))
    if not limit.is_possible:
        raise InvalidRequest(
            f"a limit is {message.what} for each {message.per}; credits, storage and stored_documents have no window, as in "
            "credits=500/ever, and all else is counted for each second, minute, hour, day or month",
            field="limits",
        )
    if not (0 <= message.amount <= _MOST and math.isfinite(message.amount)):
        raise InvalidRequest(f"a limit's amount is {message.amount:g}; use 0 to {_MOST:g}", field="limits")
    return limit


def rule_to_proto(whose: Whose, limits: Sequence[Limit]) -> pb.LimitRule:
    """A rule as clients see it."""
    tenant_id = whose.tenant_id if whose.scope.is_within_tenant else ""
    return pb.LimitRule(whose=whose.name, limits=map(_limit_to_proto, limits), tenant_id=tenant_id)


def state_to_proto(state: LimitState, principal: Principal) -> pb.LimitState:
    """What a caller learns of a limit: how much all tenants use together is an operator's to know."""
    scope = state.applied.whose.scope
    message = pb.LimitState(whose=state.applied.whose.label, limit=_limit_to_proto(state.applied.limit))
    if scope is not Scope.ALL or principal.may(OPERATOR):
        message.used = state.used
    if state.free_at is not None:
        message.free_at.FromDatetime(state.free_at)
    return message


def _limit_to_proto(limit: Limit) -> pb.Limit:
    return pb.Limit(what=limit.what.value, amount=limit.amount, per=limit.per.value)
