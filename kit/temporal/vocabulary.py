"""The words of time of the supported languages, as parts of regular expressions."""

import re
from collections.abc import Iterable
from functools import cache

from kit.language.data import LANGUAGES, Language

_HERE = "…"
"""Where the time stands in a phrase around it: "… ago"."""
_UNSPACED = "\u0e00-\u0eff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af"
_BEGIN = rf"(?:(?<![\w.,/-])|(?<=[{_UNSPACED}]))"
_END = rf"(?:(?!\w)|(?=[{_UNSPACED}]))"
UNITS = ("hour", "day", "week", "month", "quarter", "year")
_LONG_CHARS = 3
"""Shorter words are parts of others: French "an"."""
_TELLING = (
    "months",
    "weekdays",
    "units",
    "half",
    "today",
    "yesterday",
    "tomorrow",
    "before_yesterday",
    "after_tomorrow",
)


def alone(pattern: str) -> re.Pattern[str]:
    """The pattern where nothing else is part of its words; scripts without spaces have no such edges."""
    return re.compile(f"{_BEGIN}(?:{pattern}){_END}", re.IGNORECASE)


def languages_of(text: str) -> list[str]:
    """The languages, by code, that have words of time in a text."""
    folded = f" {text.lower()} "
    return [code for code in LANGUAGES if any(word in folded for word in _telling(code))]


@cache
def _telling(code: str) -> tuple[str, ...]:
    time = LANGUAGES[code].time
    found = (word for field in _TELLING for words in time[field] for word in words)
    return tuple(f" {word} " if word.isascii() and len(word) < _LONG_CHARS else word for word in found)


def any_of(language: Language, field: str) -> str:
    """Any word or phrase of a field; nothing, where the language has none."""
    return either(phrase for words in language.time[field] for phrase in words)


def around(language: Language, field: str) -> tuple[str, str]:
    """What stands before the time, and what stands behind it."""
    phrases = [phrase for words in language.time[field] for phrase in words]
    behind = [phrase.removeprefix(_HERE) for phrase in phrases if phrase.startswith(_HERE)]
    before = [phrase.removesuffix(_HERE) for phrase in phrases if not phrase.startswith(_HERE)]
    return either(before), either(behind)


def either(phrases: Iterable[str]) -> str:
    """Any of the phrases, longer ones first, so that none is cut short. Without phrases it matches nowhere."""
    found = sorted({phrase.strip() for phrase in phrases}, key=lambda phrase: (-len(phrase), phrase))
    return f"(?:{'|'.join(map(_written, found))})" if found else "(?!)"


def _written(phrase: str) -> str:
    return re.escape(phrase).replace(r"\ ", r"\s+").replace("'", "['’]")


def entry(language: Language, field: str, word: str) -> int:
    """The place in a list that a word has: 0 for a first month, a Monday or a "one"; digits count themselves."""
    if word.isdecimal():
        return int(word) - 1
    found = " ".join(word.lower().replace("’", "'").split())
    return next(place for place, words in enumerate(language.time[field]) if found in words)
