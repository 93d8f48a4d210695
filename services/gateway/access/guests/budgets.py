"""No guest comes in without a budget: a rule for each subject of the guests' tenant, the operator's or the one of the settings."""

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.access.principal import ADMIN, Principal, use_principal
from services.gateway.access.guests.settings import limits_in
from services.gateway.backends import Backends

_EACH_GUEST = "subject:*"
_SETTER = "gateway-guests"
"""Subject that sets the rule. It has no key and no cookie, so nobody can be it."""


async def ensure_budget(services: Backends) -> None:
    """Sets the rule of the settings where there is none. Raises GroundworkError: without a budget nobody may come in."""
    settings = services.settings
    with use_principal(Principal(settings.guests_tenant, _SETTER, frozenset({ADMIN}))):
        stub, timeout_s = services.orchestrator, settings.rpc_timeout_s
        rules = (await stub.ListLimitRules(pb.ListLimitRulesRequest(), timeout=timeout_s)).rules
        if any(rule.whose == _EACH_GUEST and rule.limits for rule in rules):
            return
        limits = [
            pb.Limit(what=each.what.value, amount=each.amount, per=each.per.value)
            for each in limits_in(settings.guests_limits)
        ]
        await stub.SetLimitRule(pb.SetLimitRuleRequest(whose=_EACH_GUEST, limits=limits), timeout=timeout_s)
