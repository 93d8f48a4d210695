"""Rules about what must be there exactly: numbers, their units, months and weekdays."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import pairwise

from kit.language.data import LANGUAGES
from kit.language.terms import words as listed
from services.reranker.judging.reading import Word
from services.reranker.judging.rules.measures import measure_of
from services.reranker.judging.rules.pair import Pair

_CLOCK = re.compile(r"(\d{1,2})[:.](\d{2})$")
_AFTERNOON = frozenset({"pm", "p.m", "p.m."})
_NOON = 12
_UNSPACED = frozenset({"zh", "ja", "ko", "th"})
_OTHER_WORDS = listed("mar dom sam ven sab mer jeu sun sat set out lug so di do mi fr mo sa lun dim gio mié jue vie")
"""Short names of months and weekdays that are words of their own in their language."""


def number_missing(pair: Pair) -> bool:
    """Whether the claim has a number that stands nowhere in the passage or in its headings, and stands for another number there.
    One that stands for none may count what the passage lists."""
    there = frozenset[str]().union(*(values(pair.passage, j) for j in range(len(pair.passage))))
    return any(
        not own & there and pair.passage[pair.place[i]].value
        for i in range(len(pair.claim))
        if (own := values(pair.claim, i))
    )


def unit_differs(pair: Pair) -> bool:
    """Whether a number of the claim counts other things wherever the passage has it."""
    for i in range(len(pair.claim)):
        own = values(pair.claim, i)
        unit = own and measure_of(pair.claim, i)
        if not own or not unit:
            continue
        there = [measure_of(pair.passage, j) for j in range(len(pair.passage)) if values(pair.passage, j) & own]
        if there and all(each and each != unit for each in there):
            return True
    return False


def date_differs(pair: Pair) -> bool:
    """Whether the claim names a month or a weekday that the passage does not, and the passage names another one."""
    for field in ("months", "weekdays"):
        own = _times(field, pair.alignment.claim.text, pair.claim)
        there = _times(field, pair.alignment.passage.text, pair.passage)
        if own - there and there:
            return True
    return False


def values(words: Sequence[Word], position: int) -> frozenset[str]:
    """What a number may mean: `20:00` is 20, too, and `8` before "pm" is 20. Empty for a word that is no number."""
    word = words[position]
    if not word.value:
        return frozenset()
    found = {_plain(word.value)}
    if clock := _CLOCK.fullmatch(word.surface):
        hour, minute = int(clock[1]), int(clock[2])
        found.add(f"{hour}:{minute:02}")
        if not minute:
            found.add(f"{hour}")
    following = words[position + 1].lower if position + 1 < len(words) else ""
    if following in _AFTERNOON:
        found |= {f"{int(each) + _NOON}" for each in found if each.isdecimal() and int(each) < _NOON}
    return frozenset(found)


def _plain(number: str) -> str:
    try:
        value = Decimal(number.rstrip("%€$£°"))
    except InvalidOperation:
        return number
    return f"{value.normalize():f}"


def names_a_time(word: Word) -> bool:
    """Whether a word is the name of a month or a weekday."""
    return word.lower in _all_names(word.language)


def _times(field: str, text: str, words: Sequence[Word]) -> frozenset[int]:
    """The months or weekdays that a text names, by their place in the year or the week."""
    language = words[0].language if words else ""
    names = _names(field, language)
    if language in _UNSPACED:
        return frozenset(place for place, own in names.items() if any(name in text for name in own))
    found = set()
    surfaces = {word.lower for word in words} | _pairs(words)
    for place, own in names.items():
        for name in own & surfaces:
            if name not in _OTHER_WORDS and (language != "en" or _has_capital(name, words)):
                found.add(place)
    return frozenset(found)


def _pairs(words: Sequence[Word]) -> set[str]:
    """Two words in a row: Hebrew weekdays have two."""
    return {f"{first.lower} {second.lower}" for first, second in pairwise(words)}


def _has_capital(name: str, words: Iterable[Word]) -> bool:
    return any(word.lower == name and word.surface[0].isupper() for word in words)


@cache
def _names(field: str, language: str) -> Mapping[int, frozenset[str]]:
    known = [language] if language in LANGUAGES else sorted(LANGUAGES)
    return {
        place: frozenset(name for code in known for name in LANGUAGES[code].time[field][place])
        for place in range(len(LANGUAGES["en"].time[field]))
    }


@cache
def _all_names(language: str) -> frozenset[str]:
    names = [own for field in ("months", "weekdays") for own in _names(field, language).values()]
    return frozenset[str]().union(*names)
