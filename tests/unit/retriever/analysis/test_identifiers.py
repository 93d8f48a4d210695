"""In which spellings an identifier is found, and which identifiers stay apart."""

from __future__ import annotations

import pytest

from services.retriever.analysis.analyser import Analysis

ANALYSIS = Analysis()
SPELLINGS = [
    ("PPR-9087", ("ppr9087", "PPR 9087", "ppr-9087", "PPR/9087", "PPR_9087")),
    ("PPR 9087", ("ppr9087", "PPR-9087")),
    ("PPR9087", ("ppr-9087", "PPR 9087")),
    ("352 030 15 97", ("3520301597", "352-030-15-97", "352 030 1597")),
    ("3520301597", ("352 030 15 97",)),
    ("978-3-16-148410-0", ("9783161484100", "978 3 16 148410 0")),
    ("0-306-40615-X", ("030640615x",)),
    ("+49 (30) 555-0199", ("+49305550199", "49305550199", "+49 30 5550199")),
    ("v3.0.0", ("3.0.0", "V3.0.0")),
    ("MAX_RETRY_COUNT", ("max retry count", "maxRetryCount", "max-retry-count", "MaxRetryCount")),
    ("maxRetryCount", ("max retry count", "MAX_RETRY_COUNT")),
    ("node.js", ("NodeJS", "nodejs", "Node.js")),
    (".NET", (".net", "dot NET", "dotnet", "DotNet")),
    ("dotnet", (".NET",)),
    ("C#", ("csharp", "c#")),
    ("the file .env", ("dotenv",)),
    ("10.20.30.41:5432", ("10.20.30.41",)),
    ("1,000,000", ("1000000",)),
    ("NO93 8601 1117 947", ("NO9386011117947", "no93-8601-1117-947")),
    ("GB82WEST12345698765432", ("GB82 WEST 1234 5698 7654 32",)),
    ("e-mail", ("email",)),
    ("notepad++", ("Notepad++", "notepad", "notepadplusplus")),
]
APART = [
    ("C++", "C"),
    ("C#", "C"),
    ("C", "C++"),
    ("C", "C#"),
    ("C++", "C#"),
    ("A+", "A++"),
]


def terms_of(query_text: str) -> set[str]:
    return {term for terms in ANALYSIS.query_terms(query_text, ("en",)) for term in terms}


@pytest.mark.parametrize(("text", "queries"), SPELLINGS, ids=[text for text, _ in SPELLINGS])
def test_an_identifier_is_found_in_every_spelling(text: str, queries: tuple[str, ...]) -> None:
    terms = set(ANALYSIS.terms(f"The name is {text}.", "en"))
    for query_text in queries:
        assert terms & terms_of(query_text), query_text


@pytest.mark.parametrize(("text", "query_text"), APART)
def test_a_sign_keeps_names_apart(text: str, query_text: str) -> None:
    assert not set(ANALYSIS.terms(text, "en")) & terms_of(query_text)


@pytest.mark.parametrize(
    ("text", "query_text"), [("10.20.30.41", "10.20.30.4"), ("3.0.0", "3.0.1"), ("1.5", "15"), ("net profit", ".NET")]
)
def test_an_identifier_has_a_term_that_another_of_the_same_parts_lacks(text: str, query_text: str) -> None:
    assert terms_of(query_text) - set(ANALYSIS.terms(text, "en"))


def test_spellings_stand_behind_the_words_so_that_phrases_are_found() -> None:
    terms = ANALYSIS.terms("set MAX_RETRY_COUNT to seven", "en")
    (phrase,) = ANALYSIS.quoted_terms('"retry count to seven"', ("en",))
    assert " ".join(phrase) in " ".join(terms)


def test_two_plain_words_are_not_looked_for_as_one_besides() -> None:
    assert not any("amazonas" in term and "regen" in term for term in terms_of("Amazonas-Regenwald"))
    assert "sonderzugfahrplan" in ANALYSIS.terms("Sonderzug-Fahrplan", "en")


def test_a_row_of_numbers_is_no_identifier() -> None:
    assert ANALYSIS.terms("12 34 56 78 90 12 34 56 78 90 12 34", "en")[12:] == []


@pytest.mark.parametrize(
    ("query_text", "term"), [("Ca2+", "ca2plus"), (".NET", "dotnet"), ("Notepad++", "notepadplusplus")]
)
def test_name_with_signs_is_looked_for_once(query_text: str, term: str) -> None:
    assert {each for each in terms_of(query_text) if not each.isalnum() or each == term} == {term}
