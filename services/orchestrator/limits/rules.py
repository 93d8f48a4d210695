"""What each tenant and user may use in an hour, a day or a month (UTC), by rules that an operator or administrator sets. All limits
about a caller hold at once, so the tightest decides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from kit.access.principal import Principal


class What(Enum):
    """What is counted."""

    RUNS = "runs"
    RESEARCH_RUNS = "research_runs"
    """Runs of the research agent, which count as runs, too."""
    TOKENS = "tokens"
    """Read and written by models."""
    DOLLARS = "dollars"
    """By the prices of the models."""


class Per(Enum):
    """How long a window is. Windows begin with the hour, day or month, in UTC."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    def window(self, now: datetime) -> str:
        """The name of the window that `now` is in: hour-2026-01-31T13."""
        digits = {Per.HOUR: 13, Per.DAY: 10, Per.MONTH: 7}[self]
        return f"{self.value}-{now.astimezone(UTC).isoformat()[:digits]}"

    def end(self, now: datetime) -> datetime:
        """When the next window begins."""
        hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        match self:
            case Per.HOUR:
                return hour + timedelta(hours=1)
            case Per.DAY:
                return hour.replace(hour=0) + timedelta(days=1)
            case Per.MONTH:
                return (hour.replace(day=1, hour=0) + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True)
class Limit:
    """At most `amount` of something in each window."""

    what: What
    amount: float
    per: Per


class Scope(Enum):
    """Whose use is summed up."""

    ALL = "all"
    """Of the whole installation."""
    TENANT = "tenant"
    SUBJECT = "subject"


EACH = "*"
"""Instead of a name: each tenant, or each user of the tenant, who has no rule of their own."""


@dataclass(frozen=True)
class Whose:
    """Whom a rule is about."""

    scope: Scope
    tenant_id: str = ""
    """EACH in a rule for each tenant; empty where all are summed up."""
    subject: str = ""
    """EACH in a rule for each user of the tenant; empty unless the scope is a user."""

    @property
    def name(self) -> str:
        """As it is written by a client: `all`, `tenant:acme`, `subject:ann`."""
        match self.scope:
            case Scope.ALL:
                return "all"
            case Scope.TENANT:
                return f"tenant:{self.tenant_id}"
            case Scope.SUBJECT:
                return f"subject:{self.subject}"


@dataclass(frozen=True)
class Applied:
    """A limit that holds for a caller, and whose use it sums up."""

    limit: Limit
    whose: Whose


class Rules:
    """The rules that hold now."""

    def __init__(self) -> None:
        self._limits: dict[Whose, Sequence[Limit]] = {}

    def set(self, whose: Whose, limits: Sequence[Limit]) -> None:
        """Replaces the limits of one rule; none removes it."""
        self._limits.pop(whose, None)
        if limits:
            self._limits[whose] = tuple(limits)

    def of(self, principal: Principal) -> Sequence[Applied]:
        """The limits that hold for a caller. A tenant's or user's own rule stands instead of the one for each."""
        tenant = Whose(Scope.TENANT, principal.tenant_id)
        subject = Whose(Scope.SUBJECT, principal.tenant_id, principal.subject)
        found = [
            (Whose(Scope.ALL), (Whose(Scope.ALL),)),
            (tenant, (tenant, Whose(Scope.TENANT, EACH))),
            (subject, (subject, Whose(Scope.SUBJECT, principal.tenant_id, EACH))),
        ]
        return [Applied(limit, whose) for whose, rules in found for limit in self._first(rules)]

    def listed(self, tenant_id: str = "") -> Mapping[Whose, Sequence[Limit]]:
        """All rules, or those about a tenant and its users."""
        return dict(
            sorted(self._visible(tenant_id), key=lambda rule: (rule[0].scope.value, rule[0].tenant_id, rule[0].subject))
        )

    def _first(self, rules: Sequence[Whose]) -> Sequence[Limit]:
        return next((self._limits[rule] for rule in rules if rule in self._limits), ())

    def _visible(self, tenant_id: str) -> Iterator[tuple[Whose, Sequence[Limit]]]:
        for whose, limits in self._limits.items():
            if not tenant_id or whose.tenant_id == tenant_id:
                yield whose, limits
