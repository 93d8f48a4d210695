"""The language of short questions."""

import pytest

from kit.language.detection import FastTextLanguages
from kit.language.question_language import QuestionLanguages, language_by_words

QUESTIONS = [
    ("was kostet das mittagessen in der kantine?", "de"),
    ("que mangent les canards ?", "fr"),
    ("wie is de directeur?", "nl"),
    ("cine este directorul?", "ro"),
    ("bilet ne kadar?", "tr"),
    ("хто директор?", "uk"),
    ("مدیر کیست؟", "fa"),
    ("was karl marx married?", "en"),
    ("where is los angeles?", "en"),
    ("票价多少？", "zh"),
]


@pytest.mark.parametrize(("question", "language"), QUESTIONS, ids=[language for _, language in QUESTIONS])
def test_words_for_asking_give_a_language_away(question: str, language: str) -> None:
    certainties = QuestionLanguages(FastTextLanguages()).certainties(question)
    assert max(certainties, key=certainties.__getitem__) == language
    assert sum(certainties.values()) <= 1.0 + 1e-6


class Nothing:
    """A detector that knows nothing."""

    def certainties(self, text: str) -> dict[str, float]:
        return {}


def test_without_words_of_any_language_the_detector_decides() -> None:
    assert QuestionLanguages(Nothing()).certainties("R2D2") == {}


def test_words_are_evidence_where_the_detector_says_nothing() -> None:
    certainties = QuestionLanguages(Nothing()).certainties("warum denn?")
    assert certainties == {"de": 1.0}


def test_language_of_a_long_text_is_told_too() -> None:
    assert language_by_words("der hund und die katze, die nicht in das haus wollten, " * 400) == "de"
