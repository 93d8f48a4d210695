"""Reads the times that a text names: single expressions, ranges ("from March to May 2024") and open ones ("since last week").

Rules find them, in the languages of the vocabulary. What the rules do not know, as long as it is one expression and nothing else,
is left to dateparser, which knows many more languages but cannot find an expression in a sentence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise

from kit.language.data import LANGUAGES
from kit.language.question_language import language_by_words
from kit.temporal.calendar import Moment, Span
from kit.temporal.expressions import DateOrder, Expression, Standing
from kit.temporal.rules import find_expressions
from kit.temporal.vocabulary import any_of, around, languages_of

TEXT_CHARACTERS_MAX = 2_000
_ONE_EXPRESSION_CHARACTERS_MAX = 40
_OTHER_LANGUAGES = (
    "en", "ru", "de", "fr", "es", "it", "pt", "pl", "nl", "uk", "cs", "sv", "da", "fi", "tr", "ro", "el", "bg", "hu",
    "zh", "ja", "ko", "ar", "he", "hi", "vi", "id",
)  # fmt: skip
"""Of dateparser: fixed, so that each call does not look through two hundred."""
_LETTERS_MIN = 3
_YEARS = range(1000, 9000)
"""A calendar ends at both ends, and what dateparser reads beyond is no date."""
_JOINTS = ("to", "joins")
_MARKS = " \t\n.,;:!?¿¡()\"'«»„“”"


@dataclass(frozen=True)
class Period:
    """A time that a text names. `start` and `end` are places in the text."""

    text: str
    start: int
    end: int
    span: Span


def read_periods(text: str, moment: Moment, order: DateOrder = DateOrder.DAY_FIRST) -> list[Period]:
    """In the order of the text; only its beginning is read when it is long. By rules alone."""
    text = text[:TEXT_CHARACTERS_MAX]
    return sorted(_joined(text, find_expressions(text, order), moment), key=lambda period: period.start)


def _joined(text: str, expressions: list[Expression], moment: Moment) -> Iterator[Period]:
    """Expressions with what stands before and between them."""
    used: set[int] = set()
    for number, (first, last) in enumerate(pairwise(expressions)):
        if number not in used and (period := _range(text, first, last, moment)):
            used |= {number, number + 1}
            yield period
    for number, expression in enumerate(expressions):
        if number not in used and (period := _single(text, expression, moment)):
            yield period


def _range(text: str, first: Expression, last: Expression, moment: Moment) -> Period | None:
    joint = text[first.end : last.start]
    between = _before(text, first, "between")
    before = between or _before(text, first, "begins")
    if not (between and _pattern("joins", _codes(text)).fullmatch(joint)) and not _pattern(
        "to", _codes(text)
    ).fullmatch(joint):
        return None
    if not before and (first.standing, last.standing) != (Standing.SURE, Standing.SURE):
        return None
    span = _range_span(first, last, moment)
    start = before.start() if before else first.start
    return Period(text[start : last.end], start, last.end, span) if span else None


def _range_span(first: Expression, last: Expression, moment: Moment) -> Span | None:
    """The one that names its year gives it to the other."""
    try:
        if first.has_year and not last.has_year:
            start = first.resolve(moment, None)
            end = _not_before(last, start, moment)
        else:
            end = last.resolve(moment, None)
            start = _not_after(first, end, moment)
    except (ValueError, OverflowError):
        return None
    if start.start is None or end.end is None or start.start >= end.end:
        return None
    return Span(start.start, end.end)


def _not_before(last: Expression, start: Span, moment: Moment) -> Span:
    assert start.start is not None
    end = last.resolve(moment, start.start.year)
    assert end.end is not None
    return end if end.end > start.start else last.resolve(moment, start.start.year + 1)


def _not_after(first: Expression, end: Span, moment: Moment) -> Span:
    assert end.start is not None
    start = first.resolve(moment, end.start.year)
    assert start.start is not None
    return start if start.start <= end.start else first.resolve(moment, end.start.year - 1)


def _single(text: str, expression: Expression, moment: Moment) -> Period | None:
    try:
        span = expression.resolve(moment, None)
    except (ValueError, OverflowError):
        return None
    limits = {
        "since": Span(span.start, None),
        "until": Span(None, span.end),
        "before": Span(None, span.start),
        "after": Span(span.end, None),
    }
    for name, limited in limits.items():
        if before := _before(text, expression, name):
            return Period(text[before.start() : expression.end], before.start(), expression.end, limited)
        if behind := _pattern(f"{name}_behind", _codes(text)).match(text, expression.end):
            return Period(text[expression.start : behind.end()], expression.start, behind.end(), limited)
    if expression.standing is not Standing.SURE and not _is_introduced(text, expression):
        return None
    return Period(text[expression.start : expression.end], expression.start, expression.end, span)


def _is_introduced(text: str, expression: Expression) -> bool:
    """Whether a word before it, or its standing alone, says that it is a time."""
    if not text[: expression.start].strip(_MARKS) and not text[expression.end :].strip(_MARKS):
        return True
    if _before(text, expression, "on" if expression.standing is Standing.NEEDS_ON else "inside"):
        return True
    ends = not text[expression.end :].strip() or text[expression.end] in ".,;:!?)"
    return ends and _before(text, expression, "of") is not None


def _before(text: str, expression: Expression, name: str) -> "re.Match[str] | None":
    """The words of that meaning right before the expression."""
    return _pattern(name, _codes(text)).search(text, 0, expression.start)


def preposition_before(text: str, start: int) -> "re.Match[str] | None":
    """The word right before a time that only says that it is one: "in", "on", "of"."""
    found = (_pattern(name, _codes(text)).search(text, 0, start) for name in ("inside", "on", "of"))
    return next((match for match in found if match), None)


@lru_cache(maxsize=16)
def _codes(text: str) -> tuple[str, ...]:
    """The languages whose words may stand around a time of the text: its own and those of its times, or all."""
    found = {language_by_words(text.lower()), *languages_of(text)} & LANGUAGES.keys()
    return tuple(sorted(found or LANGUAGES))


@lru_cache(maxsize=256)
def _pattern(name: str, codes: tuple[str, ...]) -> "re.Pattern[str]":
    """The words of that meaning in these languages, that stand before a time (or behind it: `name` ends in "_behind")."""
    field = name.removesuffix("_behind")
    sides = [around(LANGUAGES[code], field)[name.endswith("_behind")] for code in codes]
    words = "|".join(sides)
    if name in _JOINTS:
        marks = r"[-–—]|" if name == "to" else ""
        return re.compile(rf"\s*(?:{marks}{words})(?:\s+{_articles()})?\s*", re.IGNORECASE)
    if name.endswith("_behind"):
        return re.compile(rf"\s*(?:{words})", re.IGNORECASE)
    edge = {"since": "start", "until": "end"}.get(name)
    edges = "|".join(any_of(language, edge) for language in LANGUAGES.values()) if edge else "(?!)"
    before = rf"(?:\s+(?:{edges}))?(?:\s*{_articles()})?"
    return re.compile(rf"(?<![^\W\u3041-\u30ff\u3400-\u9fff])(?:{words}){before}\s*$", re.IGNORECASE)


@cache
def _articles() -> str:
    return f"(?:{'|'.join(any_of(language, 'articles') for language in LANGUAGES.values())})"


def read_one(text: str, moment: Moment, order: DateOrder = DateOrder.DAY_FIRST) -> Period | None:
    """The text as a single expression of any language that dateparser knows."""
    bare = text.strip(_MARKS)
    is_long = len(bare) > _ONE_EXPRESSION_CHARACTERS_MAX
    if is_long or bare.isdecimal() or len(bare) < (_LETTERS_MIN if bare.isascii() else 2):
        return None
    # Takes 60 ms and 20 MB, which the service does not need to start, and few texts need at all.
    from dateparser.date import DateDataParser  # noqa: PLC0415

    parser = DateDataParser(
        languages=list(_OTHER_LANGUAGES),
        settings={
            "RELATIVE_BASE": moment.now.replace(tzinfo=None),
            "PREFER_DATES_FROM": "past",
            "DATE_ORDER": order.value,
        },
    )
    data = parser.get_date_data(bare)
    time: datetime | None = data.date_obj
    if time is None or time.year not in _YEARS:
        return None
    unit = data.period if data.period in {"week", "month", "year"} else "day"
    start = text.find(bare)
    return Period(bare, start, start + len(bare), moment.span(unit, time.date()))
