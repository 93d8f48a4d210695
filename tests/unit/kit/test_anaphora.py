"""Words that point back, in the sentences and questions of several languages."""

import pytest

from kit.language.anaphora import leans_on_the_last, named_subject, names_nobody, points_back, starts_with_anaphor

LEANING = [
    "Where was she born?",
    "And in 2020?",
    "How much?",
    "Which colour?",
    "Who founded it?",
    "What is the price?",
    "Is there parking?",
    "Gibt es Parkplätze?",
    "Wo wurde er geboren?",
    "Wann wurde sie eröffnet?",
    "Und in Berlin?",
    "Où est-il né ?",
    "Combien coûte-t-elle ?",
    "Qu'a-t-il écrit ?",
    "Et en 2020 ?",
    "¿Dónde nació?",
    "¿Cuál es su precio?",
    "Quando è nato lui?",
    "Onde ela nasceu?",
    "Waar werd hij geboren?",
    "Var föddes hon?",
    "Gdzie ona mieszka?",
    "Где он родился?",
    "Де він народився?",
    "Nerede doğdu?",
    "他在哪里出生？",
    "彼はどこで生まれましたか",
    "그는 어디에서 태어났나요?",
    "वह कहाँ पैदा हुआ था?",
    "أين ولد هو؟",
]
STANDING_ALONE = [
    "When was the Sydney Harbour Bridge opened?",
    "What is photosynthesis?",
    "Who is Ada?",
    "Wann schließt das Museum am Sonntag?",
    "Was können Sie mir über Hamburg sagen?",
    "Où le musée est-il situé ?",
    "Qu'est-ce que la photosynthèse ?",
    "Est-ce qu'il y a un parking au musée ?",
    "¿Qué es la fotosíntesis?",
    "¿Cuánto cuesta el menú del día?",
    "Quanto costa il biglietto del museo?",
    "Was kostet die Karte für Kinder?",
    "Сколько стоит билет в музей?",
    "什么是光合作用？",
    "谁是李明？",
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
        ("Sie wurde 1950 in Wien geboren.", True),
        ("Il est né à Lyon.", True),
        ("Il museo chiude alle sei.", False),
        ("Él nació en Sevilla.", True),
        ("Murió en Cádiz en 2003.", True),
        ("Su casa es un museo.", True),
        ("Han föddes i Lund.", True),
        ("Su Shi was a poet.", False),
        ("Han Kang was born in Gwangju.", False),
        ("Nasceu em Lisboa.", True),
        ("You can park here.", False),
        ("El museo cierra a las seis.", False),
        ("Она родилась в Киеве.", True),
        ("她出生在北京。", True),
        ("On Monday it is closed.", False),
        ("Ella nació en Sevilla.", True),
        ("Ella Fitzgerald was born in Newport News.", False),
        ("Ella sang jazz in the city.", False),
        ("Este is a town in Italy.", False),
        ("Hans wurde 1950 in Bonn geboren.", False),
        ("Hans bok kom ut 1950.", True),
        ("ESA was founded in 1975.", False),
        ("Morreu a 3 de maio.", True),
        ("Tornò a Roma nel 1950.", True),
        ("Guangzhou has a population of 18 million.", False),
        ("Richelieu was born in Paris in 1585.", False),
        ("Richelieu a été nommé en 1622.", False),
        ("Sibiu a fost fondat în 1150.", False),
    ],
)
def test_sentences_begin_by_pointing_back(text: str, back: bool) -> None:
    assert starts_with_anaphor(text) is back


def test_subject_is_what_a_question_asks_for_alone() -> None:
    assert named_subject("谁是李明？") == "李明"
    assert named_subject("Where is Bergen?") == ""


@pytest.mark.parametrize(
    ("sentence", "points"),
    [
        ("In 2023 it cost 1.98 euros.", True),
        ("By then they had left the town.", True),
        ("Im Jahr 2023 kostete er 1,98 Euro.", True),
        ("Nach dem Studium zog sie nach Wien.", True),
        ("Im Jahr 2023 fragte Peter sie nach dem Weg.", False),
        ("En 1962, elle s'installe à Lyon.", True),
        ("En 1962, Jeanne s'installe à Lyon.", False),
        ("В 1962 году он переехал в Москву.", True),
        ("In 1962 verhuisde hij naar Leiden.", True),
        ("I 1962 flyttet han til Oslo.", True),
        ("In 2023 the ticket cost 2 euros.", False),
    ],
)
def test_sentence_with_a_pronoun_behind_a_time_points_back(sentence: str, points: bool) -> None:
    assert points_back(sentence) is points


@pytest.mark.parametrize(
    ("question", "nobody"),
    [
        ("When did he join?", True),
        ("In which year did he join the company?", True),
        ("Who is her coach?", True),
        ("When was Ada's daughter born, and where did she live?", False),
        ("When was she born? (Ada Byron)", False),
        ("How many days of leave does an employee get when his child is born?", False),
        ("How long before her due date does a pregnant employee stop working?", False),
        ("Who lost his job?", False),
    ],
)
def test_question_names_nobody_when_no_one_is_said_whom_its_pronoun_stands_for(question: str, nobody: bool) -> None:
    assert names_nobody(question) is nobody
