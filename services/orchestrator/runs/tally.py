"""What runs have cost, by day, user, thread and model: an entry a run, written before the run's end is stored. A run that ends
again after a crash has the same entry written again, so that it counts once; and it counts when the run itself is deleted."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Protocol

from services.orchestrator.errors import InvalidRequest
from services.orchestrator.log.events import Usage
from services.orchestrator.models import RunKey, RunRecord

MOST_DAYS = 400


@dataclass(frozen=True)
class RunCost:
    """What one run has cost. It belongs to the day (UTC) on which the run began."""

    key: RunKey
    subject: str
    day: date
    thread_id: str
    model: str
    """Model that was asked last, whatever became of its answer; empty when none was."""
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


class Tally(Protocol):
    """Keeps the costs of runs. Both raise Unavailable."""

    async def put(self, cost: RunCost) -> None:
        """Harmless when repeated."""
        ...

    def of_day(self, tenant_id: str, subject: str, day: date) -> AsyncGenerator[RunCost, None]:
        """The runs of a day; of all users where `subject` is empty."""
        ...


class GroupBy(Enum):
    """What a row of an account stands for."""

    DAY = "day"
    SUBJECT = "subject"
    THREAD = "thread"
    MODEL = "model"


_KEY_OF: Mapping[GroupBy, Callable[[RunCost], str]] = {
    GroupBy.DAY: lambda cost: cost.day.isoformat(),
    GroupBy.SUBJECT: lambda cost: cost.subject,
    GroupBy.THREAD: lambda cost: cost.thread_id,
    GroupBy.MODEL: lambda cost: cost.model,
}


@dataclass(frozen=True)
class Period:
    """From the first day to the last, both included (UTC)."""

    first: date
    last: date

    @classmethod
    def read(cls, since: str, until: str, today: date) -> "Period":
        """Of two dates as 2026-01-31; empty means the month until today. Raises InvalidRequest."""
        last = _date(until, "until") if until else today
        first = _date(since, "since") if since else last - timedelta(days=30)
        if not timedelta() <= last - first < timedelta(days=MOST_DAYS):
            raise InvalidRequest(f"until must not be before since, nor {MOST_DAYS} days behind it", field="until")
        return cls(first, last)

    @property
    def days(self) -> Iterable[date]:
        return (self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))


@dataclass
class Row:
    """The sum of some runs. `key` is the day, user, thread or model that they share; of a total it is empty."""

    key: str
    runs: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def add(self, cost: RunCost) -> None:
        self.runs += 1
        self.prompt_tokens += cost.prompt_tokens
        self.completion_tokens += cost.completion_tokens
        self.cost_usd += cost.cost_usd


@dataclass(frozen=True)
class Account:
    """Rows by key, and their sum."""

    rows: Sequence[Row]
    total: Row


def cost_of(record: RunRecord, usage: Usage) -> RunCost:
    return RunCost(
        record.key,
        record.subject,
        record.created_at.date(),
        record.request.thread_id,
        next((step.model for step in reversed(usage.steps) if step.model), ""),
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cost_usd,
    )


async def account(tally: Tally, tenant_id: str, subject: str, period: Period, by: GroupBy) -> Account:
    """What the runs of a user, or of all where `subject` is empty, have cost in a period. Raises Unavailable."""
    rows: dict[str, Row] = {}
    total = Row("")
    for day in period.days:
        async with aclosing(tally.of_day(tenant_id, subject, day)) as costs:
            async for cost in costs:
                key = _KEY_OF[by](cost)
                rows.setdefault(key, Row(key)).add(cost)
                total.add(cost)
    return Account(sorted(rows.values(), key=lambda row: row.key), total)


def _date(text: str, field: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a date has no zone
    except ValueError:
        raise InvalidRequest(f"{text[:40]!r} is not a date, as in 2026-01-31", field=field) from None
