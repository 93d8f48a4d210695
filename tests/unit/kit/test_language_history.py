import pytest

from kit.language.cues import type_cue, years_between
from kit.language.history import asks_for_the_latest, asks_of_today, tells_of_the_past
from kit.language.questions import read_question
from kit.language.terms import stem, tokens


@pytest.mark.parametrize(
    ("question", "today"),
    [
        ("What is the fee?", True),
        ("What is the current fee?", True),
        ("Wie hoch ist die Gebühr?", True),
        ("What was the fee?", False),
        ("What was the fee in 2018?", False),
        ("Who is the previous head?", False),
        ("Wer war der Leiter?", False),
    ],
)
def test_question_asks_of_today_or_of_the_past(question: str, today: bool) -> None:
    assert asks_of_today(question) is today


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("The previous head was Peter Falk.", True),
        ("Until 2020 the fee was 45 euros.", True),
        ("Bis 2022 betrug sie 39 Euro.", True),
        ("Jusqu'en 2021, l'entrée coûtait 6 euros.", True),
        ("前任老板是陈国强。", True),
        ("Until 2027 the fee is 45 euros.", False),
        ("The fee is 62 euros.", False),
        ("The knife is used to cut bread.", False),
        ("La directora actual es Carmen; el director anterior fue Luis.", False),
    ],
)
def test_sentence_tells_of_the_past(text: str, past: bool) -> None:
    assert tells_of_the_past(text) is past


def test_title_tells_of_the_past_for_what_stands_under_it() -> None:
    assert tells_of_the_past("The fee was 45 euros.", "History")
    assert not tells_of_the_past("The fee is 62 euros now.", "History")


@pytest.mark.parametrize(
    "text", ["From 2016 to 2018 it grew.", "It grew (2016–2018).", "Von 2016 bis 2018 wuchs es.", "2016年至2018年"]
)
def test_span_of_years_has_those_between(text: str) -> None:
    assert years_between(text) == {"2016", "2017", "2018"}


def test_years_that_are_no_span_have_none_between() -> None:
    assert years_between("It grew in 2016, and in 2018 it shrank.") == frozenset()
    assert years_between("From 2018 to 2016.") == frozenset()
    assert len(years_between("from 1000 to 2025")) <= 101


def test_elided_article_is_no_part_of_the_word() -> None:
    found = tokens("Le siège d’AbbVie, l'entrée et aujourd'hui")
    assert [token.surface for token in found] == ["Le", "siège", "AbbVie", "entrée", "et", "aujourd'hui"]
    assert found[2].is_name
    assert "Le siège d’AbbVie"[found[2].start : found[2].end] == "AbbVie"


@pytest.mark.parametrize(
    "family",
    [
        "play plays played playing",
        "stay stayed",
        "wednesday wed",
        "carry carried",
        "discover discovers discovered discovering",
    ],
)
def test_forms_of_a_word_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What is the latest version?", True),
        ("Welche ist die aktuelle Fassung?", True),
        ("Which version has the pump?", False),
    ],
)
def test_question_for_the_last_of_several_says_so(question: str, asks: bool) -> None:
    assert asks_for_the_latest(question) is asks


def test_number_of_a_name_is_no_quantity() -> None:
    question = read_question("How much does the pump weigh?")
    named, weight = "It is lighter than the P-60.", "It weighs 18 kilograms."
    assert type_cue(question, named, tokens(named)) < type_cue(question, weight, tokens(weight))
