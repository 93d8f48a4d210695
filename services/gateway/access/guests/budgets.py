"""No guest comes in without a budget: a rule for each subject of the guests' tenant and one for the tenant, the operator's or those
of the settings."""

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from kit.access.principal import OPERATOR, Principal, use_principal
from services.gateway.access.guests.settings import limits_in
from services.gateway.backends import Backends

_EACH_GUEST = "subject:*"
_EACH_TENANT = "tenant:*"
_SETTER = "gateway-guests"
"""Subject that sets the rules. It has no key and no cookie, so nobody can be it."""


async def ensure_budget(services: Backends) -> None:
    """Sets the rules of the settings where there are none. Raises GroundworkError: without a budget nobody may come in."""
    settings = services.settings
    tenant_id, timeout_s = settings.guests_tenant, settings.rpc_timeout_s
    all_guests = f"tenant:{tenant_id}"
    with use_principal(Principal(tenant_id, _SETTER, frozenset({OPERATOR}))):
        stub = services.orchestrator
        listed = (await stub.ListLimitRules(pb.ListLimitRulesRequest(), timeout=timeout_s)).rules
        rules = {rule.whose for rule in listed if rule.limits and rule.tenant_id in {"", tenant_id}}
        if _EACH_GUEST not in rules:
            await stub.SetLimitRule(_rule(_EACH_GUEST, settings.guests_limits), timeout=timeout_s)
        if not rules & {all_guests, _EACH_TENANT}:  # a rule by name would take the place of the one for each tenant
            await stub.SetLimitRule(_rule(all_guests, settings.guests_limits_together), timeout=timeout_s)


def _rule(whose: str, limits: str) -> pb.SetLimitRuleRequest:
    parts = [pb.Limit(what=each.what.value, amount=each.amount, per=each.per.value) for each in limits_in(limits)]
    return pb.SetLimitRuleRequest(whose=whose, limits=parts)
