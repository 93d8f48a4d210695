"""Names in questions and passages, and the names that a passage adds to a question."""

import pytest

from services.orchestrator.research.question.names import find_names
from services.orchestrator.research.question.parts import find_subjects
from services.orchestrator.research.search.hops import find_hops


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Where was the director of The Iron Harbour born?", ["The Iron Harbour"]),
        ("Who lived longer, Ludwig Elsbett or Pamela Ann Rymer?", ["Ludwig Elsbett", "Pamela Ann Rymer"]),
        ("Are Oak Island and Pine Island in the same country?", ["Oak Island", "Pine Island"]),
        ("When did Maurice, Prince of Orange die?", ["Maurice, Prince of Orange"]),
        ("Who sang 45 Fathers and 3 Dots?", ["45 Fathers", "3 Dots"]),
        ("Who directed Walking on the Water (1982 film)?", ["Walking on the Water (1982 film)"]),
        ('What does "blue hour" mean?', ["blue hour"]),
        ("Кто основал завод в Нижнем Новгороде?", ["Нижнем Новгороде"]),
        ("Wer ist der Gründer der Firma Carl Zeiss?", ["Gründer der Firma Carl Zeiss"]),
        ("how long is the notice period?", []),
    ],
)
def test_names_of_a_question(question: str, names: list[str]) -> None:
    assert [name.text for name in find_names(question, is_question=True)] == names


def test_dates_and_adjectives_are_no_names_to_follow() -> None:
    text = "It is an American film of October 4, 1925, written and directed by Albert S. Rogell for Universal Pictures."
    question = "Where was the director of The Circus Cyclone born?"
    hops = find_hops(question, find_subjects(question), text)
    assert [hop.name for hop in hops] == ["Albert S. Rogell", "Universal Pictures"]


def test_name_nearest_to_the_relation_comes_first() -> None:
    text = "Ann Lee is the star. Bob Ray shot it. Music was composed by Cy Poe. Dan Fox was the cutter."
    question = "Who is the wife of the composer of Blue Hill?"
    hops = find_hops(question, find_subjects(question), text)
    assert hops[0].name == "Cy Poe"


def test_names_of_the_question_and_of_the_title_are_not_followed() -> None:
    question = "Who is the mother of Anna Holm?"
    hops = find_hops(
        question, find_subjects(question), "Anna Holm is a daughter of Eva Holm, born in Bergen.", "Anna Holm"
    )
    assert "Anna Holm" not in [hop.name for hop in hops]
    assert hops[0].name == "Eva Holm"
