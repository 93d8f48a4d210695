"""Each file of a language is complete, and no word of one is spelled as no text has it."""

import unicodedata
from dataclasses import fields

import pytest

from kit.language.data import LANGUAGES, Language

FULL = {"months": 12, "weekdays": 7, "units": 6, "numbers": 12, "ordinals": 4}
MAY_BE_EMPTY = {"articles", "between", "begins", "inside", "on", "to"}
"""What some languages write without a word, or behind the time."""


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_every_language_has_every_field(language: Language) -> None:
    empty = {each.name for each in fields(language) if not getattr(language, each.name)}
    empty |= {name for name, values in language.time.items() if not all(values)}
    assert empty <= MAY_BE_EMPTY
    assert language.time.keys() == LANGUAGES["en"].time.keys()
    assert {name: len(language.time[name]) for name in FULL} == FULL


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_words_are_in_lower_case_and_composed(language: Language) -> None:
    words = {
        word
        for each in fields(language)
        if isinstance(values := getattr(language, each.name), frozenset)
        for word in values
    }
    assert words
    assert all(word == unicodedata.normalize("NFC", word.lower()) for word in words)
