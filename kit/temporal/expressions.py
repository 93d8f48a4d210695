"""What single expressions of time stand for, by what a rule has matched: "March 2024", "Q3", "last week", "3 дня назад"."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum

from kit.temporal import vocabulary as words
from kit.temporal.calendar import Moment, Span, floor, shift


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


Build = Callable[["re.Match[str]", DateOrder], Expression | None]
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
        if self.direction > 0:
            return next(day for day in self._in_nine_years(today.year, 1) if day > today)
        ends = -1 if self.direction < 0 else 0
        return next(day for day in self._in_nine_years(today.year, -1) if shift(self.unit, day, -ends) <= today)

    def _in_nine_years(self, year: int, step: int) -> list[date]:
        """The day in nine years, one after the other: February 29 may be as far."""
        days = []
        for candidate in range(year, year + 9 * step, step):
            try:
                days.append(self._in_year(candidate))
            except ValueError:
                continue
        if not days:
            raise ValueError("no such day")
        return days


def _calendar(match: "re.Match[str]", calendar: _Calendar, standing: Standing = Standing.SURE) -> Expression:
    return Expression(match.start(), match.end(), calendar.span, calendar.year is not None, standing)


def _fixed(match: "re.Match[str]", span: Callable[[Moment], Span], standing: Standing = Standing.SURE) -> Expression:
    return Expression(match.start(), match.end(), lambda moment, _: span(moment), True, standing)


def _year(match: "re.Match[str]") -> int | None:
    return int(match["year"]) if match["year"] else None


def instant(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    try:
        time = datetime.fromisoformat(match.group().upper().replace(" ", "T"))
    except ValueError:
        return None

    def span(moment: Moment) -> Span:
        start = time if time.tzinfo else time.replace(tzinfo=moment.zone)
        start = start.astimezone(moment.zone)
        return Span(start, start + timedelta(minutes=1))

    return _fixed(match, span)


def iso_day(match: "re.Match[str]", _: DateOrder) -> Expression:
    return _calendar(match, _Calendar("day", int(match["year"]), int(match["month"]), int(match["day"])))


def iso_month(match: "re.Match[str]", _: DateOrder) -> Expression:
    return _calendar(match, _Calendar("month", int(match["year"]), int(match["month"])))


def iso_week(match: "re.Match[str]", _: DateOrder) -> Expression:
    year, week = int(match["year"]), int(match["week"])
    return _fixed(match, lambda moment: moment.span("week", date.fromisocalendar(year, week, 1)))


def numbers(match: "re.Match[str]", order: DateOrder) -> Expression:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    month_first = (order is DateOrder.MONTH_FIRST and match["mark"] != "." and first <= 12) or second > 12
    day, month = (second, first) if month_first else (first, second)
    return _calendar(match, _Calendar("day", year, month, day))


def day_of_month(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    if match["month"] == "may" and not match["year"]:  # "5 may be"
        return None
    month = words.month_number(match["month"])
    return _calendar(match, _Calendar("day", _year(match), month, int(match["day"])))


def day_range(match: "re.Match[str]", _: DateOrder) -> Expression:
    month = words.month_number(match["month"])
    first, last = (_Calendar("day", _year(match), month, int(match[name])) for name in ("first", "last"))

    def span(moment: Moment, year: int | None) -> Span:
        end = last.span(moment, year)
        assert end.start is not None
        start = first.span(moment, end.start.year)
        if first.day > last.day:
            raise ValueError("the range ends before it begins")
        return Span(start.start, end.end)

    return Expression(match.start(), match.end(), span, match["year"] is not None)


def month(match: "re.Match[str]", _: DateOrder) -> Expression:
    month, year = words.month_number(match["month"]), _year(match)
    standing = Standing.SURE if year else Standing.NEEDS_IN
    return _calendar(match, _Calendar("month", year, month), standing)


def near_month(direction: int) -> Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        month = words.month_number(match["month"])
        return _calendar(match, _Calendar("month", None, month, direction=direction))

    return build


def quarter(match: "re.Match[str]", _: DateOrder) -> Expression:
    quarter = words.ordinal(match["quarter"])
    return _calendar(match, _Calendar("quarter", _year(match), 3 * quarter - 2))


def half(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    half = words.ordinal(match["half"])
    return _calendar(match, _Calendar("half", _year(match), 6 * half - 5)) if half <= 2 else None


def whole_year(standing: Standing) -> Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        return _calendar(match, _Calendar("year", int(match["year"])), standing)

    return build


def years(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    first, last = int(match["first"]), int(match["last"])
    if first >= last:
        return None
    return _fixed(match, lambda moment: Span(moment.midnight(date(first, 1, 1)), moment.midnight(date(last + 1, 1, 1))))


def decade(match: "re.Match[str]", _: DateOrder) -> Expression:
    first = int(match["year"])
    return _fixed(
        match, lambda moment: Span(moment.midnight(date(first, 1, 1)), moment.midnight(date(first + 10, 1, 1)))
    )


def shifted(count: int) -> Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        unit = words.unit_name(match["unit"])
        return _fixed(match, lambda moment: moment.shifted(unit, count))

    return build


def ago(match: "re.Match[str]", _: DateOrder) -> Expression:
    unit, count = words.unit_name(match["unit"]), words.number(match["count"]) if match["count"] else 1
    return _fixed(match, lambda moment: moment.shifted(unit, -count))


def rolling(direction: int) -> Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        count = words.number(match["count"]) if match.groupdict().get("count") else 1
        unit = words.unit_name(match["unit"])
        return _fixed(match, lambda moment: moment.rolling(unit, direction * count))

    return build


def near_day(distance: int) -> Build:
    return lambda match, _: _fixed(match, lambda moment: moment.shifted("day", distance))


def weekday(direction: int, standing: Standing = Standing.SURE) -> Build:
    """-1: the last one before today; 0: the last one, or today; 1: the next one."""

    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        weekday = words.weekday_number(match["weekday"])

        def span(moment: Moment) -> Span:
            distance = (weekday - moment.today.weekday()) % 7
            if direction > 0:
                distance = distance or 7
            elif distance or direction < 0:
                distance -= 7
            return moment.shifted("day", distance)

        return _fixed(match, span, standing)

    return build


def weekday_of_this_week(match: "re.Match[str]", _: DateOrder) -> Expression:
    weekday = words.weekday_number(match["weekday"])
    return _fixed(match, lambda moment: moment.span("day", floor("week", moment.today) + timedelta(days=weekday)))


_FRENCH = re.compile(
    r"(?i)\b(?:le|la|les|des|est|ont|qui|que|quoi|dans|avec|pour|sur|il|elle|nous|vous)\b|\b[ldcjnsq]['’]"
)


def hier(match: "re.Match[str]", _: DateOrder) -> Expression:
    """Yesterday in French, here in German."""
    standing = Standing.SURE if _FRENCH.search(match.string) else Standing.NEEDS_IN
    return _fixed(match, lambda moment: moment.shifted("day", -1), standing)
