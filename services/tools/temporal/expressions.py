"""Single expressions of time: "March 2024", "Q3", "last week", "3 дня назад". Each is a rule: a pattern, and what it stands for."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache

from services.tools.temporal import vocabulary as words
from services.tools.temporal.calendar import Moment, Span, floor, shift


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


_Build = Callable[["re.Match[str]", DateOrder], Expression | None]
_Rule = tuple[re.Pattern[str], _Build]


def find_expressions(text: str, order: DateOrder) -> list[Expression]:
    """In order, without overlaps; of two that overlap, the one that begins first, then the longer one."""
    found = [
        expression
        for pattern, build in _rules()
        for match in pattern.finditer(text)
        if (expression := build(match, order)) is not None
    ]
    kept: list[Expression] = []
    for expression in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or expression.start >= kept[-1].end:
            kept.append(expression)
    return kept


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
            return next(day for day in self._years(today.year, 1) if day > today)
        ends = -1 if self.direction < 0 else 0
        return next(day for day in self._years(today.year, -1) if shift(self.unit, day, -ends) <= today)

    def _years(self, year: int, step: int) -> list[date]:
        """The day in nine years: February 29 may be as far."""
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


def _instant(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    try:
        time = datetime.fromisoformat(match.group().upper().replace(" ", "T"))
    except ValueError:
        return None

    def span(moment: Moment) -> Span:
        start = time if time.tzinfo else time.replace(tzinfo=moment.zone)
        start = start.astimezone(moment.zone)
        return Span(start, start + timedelta(minutes=1))

    return _fixed(match, span)


def _iso_day(match: "re.Match[str]", _: DateOrder) -> Expression:
    return _calendar(match, _Calendar("day", int(match["year"]), int(match["month"]), int(match["day"])))


def _iso_month(match: "re.Match[str]", _: DateOrder) -> Expression:
    return _calendar(match, _Calendar("month", int(match["year"]), int(match["month"])))


def _iso_week(match: "re.Match[str]", _: DateOrder) -> Expression:
    year, week = int(match["year"]), int(match["week"])
    return _fixed(match, lambda moment: moment.span("week", date.fromisocalendar(year, week, 1)))


def _numbers(match: "re.Match[str]", order: DateOrder) -> Expression:
    first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
    month_first = (order is DateOrder.MONTH_FIRST and match["mark"] != "." and first <= 12) or second > 12
    day, month = (second, first) if month_first else (first, second)
    return _calendar(match, _Calendar("day", year, month, day))


def _day(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    if match["month"] == "may" and not match["year"]:  # "5 may be"
        return None
    month = words.month_number(match["month"])
    return _calendar(match, _Calendar("day", _year(match), month, int(match["day"])))


def _day_range(match: "re.Match[str]", _: DateOrder) -> Expression:
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


def _month(match: "re.Match[str]", _: DateOrder) -> Expression:
    month, year = words.month_number(match["month"]), _year(match)
    standing = Standing.SURE if year else Standing.NEEDS_IN
    return _calendar(match, _Calendar("month", year, month), standing)


def _near_month(direction: int) -> _Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        month = words.month_number(match["month"])
        return _calendar(match, _Calendar("month", None, month, direction=direction))

    return build


def _quarter(match: "re.Match[str]", _: DateOrder) -> Expression:
    quarter = words.ordinal(match["quarter"])
    return _calendar(match, _Calendar("quarter", _year(match), 3 * quarter - 2))


def _half(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    half = words.ordinal(match["half"])
    return _calendar(match, _Calendar("half", _year(match), 6 * half - 5)) if half <= 2 else None


def _whole_year(standing: Standing) -> _Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        return _calendar(match, _Calendar("year", int(match["year"])), standing)

    return build


def _years(match: "re.Match[str]", _: DateOrder) -> Expression | None:
    first, last = int(match["first"]), int(match["last"])
    if first >= last:
        return None
    return _fixed(match, lambda moment: Span(moment.midnight(date(first, 1, 1)), moment.midnight(date(last + 1, 1, 1))))


def _decade(match: "re.Match[str]", _: DateOrder) -> Expression:
    first = int(match["year"])
    return _fixed(
        match, lambda moment: Span(moment.midnight(date(first, 1, 1)), moment.midnight(date(first + 10, 1, 1)))
    )


def _shifted(count: int) -> _Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        unit = words.unit_name(match["unit"])
        return _fixed(match, lambda moment: moment.shifted(unit, count))

    return build


def _ago(match: "re.Match[str]", _: DateOrder) -> Expression:
    unit, count = words.unit_name(match["unit"]), words.number(match["count"]) if match["count"] else 1
    return _fixed(match, lambda moment: moment.shifted(unit, -count))


def _rolling(direction: int) -> _Build:
    def build(match: "re.Match[str]", _: DateOrder) -> Expression:
        count = words.number(match["count"]) if match.groupdict().get("count") else 1
        unit = words.unit_name(match["unit"])
        return _fixed(match, lambda moment: moment.rolling(unit, direction * count))

    return build


def _near_day(distance: int) -> _Build:
    return lambda match, _: _fixed(match, lambda moment: moment.shifted("day", distance))


def _weekday(direction: int, standing: Standing = Standing.SURE) -> _Build:
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


def _weekday_of_this_week(match: "re.Match[str]", _: DateOrder) -> Expression:
    weekday = words.weekday_number(match["weekday"])
    return _fixed(match, lambda moment: moment.span("day", floor("week", moment.today) + timedelta(days=weekday)))


@cache
def _rules() -> tuple[_Rule, ...]:
    """Compiled when first needed: the service starts without them."""
    weak = Standing.NEEDS_IN
    year, month, unit = rf"(?P<year>{words.YEAR})", rf"(?P<month>{words.MONTH})", rf"(?P<unit>{words.UNIT})"
    day, count, weekday = rf"(?P<day>{words.DAY})", rf"(?P<count>{words.NUMBER})", rf"(?P<weekday>{words.WEEKDAY})"
    first, last = rf"(?P<first>{words.DAY})", rf"(?P<last>{words.DAY})"
    ending, to_year = words.DAY_ENDING, rf"(?:{words.OF}{year}{words.YEAR_WORD})?"
    this = rf"(?:{words.THIS}|{words.THIS_RUSSIAN})"
    of_what = r"(?!\s+(?:of|des|du|del?|vom|von)\s)"  # "the last week of March 2024"
    near_days = [(words.DAYS[distance], _near_day(distance)) for distance in words.DAYS]
    table: list[tuple[str, _Build]] = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", _instant),
        (rf"{year}-(?P<month>\d\d)-(?P<day>\d\d)", _iso_day),
        (rf"{year}-?W(?P<week>\d\d)", _iso_week),
        (rf"(?:week|kw|kalenderwoche|semaine|semana)\s*(?P<week>\d{{1,2}}){words.OF}{year}", _iso_week),
        (rf"{year}[-/](?P<month>0[1-9]|1[0-2])", _iso_month),
        (rf"(?P<month>0[1-9]|1[0-2])[/.]{year}", _iso_month),
        (rf"(?P<first>\d{{1,2}})(?P<mark>[./-])(?P<second>\d{{1,2}})(?P=mark){year}", _numbers),
        (rf"(?P<first>{words.YEAR})\s?[-–—]\s?(?P<last>{words.YEAR}){words.YEAR_WORD}", _years),
        (rf"{month}\s+{first}{ending}{words.RANGE}{last}{ending}(?:,?\s+{year})?", _day_range),
        (
            rf"(?:{words.FROM}\s+)?{first}{ending}{words.RANGE}{last}{ending}\s+(?:de\s+)?{month}{to_year}{words.YEAR_WORD}",
            _day_range,
        ),
        (
            rf"{words.BETWEEN}\s+{first}{ending}{words.RANGE_AND}{last}{ending}\s+(?:of\s+|de\s+)?{month}{to_year}",
            _day_range,
        ),
        (rf"{words.BETWEEN}\s+{month}\s+{first}{ending}{words.RANGE_AND}{last}{ending}(?:,?\s+{year})?", _day_range),
        (rf"{day}{ending}\s+(?:of\s+|de\s+)?{month}{to_year}", _day),
        (rf"{month}\s+{day}{ending}(?:,?\s+{year})?", _day),
        (rf"{month}{words.OF}{year}{words.YEAR_WORD}", _month),
        (rf"{month}(?P<year>\b)", _month),
        (rf"{words.LAST}\s+{month}", _near_month(-1)),
        (rf"{month}\s+{words.LAST_AFTER}", _near_month(-1)),
        (rf"{words.NEXT}\s+{month}", _near_month(1)),
        (rf"(?-i:Q)(?P<quarter>[1-4])(?:[\s,/'-]*(?:of\s+)?{year})?(?![.:)])", _quarter),
        (rf"(?:(?-i:T)(?P<quarter>[1-4]))[\s,/-]*(?:de\s+)?{year}", _quarter),
        (rf"(?P<quarter>[1-4])T[\s,/-]*(?:de\s+)?{year}", _quarter),
        (rf"{year}[\s/-]*(?:Q|T)(?P<quarter>[1-4])", _quarter),
        (rf"(?P<quarter>{words.ORDINAL})[\s-]*{words.QUARTER_UNIT}{to_year}", _quarter),
        (rf"(?-i:H)(?P<half>[12])[\s,/-]*{year}", _half),
        (rf"(?P<half>{words.ORDINAL})\s+{words.HALF_UNIT}{words.OF}{year}{words.YEAR_WORD}", _half),
        (rf"{words.LAST}\s+{unit}{of_what}", _shifted(-1)),
        (rf"{unit}\s+{words.LAST_AFTER}", _shifted(-1)),
        (rf"{this}\s+{unit}(?:-ci)?", _shifted(0)),
        (rf"{unit}\s+(?:en\s+cours|en\s+curso|actuel(?:le)?|actual)", _shifted(0)),
        (rf"{words.NEXT}\s+{unit}{of_what}", _shifted(1)),
        (rf"{unit}\s+(?:{words.NEXT_AFTER}|que\s+viene)", _shifted(1)),
        (rf"{words.ROLLING}\s+{unit}", _rolling(1)),
        (rf"за\s+{unit}", _rolling(1)),
        (rf"{words.LAST_SEVERAL}\s+{count}\s+{unit}", _rolling(1)),
        (rf"{count}\s+{words.LAST_SEVERAL}\s+{unit}", _rolling(1)),
        (rf"{words.NEXT_SEVERAL}\s+{count}\s+{unit}", _rolling(-1)),
        (rf"{count}\s+(?:prochaine?s|pr[óo]xim[oa]s)\s+{unit}", _rolling(-1)),
        (rf"{count}\s+{unit}\s+(?:ago|назад|zuvor)", _ago),
        (rf"(?P<count>(?<!\d\s)){unit}\s+назад", _ago),
        (rf"{words.BEGINNING_OF_CURRENT}\s*{unit}", _shifted(0)),
        (rf"(?:vor|il\s+y\s+a|hace)\s+{count}\s+{unit}", _ago),
        (r"the\s+day\s+before\s+yesterday|day\s+before\s+yesterday", _near_day(-2)),
        (r"the\s+day\s+after\s+tomorrow|day\s+after\s+tomorrow", _near_day(2)),
        *((word, build) for text, build in near_days for word in text.split()),
        (r"(?<!guten )(?<!heute )(?<!gestern )morgen|(?<!la )mañana", _near_day(1)),
        (r"hier", _hier),
        (rf"{words.LAST}\s+{weekday}", _weekday(-1)),
        (rf"{weekday}\s+{words.LAST_AFTER}", _weekday(-1)),
        (rf"{words.NEXT}\s+{weekday}", _weekday(1)),
        (rf"{weekday}\s+{words.NEXT_AFTER}", _weekday(1)),
        (rf"{this}\s+{weekday}", _weekday_of_this_week),
        (weekday, _weekday(0, Standing.NEEDS_ON)),
        (rf"{year}(?:-?(?:й|м|го|ом|ого))?\s*(?:годах|году|годом|года|год|г\.)", _whole_year(Standing.SURE)),
        (rf"(?:year|jahre?s?|année|annee|año)\s+{year}", _whole_year(Standing.SURE)),
        (r"(?P<year>(?:19|20)\d0)(?:s|er|-?е|-?х)", _decade),
        (rf"{year}(?![.,:/]?\d|[-–]\w)", _whole_year(weak)),
    ]
    return tuple((re.compile(rf"(?<![\w.,/-])(?:{pattern})(?!\w)", re.IGNORECASE), build) for pattern, build in table)


_FRENCH = re.compile(
    r"(?i)\b(?:le|la|les|des|est|ont|qui|que|quoi|dans|avec|pour|sur|il|elle|nous|vous)\b|\b[ldcjnsq]['’]"
)


def _hier(match: "re.Match[str]", _: DateOrder) -> Expression:
    """Yesterday in French, here in German."""
    standing = Standing.SURE if _FRENCH.search(match.string) else Standing.NEEDS_IN
    return _fixed(match, lambda moment: moment.shifted("day", -1), standing)
