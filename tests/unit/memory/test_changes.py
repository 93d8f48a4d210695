"""120 messages of people about themselves, and what each has to change in what is known of them."""

from evals.memory.changes import measured

RIGHT_MIN, RECALL_MIN = 0.9, 0.8


def test_right_facts_are_known_after_each_message() -> None:
    found = measured()
    assert sum(each.messages for each in found.values()) == 120
    assert {language: each for language, each in found.items() if each.right < RIGHT_MIN * each.messages} == {}
    assert {language: each for language, each in found.items() if each.plans_over} == {}


def test_most_statements_are_read_without_a_model_and_nothing_else() -> None:
    found = measured()
    assert {language: each for language, each in found.items() if each.read < RECALL_MIN * each.statements} == {}
    assert sum(each.wrongly_read for each in found.values()) == 0
