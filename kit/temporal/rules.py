"""The rules that find single expressions of time in a text: a pattern, and what it stands for."""

import re
from functools import cache

from kit.language.data import LANGUAGES
from kit.language.question_language import language_by_words
from kit.temporal import expressions
from kit.temporal.expressions import Build, DateOrder, Expression, Standing
from kit.temporal.vocabulary import alone, any_of, around, either, languages_of

_Rule = tuple[re.Pattern[str], Build]
YEAR = r"(?:19|20)\d\d"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?!\d)"
_ENDING = r"(?:st|nd|rd|th|er|º|\.|-?(?:го|е|ого))?"
_QUARTER = 4
"""Place of the quarter among the units."""
_NEAR_DAYS = {"before_yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "after_tomorrow": 2}


def find_expressions(text: str, order: DateOrder) -> list[Expression]:
    """In order, without overlaps; of two that overlap, the one that begins first, then the longer one."""
    codes, own = languages_of(text), language_by_words(text.lower())
    rules = [*_figures(), *(rule for code in codes for rule in _words(code))]
    rules += [rule for code in codes if own in ("", code) for rule in _days(code)]
    found = [
        expression
        for pattern, build in rules
        for match in pattern.finditer(text)
        if (expression := build(match, order)) is not None
    ]
    kept: list[Expression] = []
    for expression in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or expression.start >= kept[-1].end:
            kept.append(expression)
    return kept


@cache
def _figures() -> tuple[_Rule, ...]:
    """Rules without words. Compiled when first needed: services start without them."""
    year = rf"(?P<year>{YEAR})"
    table: list[tuple[str, Build]] = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", expressions.instant),
        (rf"{year}-(?P<month>\d\d)-(?P<day>\d\d)", expressions.day),
        (rf"{year}-?W(?P<week>\d\d)", expressions.week),
        (rf"(?:KW|CW)\s*(?P<week>\d{{1,2}})[\s/]+{year}", expressions.week),
        (
            rf"{year}[-/](?P<month>0[1-9]|1[0-2])|(?P<month_>0[1-9]|1[0-2])[/.](?P<year_>{YEAR})",
            expressions.month_of_year,
        ),
        (rf"(?P<first>\d{{1,2}})(?P<mark>[./-])(?P<second>\d{{1,2}})(?P=mark){year}", expressions.numbers),
        (rf"(?P<first>{YEAR})\s?[-–—]\s?(?P<last>{YEAR})", expressions.years),
        (rf"(?-i:Q)(?P<part>[1-4])(?:[\s,/'-]*(?:of\s+)?{year})?(?![.:)])", expressions.part_of_year(3)),
        (rf"{year}[\s/-]*(?:Q|T)(?P<part>[1-4])", expressions.part_of_year(3)),
        (rf"(?-i:H)(?P<part>[12])[\s,/-]*{year}", expressions.part_of_year(6)),
        (r"(?P<year>(?:19|20)\d0)s", expressions.decade),
        (rf"{year}(?![.,:/]?\d|[-–]\w)", expressions.whole_year(Standing.NEEDS_IN)),
    ]
    return tuple((alone(pattern), build) for pattern, build in table)


@cache
def _words(code: str) -> tuple[_Rule, ...]:
    """The rules of one language."""
    language = LANGUAGES[code]

    def named(group: str, field: str) -> str:
        return rf"(?P<{group}>{any_of(language, field)})"

    month, weekday, unit = rf"{named('month', 'months')}\.?", named("weekday", "weekdays"), named("unit", "units")
    count = rf"(?P<count>\d{{1,3}}|{any_of(language, 'numbers')})"
    part = rf"(?P<part>[1-4]\.?|I|II|III|IV|{any_of(language, 'ordinals')})"
    last, past, this, following = (any_of(language, field) for field in ("last", "past", "this", "next"))
    of, to, begins = (any_of(language, field) for field in ("of", "to", "begins"))
    year_before, year_behind = around(language, "year")
    ago_before, ago_behind = around(language, "ago")
    year = rf"(?:{year_before}\s*)?(?P<year>{YEAR})(?:\s*{year_behind})?"
    of_year = rf"(?:[\s,/]+|\s*{of}\s*){year}"
    first, second = rf"(?P<first>{_DAY}){_ENDING}", rf"(?P<last>{_DAY}){_ENDING}"
    made = expressions.Words(language)
    until = rf"(?:\s*[-–—]\s*|\s+{to}\s+)"
    quarter, half = either(language.time["units"][_QUARTER]), any_of(language, "half")
    near = [
        rule
        for word, place in ((last, -1), (this, 0), (following, 1))
        for rule in (
            (rf"{word}\s*{unit}(?!\s+{of}\s)", made.shifted(place)),
            (rf"{unit}\s+{word}", made.shifted(place)),
        )
    ]
    near += [
        rule
        for word, place in ((last, -1), (following, 1))
        for rule in (
            (rf"{word}\s+{month}|{month.replace('<month>', '<month_>')}\s+{word}", made.near_month(place)),
            (rf"{word}\s+{weekday}|{weekday.replace('<weekday>', '<weekday_>')}\s+{word}", made.weekday(place)),
        )
    ]
    table: list[tuple[str, Build]] = [
        (rf"{month}\s+{first}{until}{second}(?:,?\s+{year})?", made.day_range),
        (rf"(?:{begins}\s+)?{first}{until}{second}\s*(?:{of}\s+)?{month}(?:{of_year})?", made.day_range),
        (rf"(?P<day>{_DAY}){_ENDING}\s*(?:{of}\s+)?{month}(?:{of_year})?", made.day_of_month),
        (rf"{month}\s*(?P<day>{_DAY}){_ENDING}(?:,?\s+{year})?", made.day_of_month),
        (rf"(?P<year>{YEAR})\s*[年년]\s*{month}\s*(?P<day>{_DAY})\s*[日号일]", made.day_of_month),
        (rf"(?P<year>{YEAR})\s*(?:[年년]\s*)?{month}", made.month),
        (rf"{month}(?:{of_year})?", made.month),
        (rf"{part}[\s-]*{quarter}(?:{of_year})?", made.part_of_year(3)),
        (rf"{part}[\s-]*{half}{of_year}", made.part_of_year(6)),
        *near,
        (rf"(?:{count}\s*)?{past}\s*{unit}(?!\s+{of}\s)", made.rolling(1)),
        (rf"{past}\s*{count}\s*{unit}", made.rolling(1)),
        (rf"{count}\s*{unit}\s*{past}", made.rolling(1)),
        (rf"{following}\s*{count}\s*{unit}", made.rolling(-1)),
        (rf"{count}\s*{following}\s*{unit}", made.rolling(-1)),
        (rf"{ago_before}\s*{count}\s*{unit}", made.ago),
        (rf"(?:{count}\s*|(?<!\d\s)){unit}\s*{ago_behind}", made.ago),
        (rf"{any_of(language, 'start')}\s+(?:{any_of(language, 'articles')}\s*)?{unit}", made.shifted(0)),
        (rf"{this}\s+{weekday}", made.weekday(0)),
        (weekday, made.weekday(0, Standing.NEEDS_ON)),
        (rf"{year_before}\s*(?P<year>{YEAR})", expressions.whole_year(Standing.SURE)),
        (rf"(?P<year>{YEAR})\s*{year_behind}", expressions.whole_year(Standing.SURE)),
    ]
    return tuple((alone(pattern), build) for pattern, build in table)


@cache
def _days(code: str) -> tuple[_Rule, ...]:
    """Names of days near today. They count in a text of their language only: French "hier" is German for "here"."""
    return tuple(
        (alone(any_of(LANGUAGES[code], field)), expressions.near_day(distance))
        for field, distance in _NEAR_DAYS.items()
    )
