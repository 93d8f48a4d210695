"""Days, weeks, months, quarters, halves and years as half-open periods: from their first day up to, and without, the first day of
the next one. A week begins on Monday (ISO 8601)."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

_MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12}


@dataclass(frozen=True)
class Span:
    """From `start` up to, and without, `end`. None: no limit."""

    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class Moment:
    """The time that relative expressions count from, in its zone."""

    now: datetime

    @property
    def today(self) -> date:
        return self.now.date()

    @property
    def zone(self) -> tzinfo | None:
        return self.now.tzinfo

    def midnight(self, day: date) -> datetime:
        """The day's beginning, here."""
        return datetime(day.year, day.month, day.day, tzinfo=self.zone)

    def span(self, unit: str, day: date) -> Span:
        """The day, week, month and so on that the day is in."""
        first = floor(unit, day)
        return Span(self.midnight(first), self.midnight(shift(unit, first, 1)))

    def shifted(self, unit: str, count: int) -> Span:
        """The unit that lies `count` units from the current one."""
        if unit == "hour":
            hour = self.now.replace(minute=0, second=0, microsecond=0)
            return Span(self.later(hour, count), self.later(hour, count + 1))
        return self.span(unit, shift(unit, floor(unit, self.today), count))

    def rolling(self, unit: str, count: int) -> Span:
        """The last `count` units (or, below 0, the next ones), counted from today, which is within."""
        if unit == "hour":
            return (
                Span(self.later(self.now, -count), self.now)
                if count > 0
                else Span(self.now, self.later(self.now, -count))
            )
        other = shift(unit, self.today, -count)
        first, last = min(other, self.today), max(other, self.today)
        return Span(self.midnight(first), self.midnight(last + timedelta(days=1)))

    def later(self, time: datetime, hours: int) -> datetime:
        """By the clock's running, not by its hands: a day of a time change has 23 or 25 hours."""
        return datetime.fromtimestamp(time.timestamp() + 3600 * hours, self.zone)


def floor(unit: str, day: date) -> date:
    """The first day of the unit that the day is in."""
    if unit == "day":
        return day
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(month=day.month - (day.month - 1) % _MONTHS[unit], day=1)


def shift(unit: str, day: date, count: int) -> date:
    """The same day `count` units later, or the last of its month where there is none. Raises ValueError or OverflowError."""
    if unit in {"day", "week"}:
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    year, month = divmod(day.year * 12 + day.month - 1 + count * _MONTHS[unit], 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
