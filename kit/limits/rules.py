"""What each tenant, group, user and API key may use in a second, a minute, an hour, a day or a month (UTC), or in all, by rules
that an operator or administrator sets. All limits about a caller hold at once, so the tightest decides."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from kit.access.principal import Principal


class What(Enum):
    """What is counted."""

    REQUESTS = "requests"
    """To the gateway, by callers that it knows."""
    RUNS = "runs"
    RESEARCH_RUNS = "research_runs"
    """Runs of the research agent, which count as runs, too."""
    TOKENS = "tokens"
    """Read and written by models."""
    DOLLARS = "dollars"
    """By the prices of the models."""
    TOOL_CALLS = "tool_calls"
    """Of tools in chats and research."""
    SECONDS = "seconds"
    """Worked on runs."""
    DOCUMENTS = "documents"
    """Files that were uploaded."""
    CREDITS = "credits"
    """Taken by answers from what was granted."""
    STORAGE = "storage"
    """Bytes of the files that are stored."""
    STORED_DOCUMENTS = "stored_documents"
    """Documents that are there, however long ago they were uploaded."""


STORED = frozenset({What.STORAGE, What.STORED_DOCUMENTS})
"""What deleting frees. The records of documents say how much of it is used, so no counter is kept."""


class Per(Enum):
    """How long a window is. Windows begin with the second, minute, hour, day or month, in UTC; one of them never ends."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    EVER = "ever"
    """Of credits and of what is stored alone: what was granted or is there in all."""

    def window(self, now: datetime) -> str:
        """The name of the window that `now` is in: hour-2026-01-31T13."""
        if self is Per.EVER:
            return "ever"
        digits = {Per.SECOND: 19, Per.MINUTE: 16, Per.HOUR: 13, Per.DAY: 10, Per.MONTH: 7}[self]
        return f"{self.value}-{now.astimezone(UTC).isoformat()[:digits]}"

    def end(self, now: datetime) -> datetime | None:
        """When the next window begins; None where none does."""
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        hour = minute.replace(minute=0)
        match self:
            case Per.SECOND:
                return minute.replace(second=now.second) + timedelta(seconds=1)
            case Per.MINUTE:
                return minute + timedelta(minutes=1)
            case Per.HOUR:
                return hour + timedelta(hours=1)
            case Per.DAY:
                return hour.replace(hour=0) + timedelta(days=1)
            case Per.MONTH:
                return (hour.replace(day=1, hour=0) + timedelta(days=32)).replace(day=1)
            case Per.EVER:
                return None

    def ends_in_s(self, now: datetime) -> float:
        """Seconds until the next window begins; infinite where none does."""
        end = self.end(now)
        return math.inf if end is None else (end - now).total_seconds()

    @property
    def seconds(self) -> int:
        """The length of a window; of a month the longest; 0 of one that never ends."""
        lengths = {Per.SECOND: 1, Per.MINUTE: 60, Per.HOUR: 3_600, Per.DAY: 86_400, Per.MONTH: 2_678_400, Per.EVER: 0}
        return lengths[self]


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `amount` of something in each window."""

    what: What
    amount: float
    per: Per

    @property
    def is_possible(self) -> bool:
        """Whether this is counted so: credits and what is stored have no window, all else is counted anew in each."""
        return (self.what in {What.CREDITS, *STORED}) == (self.per is Per.EVER)


class Scope(Enum):
    """Whose use is summed up."""

    ALL = "all"
    """Of the whole installation."""
    TENANT = "tenant"
    GROUP = "group"
    """Of all members of a group of a tenant."""
    SUBJECT = "subject"
    KEY = "key"
    """Of what is asked with one API key."""
    HOST = "host"
    """Requests to one web server, for all tenants together: no rule limits them, but a setting of the tools service."""

    @property
    def is_within_tenant(self) -> bool:
        """Whether a tenant's administrators may limit it."""
        return self not in (Scope.ALL, Scope.TENANT)


EACH = "*"
"""Instead of a name: each tenant, or each user or API key of the tenant, that has no rule of its own."""


@dataclass(frozen=True, slots=True)
class Whose:
    """Whom a rule is about."""

    scope: Scope
    tenant_id: str = ""
    """EACH in a rule for each tenant; empty where all are summed up."""
    member: str = ""
    """Name of the group or user, or id of the API key; EACH in a rule for each user or key of the tenant; empty of other scopes."""

    @property
    def name(self) -> str:
        """As it is written by a client: `all`, `tenant:acme`, `subject:ann`."""
        if self.scope is Scope.ALL:
            return "all"
        return f"{self.scope.value}:{self.member if self.scope.is_within_tenant else self.tenant_id}"

    @property
    def label(self) -> str:
        """The name in messages to the caller."""
        return self.name if self.scope is Scope.GROUP else self.scope.value


@dataclass(frozen=True, slots=True)
class Applied:
    """A limit that holds for a caller, and whose use it sums up."""

    limit: Limit
    whose: Whose


class Rules:
    """The rules that hold now."""

    def __init__(self, defaults: Mapping[Whose, Sequence[Limit]] | None = None) -> None:
        """`defaults`: limits that hold where no rule about the same says how much of a thing may be used."""
        self._defaults = dict(defaults or {})
        self._limits: dict[Whose, Sequence[Limit]] = {}
        self._groups: dict[str, set[str]] = {}
        """The groups that have a rule, by tenant: a caller may be in hundreds that have none."""

    def set(self, whose: Whose, limits: Sequence[Limit]) -> None:
        """Replaces the limits of one rule; none removes it."""
        self._limits.pop(whose, None)
        if limits:
            self._limits[whose] = tuple(limits)
        if whose.scope is Scope.GROUP:
            groups = self._groups.setdefault(whose.tenant_id, set())
            (groups.add if limits else groups.discard)(whose.member)

    def of(self, principal: Principal) -> Sequence[Applied]:
        """The limits that hold for a caller. A tenant's, user's or key's own rule stands instead of the one for each."""
        tenant_id = principal.tenant_id
        limited = sorted(principal.groups & self._groups.get(tenant_id, set()))
        found = [
            Whose(Scope.ALL),
            Whose(Scope.TENANT, tenant_id),
            *(Whose(Scope.GROUP, tenant_id, group) for group in limited),
            Whose(Scope.SUBJECT, tenant_id, principal.subject),
            *([Whose(Scope.KEY, tenant_id, principal.key_id)] if principal.key_id else []),
        ]
        return [Applied(limit, whose) for whose in found for limit in self._about(whose)]

    def limit(self, things: Collection[What]) -> bool:
        """Whether anything of these is limited for anybody."""
        everything = [*self._limits.values(), *self._defaults.values()]
        return any(limit.what in things for limits in everything for limit in limits)

    def listed(self, tenant_id: str = "") -> Mapping[Whose, Sequence[Limit]]:
        """All rules, or those about a tenant and what is within it."""
        return dict(
            sorted(self._visible(tenant_id), key=lambda rule: (rule[0].scope.value, rule[0].tenant_id, rule[0].member))
        )

    def _about(self, whose: Whose) -> Sequence[Limit]:
        set_limits = _own_or_each(self._limits, whose)
        if not self._defaults:
            return set_limits
        said = {limit.what for limit in set_limits}
        return [*set_limits, *(each for each in _own_or_each(self._defaults, whose) if each.what not in said)]

    def _visible(self, tenant_id: str) -> Iterator[tuple[Whose, Sequence[Limit]]]:
        for whose, limits in self._limits.items():
            if not tenant_id or whose.tenant_id == tenant_id:
                yield whose, limits


def _own_or_each(limits: Mapping[Whose, Sequence[Limit]], whose: Whose) -> Sequence[Limit]:
    own = limits.get(whose)
    return own if own is not None else limits.get(_each(whose), ())


def _each(whose: Whose) -> Whose:
    """The rule that holds where there is none by name."""
    return Whose(whose.scope, whose.tenant_id, EACH) if whose.scope.is_within_tenant else Whose(whose.scope, EACH)
