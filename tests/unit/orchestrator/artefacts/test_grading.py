"""Answers are graded tolerantly where the meaning is the same, and strictly where it is not."""

import pytest

from services.orchestrator.quizzes.grading import grade, may_be_right_otherwise
from services.orchestrator.quizzes.questions import QuestionKind, QuizQuestion


def question(kind: str, answer: str, *options: str) -> QuizQuestion:
    return QuizQuestion(QuestionKind(kind), "?", answer, 1, "", options)


@pytest.mark.parametrize(
    ("answer", "given", "is_right"),
    [
        ("Gustave Eiffel", "gustave eiffel", True),
        ("Gustave Eiffel", "Gustav Eifel", True),
        ("Gustave Eiffel", "Jack Lang", False),
        ("Gustave Eiffel", "", False),
        ("the Seine", "Seine", True),
        ("São Paulo", "Sao Paulo", True),
        ("cat", "car", False),
        ("1889", "1889", True),
        ("1889", "1,889", True),
        ("1889", "1888", False),
        ("1,234.5", "1.234,5", True),
        ("12.5", "12,5 %", True),
        ("324 metres", "324", True),
        ("324 metres", "324 m", True),
        ("324 metres", "324 feet", False),
        ("Туполев", "туполев", True),
        ("東京", "東京", True),
    ],
)
def test_short_answer(answer: str, given: str, is_right: bool) -> None:
    assert grade(question("short_answer", answer), given).is_right is is_right


@pytest.mark.parametrize(
    ("given", "is_right"),
    [("1932", True), ("B", True), ("b)", True), ("(B)", True), ("A", False), ("Z", False), ("", False)],
)
def test_option_is_named_by_its_words_or_its_letter(given: str, is_right: bool) -> None:
    assert grade(question("multiple_choice", "1932", "1889", "1932", "1914"), given).is_right is is_right


@pytest.mark.parametrize(
    ("given", "is_right"),
    [("true", True), ("Ja", True), ("vrai", True), ("да", True), ("false", False), ("maybe", False)],
)
def test_truth_is_said_in_any_language(given: str, is_right: bool) -> None:
    assert grade(question("true_false", "true"), given).is_right is is_right


@pytest.mark.parametrize(
    ("kind", "answer", "given", "is_asked"),
    [
        ("short_answer", "the captain", "the man who led the ship", True),
        ("short_answer", "1889", "1888", False),
        ("short_answer", "the captain", " ", False),
        ("short_answer", "the captain", "captain", False),
        ("multiple_choice", "a", "b", False),
    ],
)
def test_model_is_asked_of_other_words_alone(kind: str, answer: str, given: str, is_asked: bool) -> None:
    asked = question(kind, answer, "a", "b")
    assert may_be_right_otherwise(asked, given, grade(asked, given)) is is_asked
