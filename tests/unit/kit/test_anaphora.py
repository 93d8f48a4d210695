"""Words that point back, in the sentences and questions of several languages."""

import pytest

from kit.language.anaphora import leans_on_the_last, starts_with_anaphor

LEANING = [
    "Where was she born?",
    "And in 2020?",
    "What about 2020?",
    "How much?",
    "Which colour?",
    "Who founded it?",
    "Is there parking?",
    "Wo wurde er geboren?",
    "Und in Berlin?",
    "Combien coûte-t-elle ?",
    "Et en 2020 ?",
    "¿Dónde nació?",
    "¿Y en 2020?",
    "Onde ela nasceu?",
    "Waar werd hij geboren?",
    "Var föddes hon?",
    "Gdzie ona mieszka?",
    "Где он родился?",
    "Де він народився?",
    "他在哪里出生？",
    "彼はどこで生まれましたか",
    "أين ولد هو؟",
]
STANDING_ALONE = [
    "When was the Sydney Harbour Bridge opened?",
    "What is photosynthesis?",
    "Who is Ada?",
    "Wann schließt das Museum am Sonntag?",
    "Où le musée est-il situé en ville ?",
    "¿Cuánto cuesta el menú del día?",
    "Quanto costa il biglietto del museo?",
    "Сколько стоит билет в музей?",
    "什么是光合作用？",
]


@pytest.mark.parametrize("question", LEANING)
def test_question_without_its_subject_leans_on_the_last(question: str) -> None:
    assert leans_on_the_last(question)


@pytest.mark.parametrize("question", STANDING_ALONE)
def test_question_that_names_its_subject_stands_alone(question: str) -> None:
    assert not leans_on_the_last(question)


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("It opened in 1990.", True),
        ("However, dogs are allowed.", True),
        ("Sie wurde 1950 in Wien geboren.", True),
        ("Elle est née à Lyon.", True),
        ("Él nació en Sevilla.", True),
        ("Она родилась в Киеве.", True),
        ("她出生在北京。", True),
        ("You can park here.", False),
        ("Il museo chiude alle sei.", False),
        ("Ella sang jazz in the city.", False),
        ("Este is a town in Italy.", False),
        ("ESA was founded in 1975.", False),
        ("", False),
    ],
)
def test_sentences_begin_by_pointing_back(text: str, back: bool) -> None:
    assert starts_with_anaphor(text) is back
