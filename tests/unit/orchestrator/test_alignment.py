"""How a question's words lie in a unit: what tells a sentence that answers from one that only holds the same words."""

import math

import pytest

from kit.language.opposites import opposed
from kit.language.questions import read_question
from kit.language.terms import stem
from services.orchestrator.without_model import Passage
from services.orchestrator.without_model.alignment import FEATURES, read_alignment
from services.orchestrator.without_model.features import gather


def aligned(question: str, text: str) -> dict[str, float]:
    read = read_question(question)
    evidence = gather(read, [Passage(1, text, "d1", "c1")])
    return dict(zip(FEATURES, read_alignment(read, evidence, evidence.candidates[0]), strict=True))


def test_same_words_in_another_order_are_told_apart() -> None:
    asked = "Which king did the duke of Norland defeat?"
    fits = aligned(asked, "In 1066 the duke of Norland did defeat king Harold of Wessex.")
    swapped = aligned(asked, "In 1066 king Harold did defeat the Wessex army of Norland and its duke.")
    assert fits["word_order"] > swapped["word_order"]
    assert fits["relations_kept"] == swapped["relations_kept"] == 1.0


def test_word_in_the_place_of_another_is_counted() -> None:
    asked = "What impact had the dynasty on modern Europe?"
    assert aligned(asked, "The dynasty had a great impact on medieval Europe.")["replaced"] == 1.0
    assert aligned(asked, "The dynasty had a great impact on modern Europe.")["replaced"] == 0.0


def test_opposite_counts_where_the_word_itself_is_missing() -> None:
    asked = "Who came to Wales after the conquest?"
    assert aligned(asked, "The Normans came to Wales before the conquest.")["opposites_in_unit"] == 1.0
    assert aligned(asked, "The Normans came to Wales before and after the conquest.")["opposites_in_unit"] == 0.0
    assert opposed(stem("accepted"), {stem("rejected")})
    assert not opposed(stem("house"), {stem("garden")})


@pytest.mark.parametrize(
    ("asked", "near", "absent"),
    [
        ("How many ships sank?", "Twelve ships sank in the storm.", "Ships sank in the storm of the night."),
        ("When did the light go out?", "The light went out in 1986.", "The light went out at last."),
        ("Who keeps the light?", "The light, says Ann Berg, is kept.", "The light is kept well."),
    ],
)
def test_answer_of_the_kind_that_is_asked_for_is_near_or_absent(asked: str, near: str, absent: str) -> None:
    assert aligned(asked, near)["answer_distance"] < 5.0
    assert aligned(asked, absent)["answer_distance"] >= 20.0


def test_small_words_that_are_missing_and_kept() -> None:
    asked = "What happened before the war?"
    assert aligned(asked, "Before the war trade grew.")["relations_kept"] == 1.0
    assert aligned(asked, "After the war trade grew.")["relations_kept"] == 0.0
    assert aligned(asked, "After the war trade grew.")["relations_missing"] == 1.0


def test_clause_that_holds_all_covers_more_than_two_that_share() -> None:
    asked = "Where was the treaty signed?"
    whole = aligned(asked, "The treaty was signed in Utrecht, and peace came.")
    shared = aligned(asked, "The treaty was long, and peace was signed by nobody.")
    assert whole["clause_coverage"] == 1.0
    assert shared["clause_coverage"] < 1.0
    assert whole["pair_distance"] < shared["pair_distance"]


def test_what_is_missing_is_counted_by_its_sort() -> None:
    found = aligned("How many ships had Norland in 1912?", "The harbour was built in 1901.")
    assert found["question_names"] == 2.0
    assert found["missing_numbers"] == 1.0
    assert found["missing_words_in_passage"] == 1.0
    assert found["missing_terms_nearby"] == 3.0


def test_question_of_another_language_leaves_unknown_what_english_words_tell() -> None:
    found = aligned("长城有多长?", "长城长达两万多公里。")
    assert math.isnan(found["relations_kept"])
    assert math.isnan(found["relations_missing"])
    assert all(not math.isinf(each) for each in found.values())


def test_long_texts_are_aligned_in_bounded_time() -> None:
    found = aligned("What " + "very long " * 900 + "question?", "very long text " * 900)
    assert 0.0 <= found["word_order"] <= 1.0
