"""Words of a query that belong together stand together in what answers it."""

import pytest

from services.reranker.reranking.nearness import nearness

QUERY = (
    "Which solar panels power the harbour lighthouse?"  # solar panels, panels power, power harbour, harbour lighthouse
)


@pytest.mark.parametrize(
    ("passage", "near"),
    [
        ("Solar panels power the harbour lighthouse.", 1.0),
        ("The lighthouse of the HARBOUR has panels, solar ones.", 0.5),
        ("Solar power was cheap. The new panels of the harbour are grey, and far away is a lighthouse.", 0.25),
        ("The lighthouse was built in 1893, long before anybody thought of a new harbour.", 0.0),
        ("Nothing of it.", 0.0),
        ("", 0.0),
    ],
    ids=["all", "in either order", "one pair", "too far apart", "none", "empty"],
)
def test_share_of_neighbouring_words_that_stand_near_each_other(passage: str, near: float) -> None:
    assert nearness(QUERY, [passage]) == [near]


@pytest.mark.parametrize("query", ["", "the", "lighthouse", "lighthouse lighthouse", "?!", "(.*)"])
def test_query_without_two_content_words_is_near_to_nothing(query: str) -> None:
    assert nearness(query, ["The lighthouse, the lighthouse (.*)", ""]) == [0.0, 0.0]


def test_forms_of_a_word_are_the_word() -> None:
    assert nearness("painted bridges", ["He paints a bridge.", "They are painting the bridges."]) == [1.0, 1.0]


def test_word_whose_stem_is_that_of_another_is_found_as_it_is_written() -> None:
    assert nearness("purchase order number", ["The purchase order number is 7.", "You buy order things."]) == [1.0, 0.5]
    assert nearness("price list 2024", ["the price list 2024", "the cost list 2024", "a list"]) == [1.0, 1.0, 0.0]


def test_of_words_that_begin_alike_the_longer_one_is_meant() -> None:
    assert nearness("car carpet", ["a carpet for the car", "carpets"]) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("Wann wurde die Brücke gestrichen?", "Die Brücke wurde 1997 gestrichen."),
        ("Когда построен маяк?", "Маяк построен в 1893 году."),
        ("متى بني منارة الميناء؟", "بني منارة الميناء"),
    ],
)
def test_other_languages(query: str, passage: str) -> None:
    assert nearness(query, [passage])[0] > 0.3


def test_script_without_spaces_says_nothing() -> None:
    assert nearness("灯塔高度", ["灯塔高度是三十米"]) == [0.0]


def test_long_query_over_long_passages_is_bounded() -> None:
    assert nearness("word and another " * 5_000, ["word " * 5_000]) == [0.0]
