"""What single expressions of time stand for, by what a rule has matched: "March 2024", "Q3", "last week", "3 дня назад"."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum

from kit.language.data import Language
from kit.temporal.calendar import Moment, Span, shift
from kit.temporal.vocabulary import UNITS, entry


class DateOrder(Enum):
    """How 03/04/2024 is read."""

    DAY_FIRST = "DMY"
    MONTH_FIRST = "MDY"


class Standing(Enum):
    """Whether an expression can be taken at its word."""

    SURE = "sure"
    NEEDS_IN = "needs_in"
    """It may mean something else unless "in" or the like stands before it: "may", "2000"."""
    NEEDS_ON = "needs_on"
    """The same with "on": "Friday"."""


@dataclass(frozen=True)
class Expression:
    """An expression found in a text."""

    start: int
    end: int
    resolve: Callable[[Moment, int | None], Span]
    """What it stands for; the year is used if it names none itself. Raises ValueError or OverflowError if there is no such time."""
    has_year: bool = True
    standing: Standing = Standing.SURE


Match = re.Match[str]
Build = Callable[[Match, DateOrder], Expression | None]
"""Makes an expression of a match; None if it is none."""


@dataclass(frozen=True)
class _Calendar:
    """A day, month, quarter, half or year by its place in the calendar."""

    unit: str
    year: int | None
    month: int = 1
    day: int = 1
    direction: int = 0
    """Without a year: -1 the last one that is over, 1 the next one, 0 the last one that has begun."""

    def span(self, moment: Moment, year: int | None) -> Span:
        known = self.year or year
        return moment.span(self.unit, self._in_year(known) if known else self._nearest(moment.today))

    def _in_year(self, year: int) -> date:
        return date(year, self.month, self.day)

    def _nearest(self, today: date) -> date:
        """In nine years: February 29 may be as far. Raises ValueError where there is no such day."""
        step = 1 if self.direction > 0 else -1
        for year in range(today.year, today.year + 9 * step, step):
            try:
                first = self._in_year(year)
            except ValueError:
                continue
            if first > today if step > 0 else shift(self.unit, first, -self.direction) <= today:
                return first
        raise ValueError("no such day")


def _calendar(match: Match, calendar: _Calendar, standing: Standing = Standing.SURE) -> Expression:
    return Expression(match.start(), match.end(), calendar.span, calendar.year is not None, standing)


def _fixed(match: Match, span: Callable[[Moment], Span], standing: Standing = Standing.SURE) -> Expression:
    return Expression(match.start(), match.end(), lambda moment, _: span(moment), True, standing)


def _group(match: Match, name: str) -> str:
    """A group, or its twin of the other alternative; empty where neither has matched."""
    groups = match.groupdict()
    return groups.get(name) or groups.get(f"{name}_") or ""


def _year(match: Match) -> int | None:
    return int(_group(match, "year") or 0) or None


def instant(match: Match, _: DateOrder) -> Expression | None:
    try:
        time = datetime.fromisoformat(match.group().upper().replace(" ", "T"))
    except ValueError:
        return None

    def span(moment: Moment) -> Span:
        start = (time if time.tzinfo else time.replace(tzinfo=moment.zone)).astimezone(moment.zone)
        return Span(start, start + timedelta(minutes=1))

    return _fixed(match, span)


def day(match: Match, _: DateOrder) -> Expression:
    return _calendar(match, _Calendar("day", _year(match), int(match["month"]), int(match["day"])))


def month_of_year(match: Match, _: DateOrder) -> Expression:
    return _calendar(match, _Calendar("month", _year(match), int(_group(match, "month"))))


def week(match: Match, _: DateOrder) -> Expression:
    year, number = int(match["year"]), int(match["week"])
    return _fixed(match, lambda moment: moment.span("week", date.fromisocalendar(year, number, 1)))


def numbers(match: Match, order: DateOrder) -> Expression:
    first, second = int(match["first"]), int(match["second"])
    month_first = (order is DateOrder.MONTH_FIRST and match["mark"] != "." and first <= 12) or second > 12
    day, month = (second, first) if month_first else (first, second)
    return _calendar(match, _Calendar("day", _year(match), month, day))


def years(match: Match, _: DateOrder) -> Expression | None:
    first, last = int(match["first"]), int(match["last"])
    if first >= last:
        return None
    return _fixed(match, lambda moment: Span(moment.midnight(date(first, 1, 1)), moment.midnight(date(last + 1, 1, 1))))


def decade(match: Match, _: DateOrder) -> Expression:
    first = int(match["year"])
    return _fixed(
        match, lambda moment: Span(moment.midnight(date(first, 1, 1)), moment.midnight(date(first + 10, 1, 1)))
    )


def whole_year(standing: Standing) -> Build:
    return lambda match, _: _calendar(match, _Calendar("year", _year(match)), standing)


def part_of_year(months: int) -> Build:
    """A quarter or a half by its figure."""
    return lambda match, _: _part_of_year(match, months, int(match["part"]))


def _part_of_year(match: Match, months: int, part: int) -> Expression | None:
    unit = "quarter" if months == 3 else "half"
    return _calendar(match, _Calendar(unit, _year(match), months * (part - 1) + 1)) if part <= 12 // months else None


def near_day(distance: int) -> Build:
    return lambda match, _: _fixed(match, lambda moment: moment.shifted("day", distance))


_ROMAN = ("I", "II", "III", "IV")


@dataclass(frozen=True)
class Words:
    """Makes expressions of matches of one language's words."""

    language: Language

    def _entry(self, field: str, word: str) -> int:
        return entry(self.language, field, word)

    def _month(self, match: Match) -> int:
        return self._entry("months", _group(match, "month")) + 1

    def _unit(self, match: Match) -> str:
        return UNITS[self._entry("units", match["unit"])]

    def _count(self, match: Match) -> int:
        word = _group(match, "count")
        return self._entry("numbers", word) + 1 if word else 1

    def day_of_month(self, match: Match, _: DateOrder) -> Expression | None:
        if _group(match, "month").lower() == "may" and not _year(match):  # "5 may be"
            return None
        return _calendar(match, _Calendar("day", _year(match), self._month(match), int(match["day"])))

    def day_range(self, match: Match, _: DateOrder) -> Expression:
        year, month = _year(match), self._month(match)
        first, last = (_Calendar("day", year, month, int(match[name])) for name in ("first", "last"))

        def span(moment: Moment, other: int | None) -> Span:
            end = last.span(moment, other)
            assert end.start is not None
            if first.day > last.day:
                raise ValueError("the range ends before it begins")
            return Span(first.span(moment, end.start.year).start, end.end)

        return Expression(match.start(), match.end(), span, year is not None)

    def month(self, match: Match, _: DateOrder) -> Expression:
        year = _year(match)
        standing = Standing.SURE if year else Standing.NEEDS_IN
        return _calendar(match, _Calendar("month", year, self._month(match)), standing)

    def near_month(self, direction: int) -> Build:
        return lambda match, _: _calendar(match, _Calendar("month", None, self._month(match), direction=direction))

    def part_of_year(self, months: int) -> Build:
        def build(match: Match, _: DateOrder) -> Expression | None:
            word = match["part"].rstrip(".")
            part = _ROMAN.index(word.upper()) if word.upper() in _ROMAN else self._entry("ordinals", word)
            return _part_of_year(match, months, part + 1)

        return build

    def shifted(self, count: int) -> Build:
        def build(match: Match, _: DateOrder) -> Expression:
            unit = self._unit(match)
            return _fixed(match, lambda moment: moment.shifted(unit, count))

        return build

    def ago(self, match: Match, _: DateOrder) -> Expression:
        unit, count = self._unit(match), self._count(match)
        return _fixed(match, lambda moment: moment.shifted(unit, -count))

    def rolling(self, direction: int) -> Build:
        def build(match: Match, _: DateOrder) -> Expression:
            unit, count = self._unit(match), self._count(match)
            return _fixed(match, lambda moment: moment.rolling(unit, direction * count))

        return build

    def weekday(self, direction: int, standing: Standing = Standing.SURE) -> Build:
        """-1: the last one before today; 0: the last one, or today; 1: the next one."""

        def build(match: Match, _: DateOrder) -> Expression:
            weekday = self._entry("weekdays", _group(match, "weekday"))

            def span(moment: Moment) -> Span:
                distance = (weekday - moment.today.weekday()) % 7
                if direction > 0:
                    distance = distance or 7
                elif distance or direction < 0:
                    distance -= 7
                return moment.shifted("day", distance)

            return _fixed(match, span, standing)

        return build
