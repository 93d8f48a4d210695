"""The rules that find single expressions of time in a text: a pattern, and what it stands for."""

import re
from functools import cache

from kit.temporal import expressions
from kit.temporal import vocabulary as words
from kit.temporal.expressions import Build, DateOrder, Expression, Standing

_Rule = tuple[re.Pattern[str], Build]


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
    near_days = [(words.DAYS[distance], expressions.near_day(distance)) for distance in words.DAYS]
    table: list[tuple[str, Build]] = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", expressions.instant),
        (rf"{year}-(?P<month>\d\d)-(?P<day>\d\d)", expressions.iso_day),
        (rf"{year}-?W(?P<week>\d\d)", expressions.iso_week),
        (rf"(?:week|kw|kalenderwoche|semaine|semana)\s*(?P<week>\d{{1,2}}){words.OF}{year}", expressions.iso_week),
        (rf"{year}[-/](?P<month>0[1-9]|1[0-2])", expressions.iso_month),
        (rf"(?P<month>0[1-9]|1[0-2])[/.]{year}", expressions.iso_month),
        (rf"(?P<first>\d{{1,2}})(?P<mark>[./-])(?P<second>\d{{1,2}})(?P=mark){year}", expressions.numbers),
        (rf"(?P<first>{words.YEAR})\s?[-–—]\s?(?P<last>{words.YEAR}){words.YEAR_WORD}", expressions.years),
        (rf"{month}\s+{first}{ending}{words.RANGE}{last}{ending}(?:,?\s+{year})?", expressions.day_range),
        (
            rf"(?:{words.FROM}\s+)?{first}{ending}{words.RANGE}{last}{ending}\s+(?:de\s+)?{month}{to_year}{words.YEAR_WORD}",
            expressions.day_range,
        ),
        (
            rf"{words.BETWEEN}\s+{first}{ending}{words.RANGE_AND}{last}{ending}\s+(?:of\s+|de\s+)?{month}{to_year}",
            expressions.day_range,
        ),
        (
            rf"{words.BETWEEN}\s+{month}\s+{first}{ending}{words.RANGE_AND}{last}{ending}(?:,?\s+{year})?",
            expressions.day_range,
        ),
        (rf"{day}{ending}\s+(?:of\s+|de\s+)?{month}{to_year}", expressions.day_of_month),
        (rf"{month}\s+{day}{ending}(?:,?\s+{year})?", expressions.day_of_month),
        (rf"{month}{words.OF}{year}{words.YEAR_WORD}", expressions.month),
        (rf"{month}(?P<year>\b)", expressions.month),
        (rf"{words.LAST}\s+{month}", expressions.near_month(-1)),
        (rf"{month}\s+{words.LAST_AFTER}", expressions.near_month(-1)),
        (rf"{words.NEXT}\s+{month}", expressions.near_month(1)),
        (rf"(?-i:Q)(?P<quarter>[1-4])(?:[\s,/'-]*(?:of\s+)?{year})?(?![.:)])", expressions.quarter),
        (rf"(?:(?-i:T)(?P<quarter>[1-4]))[\s,/-]*(?:de\s+)?{year}", expressions.quarter),
        (rf"(?P<quarter>[1-4])T[\s,/-]*(?:de\s+)?{year}", expressions.quarter),
        (rf"{year}[\s/-]*(?:Q|T)(?P<quarter>[1-4])", expressions.quarter),
        (rf"(?P<quarter>{words.ORDINAL})[\s-]*{words.QUARTER_UNIT}{to_year}", expressions.quarter),
        (rf"(?-i:H)(?P<half>[12])[\s,/-]*{year}", expressions.half),
        (rf"(?P<half>{words.ORDINAL})\s+{words.HALF_UNIT}{words.OF}{year}{words.YEAR_WORD}", expressions.half),
        (rf"{words.LAST}\s+{unit}{of_what}", expressions.shifted(-1)),
        (rf"{unit}\s+{words.LAST_AFTER}", expressions.shifted(-1)),
        (rf"{this}\s+{unit}(?:-ci)?", expressions.shifted(0)),
        (rf"{unit}\s+(?:en\s+cours|en\s+curso|actuel(?:le)?|actual)", expressions.shifted(0)),
        (rf"{words.NEXT}\s+{unit}{of_what}", expressions.shifted(1)),
        (rf"{unit}\s+(?:{words.NEXT_AFTER}|que\s+viene)", expressions.shifted(1)),
        (rf"{words.ROLLING}\s+{unit}", expressions.rolling(1)),
        (rf"за\s+{unit}", expressions.rolling(1)),
        (rf"{words.LAST_SEVERAL}\s+{count}\s+{unit}", expressions.rolling(1)),
        (rf"{count}\s+{words.LAST_SEVERAL}\s+{unit}", expressions.rolling(1)),
        (rf"{words.NEXT_SEVERAL}\s+{count}\s+{unit}", expressions.rolling(-1)),
        (rf"{count}\s+(?:prochaine?s|pr[óo]xim[oa]s)\s+{unit}", expressions.rolling(-1)),
        (rf"{count}\s+{unit}\s+(?:ago|назад|zuvor)", expressions.ago),
        (rf"(?P<count>(?<!\d\s)){unit}\s+назад", expressions.ago),
        (rf"{words.BEGINNING_OF_CURRENT}\s*{unit}", expressions.shifted(0)),
        (rf"(?:vor|il\s+y\s+a|hace)\s+{count}\s+{unit}", expressions.ago),
        (r"the\s+day\s+before\s+yesterday|day\s+before\s+yesterday", expressions.near_day(-2)),
        (r"the\s+day\s+after\s+tomorrow|day\s+after\s+tomorrow", expressions.near_day(2)),
        *((word, build) for text, build in near_days for word in text.split()),
        (r"(?<!guten )(?<!heute )(?<!gestern )morgen|(?<!la )mañana", expressions.near_day(1)),
        (r"hier", expressions.hier),
        (rf"{words.LAST}\s+{weekday}", expressions.weekday(-1)),
        (rf"{weekday}\s+{words.LAST_AFTER}", expressions.weekday(-1)),
        (rf"{words.NEXT}\s+{weekday}", expressions.weekday(1)),
        (rf"{weekday}\s+{words.NEXT_AFTER}", expressions.weekday(1)),
        (rf"{this}\s+{weekday}", expressions.weekday_of_this_week),
        (weekday, expressions.weekday(0, Standing.NEEDS_ON)),
        (rf"{year}(?:-?(?:й|м|го|ом|ого))?\s*(?:годах|году|годом|года|год|г\.)", expressions.whole_year(Standing.SURE)),
        (rf"(?:year|jahre?s?|année|annee|año)\s+{year}", expressions.whole_year(Standing.SURE)),
        (r"(?P<year>(?:19|20)\d0)(?:s|er|-?е|-?х)", expressions.decade),
        (rf"{year}(?![.,:/]?\d|[-–]\w)", expressions.whole_year(weak)),
    ]
    return tuple((re.compile(rf"(?<![\w.,/-])(?:{pattern})(?!\w)", re.IGNORECASE), build) for pattern, build in table)
