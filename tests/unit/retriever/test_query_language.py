"""The languages that a query may be in, decided by a detector and by what is searched."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kit.language.detection import FastTextLanguages
from services.retriever.searching.query_language import QueryLanguages
from tests.unit.retriever.fakes import FakeDetector


@dataclass(frozen=True)
class Case:
    """`certainties`: what the detector says. `documents`: how many there are in each language."""

    name: str
    certainties: dict[str, float]
    documents: dict[str, int]
    chosen: tuple[str, ...]


CASES = [
    Case("nothing is known of the documents", {"de": 0.9, "nl": 0.09, "af": 0.01}, {}, ("de", "nl")),
    Case("nothing is known at all", {}, {}, ()),
    Case("all documents are in one language", {"de": 1.0}, {"en": 5}, ("en",)),
    Case("the detector is certain", {"de": 0.97, "en": 0.01}, {"en": 5, "de": 5}, ("de",)),
    Case("languages that nothing is written in do not count", {"nl": 0.6, "de": 0.39}, {"en": 5, "de": 5}, ("de",)),
    Case("the detector is not certain", {"de": 0.5, "en": 0.4}, {"en": 5, "de": 5, "ru": 5}, ("de", "en")),
    Case("what is searched decides between the two", {"de": 0.5, "en": 0.4}, {"en": 500, "de": 5}, ("en",)),
    Case("a common language does not hide a certain one", {"de": 0.99}, {"en": 900, "de": 10}, ("de",)),
    Case("a name is in no language", {}, {"en": 5, "de": 5}, ("en", "de")),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_as_many_languages_as_it_takes_to_be_certain(case: Case) -> None:
    languages = QueryLanguages(FakeDetector({"some text": case.certainties}))
    assert languages.of("Some\n text ", case.documents) == case.chosen


@pytest.mark.parametrize(
    ("query_text", "first"),
    [
        ("Wie lange läuft der Vertrag?", "de"),
        ("durée du contrat", "fr"),
        ("duración del contrato", "es"),
        ("срок договора", "ru"),
        ("合同期限", "zh"),
        ("how long is the contract", "en"),
    ],
)
def test_a_few_words_are_enough_among_the_languages_of_the_documents(query_text: str, first: str) -> None:
    languages = QueryLanguages(FastTextLanguages())
    assert languages.of(query_text, dict.fromkeys(("en", "de", "fr", "es", "ru", "zh"), 10))[0] == first


SPOKEN = [
    ("the detector is certain", {"de": 0.97, "en": 0.01}, ("en", "de"), ("de",)),
    ("however few documents there are in it", {"de": 0.97, "en": 0.03}, ("en", "fr", "de"), ("de",)),
    ("it may be in two of three", {"de": 0.5, "en": 0.45}, ("en", "de", "fr"), ("de", "en")),
    ("it may be in all", {"de": 0.5, "en": 0.45}, ("en", "de"), None),
    ("it is in a language of no document", {"ru": 0.97, "en": 0.03}, ("en", "de"), ()),
    ("and perhaps is not", {"ru": 0.8, "en": 0.2}, ("en", "de"), ("en",)),
    ("all documents are in its language", {"en": 0.9}, ("en",), None),
    ("all documents are in another", {"en": 0.95}, ("de",), ()),
    ("a name is in no language", {}, ("en", "de"), None),
    ("nothing is known of the documents", {"en": 1.0}, (), None),
]


@pytest.mark.parametrize(("name", "certainties", "documents", "spoken"), SPOKEN, ids=[each[0] for each in SPOKEN])
def test_the_languages_that_a_query_is_in_do_not_depend_on_how_common_they_are(
    name: str, certainties: dict[str, float], documents: tuple[str, ...], spoken: tuple[str, ...] | None
) -> None:
    languages = QueryLanguages(FakeDetector({"some text": certainties}))
    assert languages.spoken("Some\n text ", documents) == spoken
