"""What a number counts: units of time, of money, of length, weight and so on, by their words in all supported languages."""

from collections.abc import Mapping, Sequence
from functools import cache

from kit.language.data import LANGUAGES
from services.reranker.judging import small_words
from services.reranker.judging.reading import Word

_TIME = ("hour", "day", "week", "month", "quarter", "year")
_SIGNS = {"%": "percent", "€": "euro", "$": "dollar", "£": "pound", "°": "degree"}
_REACH = 2
"""Words behind a number among which its unit stands."""


def measure_of(words: Sequence[Word], position: int) -> str:
    """What the number at this position counts; empty where that is none of the known units."""
    surface = words[position].surface
    for sign, measure in _SIGNS.items():
        if sign in surface:
            return measure
    unit = words[position].unit
    for word in words[position + 1 : position + 1 + _REACH]:
        if word.unit != unit or word.value:
            break
        if found := _by_word(word.language).get(word.lower.rstrip(".")):
            return found
    return ""


@cache
def _by_word(language: str) -> Mapping[str, str]:
    found = {word: measure for measure, words in small_words.measures().items() for word in words.split()}
    for code in [language] if language in LANGUAGES else sorted(LANGUAGES):
        for unit, words in zip(_TIME, LANGUAGES[code].time["units"], strict=True):
            found |= dict.fromkeys(words, unit)
    return found
