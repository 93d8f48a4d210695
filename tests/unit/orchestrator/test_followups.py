"""Follow-ups keep their subject over several turns."""

import pytest

from services.orchestrator.models import Turn
from services.orchestrator.without_model.followups import search_queries, stand_alone

HISTORY = (
    Turn("user", "Who is Ada Lovelace?"),
    Turn("assistant", "A mathematician. [1]"),
    Turn("user", "Where was she born?"),
    Turn("assistant", "In London. [1]"),
)


def test_subject_is_kept_over_several_turns() -> None:
    question = "Which club did she play for?"
    assert search_queries(question, HISTORY) == (question, f"Who is Ada Lovelace? {question}")
    assert stand_alone(question, HISTORY) == f"{question} (Ada Lovelace)"


def test_question_that_stands_alone_starts_anew() -> None:
    question = "When was the Sydney Harbour Bridge opened?"
    assert search_queries(question, HISTORY) == (question,)
    assert stand_alone(question, HISTORY) == question


def test_subject_without_a_name_is_its_words() -> None:
    history = (Turn("user", "What is the refund policy?"),)
    assert stand_alone("How long is it?", history) == "How long is it? (refund policy)"


def asked(*questions: str) -> list[Turn]:
    return [Turn("user", question) for question in questions]


AGAIN = [
    (asked("What was the payroll of the Yankees in 2012?"), "And the Reds?", "payroll 2012"),
    (asked("What was the payroll of the Yankees?", "And the Reds?"), "And the Cubs?", "payroll"),
    (asked("What was the payroll of the Yankees?", "And the Reds?"), "How many wins did they have?", "Reds"),
    (asked("What is Acme?", "How many employees did it have in 2019?"), "And in 2020?", "employees Acme"),
    (asked("What is the population of Ghana?"), "And its capital?", "Ghana"),
    (asked("Who makes the Zenith X200?"), "And the price?", "Zenith X200"),
    (asked("Who makes the Zenith X200?"), "What about the price?", "Zenith X200"),
    (asked("What is Acme?"), "And who is the director?", "Acme"),
    (asked("Who is Ada?", "Where was she born?"), "And when?", "Ada"),
    (asked("Wie hoch war der Umsatz in Berlin?"), "Und in Hamburg?", "Umsatz Berlin"),
]


@pytest.mark.parametrize(("history", "question", "added"), AGAIN, ids=[each[1] for each in AGAIN])
def test_question_that_is_asked_again_of_something_else_keeps_the_rest(
    history: list[Turn], question: str, added: str
) -> None:
    assert stand_alone(question, history) == f"{question} ({added})"


@pytest.mark.parametrize("question", ["And the tower?", "what about parking?", "And?"])
def test_question_behind_one_of_stop_words_only_stands_as_it_is(question: str) -> None:
    assert stand_alone(question, asked("How are you?")) == question


def test_without_history_nothing_is_added() -> None:
    assert stand_alone("Where was she born?", ()) == "Where was she born?"
