"""The error of a caller that has reached a limit."""

import math
from datetime import datetime

from kit.errors import ResourceExhausted
from kit.limits.rules import Applied, Per, Scope, What, Whose

_FREED_WITHIN_S = 60.0
"""By then runs that go on have given back most of what they had reserved."""
_OF = {
    Scope.ALL: "this installation",
    Scope.TENANT: "your tenant",
    Scope.SUBJECT: "you",
    Scope.KEY: "this API key",
}
_GIVEN_BACK = frozenset(What) - {What.REQUESTS, What.DOCUMENTS, What.CREDITS}
"""What runs reserve, and give back as far as they do not use it."""
_SOONER = ", or sooner when questions that are being answered give back what they reserved"
_EVERY = {Per.SECOND: "a second", Per.MINUTE: "a minute", Per.HOUR: "an hour", Per.DAY: "a day", Per.MONTH: "a month"}


class LimitReached(ResourceExhausted):
    """The caller, their API key, one of their groups, their tenant or all together have used what they may for now."""

    reason = "LIMIT_REACHED"


def limit_reached(applied: Applied, now: datetime) -> LimitReached:
    """Says which limit, whose, and when it is free again."""
    limit, end = applied.limit, applied.limit.per.end(now)
    what = limit.what.value.replace("_", " ")
    whose = name_holder(applied.whose)
    if end is None:
        error = LimitReached(
            f"{whose} got {limit.amount:g} {what}, and too few are left. An administrator can grant more: groundwork limits grant",
            retryable=False,
        )
    else:
        wait_s = limit.per.ends_in_s(now)
        sooner = _SOONER if limit.what in _GIVEN_BACK else ""
        error = LimitReached(
            f"{whose} may use {limit.amount:g} {what} {_EVERY[limit.per]}, and that is reached. It is free again at "
            f"{end.isoformat()}{sooner}. Who set the limit can raise it: groundwork limits",
            retry_after_s=min(wait_s, _FREED_WITHIN_S) if sooner else wait_s,
            free_at=end.isoformat(),
            free_in_s=f"{math.ceil(wait_s)}",
        )
    error.metadata.update(describe_limit(applied))
    return error


def name_holder(whose: Whose) -> str:
    """Whose use a limit sums up, in words to the caller."""
    return _OF.get(whose.scope) or f"the group {whose.member}"


def describe_limit(applied: Applied) -> dict[str, str]:
    """Which limit, and whose, for the metadata of an error."""
    limit = applied.limit
    amount = f"{limit.amount:.15g}"
    return {"limit": limit.what.value, "whose": applied.whose.label, "amount": amount, "per": limit.per.value}
