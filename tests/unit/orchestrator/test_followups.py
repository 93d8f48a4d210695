"""Follow-ups keep their subject over several turns."""

from services.orchestrator.models import Turn
from services.orchestrator.modes.followups import search_queries, stand_alone

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


def test_without_history_nothing_is_added() -> None:
    assert stand_alone("Where was she born?", ()) == "Where was she born?"
