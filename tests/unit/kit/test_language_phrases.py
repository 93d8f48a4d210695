"""What "contains this phrase" means."""

from __future__ import annotations

import pytest

from kit.language.phrases import contains_phrase, numbers_in, phrase_tokens, quoted_phrases


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The Café was RENOVATED.", "cafe was renovated"),
        ("a bear-market, it was", "Bear Market"),
        ("Error ERR-4711 occurred", "err-4711"),
        ("die Straße entlang", "STRASSE"),
        ("שָׁלוֹם עולם", "שלום עולם"),
        ("مُحَمَّد", "محمد"),
        ("東京都に住んでいます", "京都に住"),
        ("Ёлка и ель", "елка"),
        ("ﬁne print", "fine print"),
        ("version 2.0.1 is out", "2.0.1"),
    ],
)
def test_case_accents_and_punctuation_do_not_count(text: str, phrase: str) -> None:
    assert contains_phrase(text, phrase)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("concatenation", "cat"),
        ("bear markets", "bear market"),
        ("market bear", "bear market"),
        ("a bear and a market", "bear market"),
        ("if snake_case is used", "snake"),
        ("がんばる", "かんばる"),
    ],
)
def test_words_are_whole_and_stand_in_order(text: str, phrase: str) -> None:
    assert not contains_phrase(text, phrase)


@pytest.mark.parametrize(
    ("query_text", "phrases"),
    [
        ('who said "to be or not" and "to be or not"?', ("to be or not",)),
        ("„guten Tag“ and «bonjour»", ("guten Tag", "bonjour")),
        ('an unclosed "quote', ()),
        ('only "?!" marks', ()),
        ('a 15" screen and a 17" one', ()),
        ("no quotes, but it's John's", ()),
    ],
)
def test_quoted_words_are_phrases(query_text: str, phrases: tuple[str, ...]) -> None:
    assert quoted_phrases(query_text) == phrases


def test_numbers_are_the_words_with_a_digit() -> None:
    assert numbers_in(phrase_tokens("In 2023 Q1 grew by 4.5 percent")) == {"2023", "q1", "4", "5"}


def test_names_that_a_sign_tells_apart_are_different_phrases() -> None:
    assert contains_phrase("written in C++ and Go", "C++")
    assert not contains_phrase("written in C++ and Go", "C")
    assert not contains_phrase("written in C and Go", "C#")
    assert contains_phrase("opened in Notepad++", "notepad")
