"""Values as two sentences are compared by: numbers, dates and names, in any language as far as digits and capitals tell."""

import re
from collections.abc import Iterable, Sequence

from kit.language.cues import is_year
from kit.language.data import ENGLISH, LANGUAGES
from kit.language.terms import Token, stem

Span = tuple[int, int]
"""First word of a statement, and one past the last."""
DATE, AMOUNT, NAME, TEXT = "date", "amount", "name", "text"
"""Kinds of values."""
_LEAST_LETTERS = 4
"""Of months in other languages: shorter ones are words of English ("set", "out")."""
_MONTHS = frozenset(
    stem(name)
    for language in LANGUAGES.values()
    for month in language.time["months"]
    for name in month
    if language.code == ENGLISH or len(name) >= _LEAST_LETTERS
)
_MOST_WORDS_OF_A_NUMBER = 1
"""Words that a number may have with it: its unit, or "billion"."""
_MOST_AROUND = 2
"""Content words beside a value that one side alone may have: "on March 13, in the rain"."""
_LONGEST_TEXT = 3
"""Words of a value that is neither a number nor a name: more would be another statement. In scripts without spaces a word is a pair
of characters."""

_CURRENCY = re.compile(r"[$€£¥₽₹]\s?\Z")
_UNIT = re.compile(r"\s?[%€$£¥₽₹°]")
_POSSESSIVE = re.compile(r"['’]s\Z")
_NEAR = 2
"""Characters between the parts of one date: "March 3, 2017"."""


def core(words: Sequence[Token], span: Span) -> Span:
    """The part of a difference that is its value: from the first to the last number, or else name.

    The words around it are said by one side only. Where they are more than a few, the difference is another statement, and stays.
    """
    inside = range(*span)
    marked = [index for index in inside if is_dated(words[index].stem)]
    marked = marked or [index for index in inside if words[index].surface[0].isupper()]
    if not marked:
        return span
    kept = marked[0], marked[-1] + 1
    around = stems_of([*words[span[0] : kept[0]], *words[kept[1] : span[1]]])
    return kept if len(around) <= _MOST_AROUND else span


def whole_span(text: str, words: Sequence[Token], span: Span) -> tuple[int, int]:
    """Characters of a span; of a date or an amount with its other parts and its unit."""
    first, last = span
    if is_numeric(words[first:last]):
        while first > 0 and is_dated(words[first - 1].stem) and words[first].start - words[first - 1].end <= _NEAR:
            first -= 1
        while last < len(words) and _goes_on(words[last - 1], words[last]):
            last += 1
    start, end = words[first].start, words[last - 1].end
    if owned := _POSSESSIVE.search(text, start, end):
        end = owned.start()
    if is_numeric(words[first:last]):
        start = found.start() if (found := _CURRENCY.search(text, 0, start)) else start
        end = found.end() if (found := _UNIT.match(text, end)) else end
    return start, end


def _goes_on(word: Token, following: Token) -> bool:
    gap = following.start - word.end
    if is_dated(following.stem):
        return gap <= _NEAR
    return word.is_number and gap == 1 and not following.is_stopword and following.surface[0].islower()


def stems_of(found: Iterable[Token]) -> frozenset[str]:
    """The content of a value: two are the same when these are, in any order."""
    return frozenset(token.stem for token in found if not token.is_stopword)


def is_numeric(found: Iterable[Token]) -> bool:
    """Whether a value is an amount or a date."""
    return any(is_dated(token.stem) for token in found)


def is_dated(word_stem: str) -> bool:
    """Whether a word has digits or names a month."""
    return word_stem in _MONTHS or any(map(str.isdigit, word_stem))


def are_comparable(ours: Sequence[Token], theirs: Sequence[Token]) -> bool:
    """Whether one value can stand for the other: two dates, two amounts, two names, or two short texts."""
    kind = kind_of(ours)
    return kind == kind_of(theirs) and all(_is_whole(each, kind) for each in (ours, theirs))


def may_be_a_time(words: Sequence[Token], span: Span) -> bool:
    """Whether a value is a date, or a number that counts nothing: "at 9"."""
    found = words[slice(*span)]
    counts = span[1] < len(words) and not is_dated(words[span[1]].stem) and _goes_on(found[-1], words[span[1]])
    return kind_of(found) == DATE or (is_numeric(found) and not counts and not _words_of_a_number(found))


def kind_of(found: Sequence[Token]) -> str:
    """What kind of value the words are."""
    if any(token.stem in _MONTHS or is_year(token.surface) for token in found):
        return DATE
    if is_numeric(found):
        return AMOUNT
    return NAME if any(token.surface[0].isupper() for token in found) else TEXT


def _is_whole(found: Sequence[Token], kind: str) -> bool:
    """Whether a value is nothing else besides: no clause that has a number or a name in it."""
    if kind in (DATE, AMOUNT):
        return _words_of_a_number(found) <= _MOST_WORDS_OF_A_NUMBER
    if kind == NAME:
        return not any(token.surface[0].islower() and not token.is_stopword for token in found)
    return len(found) <= _LONGEST_TEXT and not any(token.is_stopword for token in found)


def _words_of_a_number(found: Sequence[Token]) -> int:
    return sum(not is_dated(each) for each in stems_of(found))
