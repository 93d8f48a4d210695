"""Of two sentences with the words of the question, the one that speaks of what is asked for."""

from dataclasses import dataclass

import pytest

from kit.language.questions import read_question
from services.orchestrator.answering.extractive import ExtractiveSettings, Passage, answer
from services.orchestrator.answering.extractive.features import gather
from services.orchestrator.answering.extractive.superseded import speaks_of_a_namesake

SETTINGS = ExtractiveSettings()
POLICY = (
    "The daily allowance is 62 euros. From 2016 to 2020 the daily allowance was 45 euros. The current head of the travel desk is "
    "Samira Okoye. The previous head of the travel desk was Peter Falk."
)
PLANTS = "The plant in Porto was not closed in 2024. The plant in Emden was closed in 2024."
SEGMENTS = "Segment: Sensors; Revenue: 118\nSegment: Services; Revenue: 37\nSegment: Total; Revenue: 155"
BROTHERS = (
    "Erik Solheim was a midfielder. He was born in Bergen in 1961. He played for Varnsund and scored 88 goals.\n\n"
    "Jonas Solheim was a goalkeeper. He was born in Narvik in 1966. After his career he taught mathematics in Bodø."
)
COUSINS = (
    "Clara Voss studied in Leiden.\n\n"
    "Her cousin Martha Voss studied in Kiel. She discovered no salt. She built a furnace in 1929."
)
PORTS = (
    "# Brisk\n\nThe default port is 7070.\n\n## Archive\n\nVersion 2.4 was released in 2022. Its default port was 6060."
)
VERSIONS = (
    "Version 1.0 of the handbook appeared on 3 March 2019. Version 2.0 of the handbook appeared on 12 May 2021. "
    "Version 3.1 of the handbook appeared on 7 January 2024."
)
HEADS = (
    "The head of the workshop is Ingrid Solberg. She joined in 2011.\n\n"
    "The head of finance is Paul Okafor. He joined in 2018. He reports to Ingrid Solberg."
)
SALES = "Sparte: Strom; Umsatz (Mio. Euro): 41,7\nSparte: Gesamt; Umsatz (Mio. Euro): 75,9"
TOWERS = (
    "The lighthouse of Skarvholm was built in 1861. It is 34 metres high.\n\n"
    "The lighthouse of Grindholm is 21 metres high and was built in 1902. It was automated in 1985, Skarvholm only in 2003."
)
CHEMISTS = (
    "Clara Voss studied in Leiden. Later she taught in Glasgow, where she died in 1974.\n\n"
    "Her cousin Martha Voss studied in Kiel. She died in Kiel in 1959."
)
WATER = (
    "Ein Kubikmeter Wasser kostet 2,14 Euro. Im Jahr 2023 kostete er 1,98 Euro. Der Grundpreis beträgt 9 Euro im Monat."
)
PUMPS = "The pump P-40 weighs 18 kilograms. The pump P-20 weighs 11 kilograms."


class Alike:
    """All sentences are as similar to the question."""

    def __init__(self, score: float = 0.8) -> None:
        self._score = score

    async def score(self, question: str, sentences: list[str]) -> list[float]:
        return [self._score] * len(sentences)


def passages(text: str, heading: str = "") -> list[Passage]:
    return [Passage(1, text, "d1", "c1", 1.0, 0.6, heading_path=(heading,) if heading else ())]


async def quoted(question: str, text: str, heading: str = "") -> str:
    found = await answer(question, passages(text, heading), Alike(), SETTINGS)
    return " ".join(each.text for each in found.sentences)


@dataclass(frozen=True)
class Told:
    question: str
    text: str
    said: str
    unsaid: str


TOLD = [
    Told("How high is the daily allowance?", POLICY, "62 euros", "45 euros"),
    Told("What was the daily allowance in 2018?", POLICY, "45 euros", "62 euros"),
    Told("Who is the head of the travel desk?", POLICY, "Samira Okoye", "Peter Falk"),
    Told("Who was the previous head of the travel desk?", POLICY, "Peter Falk", "Samira Okoye"),
    Told(
        "Wie hoch ist die Miete?", "Die Miete beträgt 48 Euro. Bis 2022 betrug die Miete 39 Euro.", "48 Euro", "39 Euro"
    ),
    Told("茶馆老板是谁？", "茶馆老板是王丽华。茶馆前任老板是陈国强。", "王丽华", "陈国强"),
    Told("Which plant was closed in 2024?", PLANTS, "Emden", "Porto"),
    Told("What was the revenue?", SEGMENTS, "Total; Revenue: 155", "Sensors"),
    Told("What was the revenue of the Services segment?", SEGMENTS, "Services; Revenue: 37", "Total"),
    Told("Where was Jonas Solheim born?", BROTHERS, "born in Narvik", "Bergen"),
    Told("How many goals did Erik Solheim score?", BROTHERS, "88 goals", "Jonas"),
    Told("What did Martha Voss build?", COUSINS, "built a furnace", "Clara"),
    Told("What is the default port?", PORTS, "7070", "6060"),
    Told("Wie hoch war der Umsatz insgesamt?", SALES, "75,9", "41,7"),
    Told(
        "How much was sold in 2023?",
        "In 2024 the firm sold 90 pumps. In 2023 the firm sold 70 pumps.",
        "70 pumps",
        "90 pumps",
    ),
    Told(
        "How high is the Skarvholm?",
        "All know the Skarvholm is 34 metres high. They say Grindholm is 21 metres high.",
        "34",
        "21",
    ),
    Told("Ist das Büro mittwochs geöffnet?", "Das Büro ist mittwochs nicht geöffnet.", "nicht geöffnet", "kein"),
    Told("What is the current version of the handbook?", VERSIONS, "Version 3.1", "Version 2.0"),
    Told(
        "What is the current price of the pass?",
        "In 2021 the price of the pass was 2.50 euros. In 2024 the price of the pass was 1.90 euros.",
        "1.90",
        "2.50",
    ),
    Told("Which version of the handbook appeared in 2019?", VERSIONS, "Version 1.0", "Version 3.1"),
    Told("When did Ingrid Solberg join?", HEADS, "She joined in 2011.", "reports"),
    Told(
        "Who reports to Ingrid Solberg?",
        HEADS,
        "The head of finance is Paul Okafor. He reports to Ingrid Solberg.",
        "workshop",
    ),
    Told("How much does the pump P-20 weigh?", PUMPS, "11 kilograms", "18 kilograms"),
    Told("How high is the lighthouse of Skarvholm?", TOWERS, "It is 34 metres high.", "Grindholm"),
    Told("Was kostete ein Kubikmeter Wasser 2023?", WATER, "1,98", "Grundpreis"),
]


@pytest.mark.parametrize("told", TOLD, ids=lambda told: told.question)
async def test_only_what_is_asked_for_is_quoted(told: Told) -> None:
    said = await quoted(told.question, told.text)
    assert told.said in said
    assert told.unsaid not in said


async def test_what_is_denied_answers_where_nothing_else_does() -> None:
    assert "not closed" in await quoted("Was the plant in Porto closed in 2024?", PLANTS)
    assert "not closed" in await quoted("Which plant was not closed in 2024?", PLANTS)


async def test_history_is_quoted_where_the_documents_say_nothing_of_today() -> None:
    said = await quoted("Who is the head of the travel desk?", "The previous head of the travel desk was Peter Falk.")
    assert "Peter Falk" in said


async def test_row_of_a_part_that_is_not_there_is_no_answer() -> None:
    found = await answer("Wie hoch war der Umsatz der Sparte Gas?", passages(SALES), Alike(), SETTINGS)
    assert not found.answerable


async def test_row_of_a_longer_name_is_no_answer() -> None:
    port = "Name: Trinidad; Capital: Port of Spain; TLD: .tt"
    for question in ("What is the TLD of Spain?", "What is the capital of Spain?"):
        assert not (await answer(question, passages(port), Alike(), SETTINGS)).answerable
    assert ".es" in await quoted(
        "What is the TLD of Spain?", f"{port}\nName: Spain; Official name: Kingdom of Spain; TLD: .es"
    )
    assert ".tt" in await quoted("What is the TLD of Trinidad?", port)


@pytest.mark.parametrize(
    ("question", "text", "answers"),
    [
        ("Are dogs allowed on the Borealis?", "On board the Aurora dogs are not allowed.", False),
        ("Are dogs allowed on the Aurora?", "On board the Aurora dogs are not allowed.", True),
        ("Darf man Hunde auf die Fähre mitnehmen?", "An Bord darf man Hunde nur mit Leine mitnehmen.", True),
    ],
)
async def test_what_is_so_of_others_is_no_answer(question: str, text: str, answers: bool) -> None:
    assert (await answer(question, passages(text), Alike(), SETTINGS)).answerable is answers


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where was Astrid Lie born?", "Her coach is Astrid Lie."),
        ("How many goals did Jonas Solheim score?", "Jonas Solheim, his younger brother, was a goalkeeper."),
    ],
)
async def test_what_has_of_the_question_its_names_only_is_no_answer(question: str, text: str) -> None:
    assert not (await answer(question, passages(text), Alike(0.9), SETTINGS)).answerable


def test_name_in_another_language_makes_no_namesake() -> None:
    read = read_question("Wann wurde die Schreibmaschine patentiert?")
    text = "It was made by Remington. It was patented in 1868 by Christopher Sholes."
    assert not any(speaks_of_a_namesake(read, each) for each in gather(read, passages(text)).candidates)


async def test_rows_of_parts_are_quoted_where_parts_are_asked_for() -> None:
    assert "Sensors" in await quoted("What was the revenue by segment?", SEGMENTS)


async def test_answer_is_judged_with_the_sentence_that_names_whom_it_is_about() -> None:
    found = await answer("Where was Jonas Solheim born?", passages(BROTHERS), Alike(), SETTINGS)
    assert [each.text for each in found.sentences] == [
        "Jonas Solheim was a goalkeeper.",
        "He was born in Narvik in 1966.",
    ]
    assert found.confidence > 0.5


@pytest.mark.parametrize(
    ("question", "text", "another"),
    [
        ("When was Apollo 13 launched?", "Apollo 11 was launched in 1969.", True),
        ("When was Apollo 11 launched?", "Apollo 11 was launched in 1969.", False),
        ("Were Apollo 11 and Apollo 13 launched?", "Apollo 11 was launched in 1969.", False),
        ("What happened in June 2024?", "In June 2023 the plant was closed.", True),
        ("How did Ada Byron live?", "They say that Anne Byron lived in Kirkby.", True),
        ("How did Ada Byron live?", "They say that Lady Byron lived in Kirkby.", False),
        ("How did Ada Byron live?", "They say that Ada lived in London.", False),
        ("What is the area of Spain?", "City: Port of Spain; Area: 12", True),
        ("How much does the Aquila Three cost?", "Name: Aquila One; Price: 189 euros", True),
        ("How much does the Aquila Three cost?", "Name: Aquila Three; Price: 349 euros", False),
        ("How much does the Aquila Three cost?", "Name: Aquila; Model: Three; Price: 349 euros", False),
        ("What is the capital of Ghana?", "Name: Republic of Ghana; Capital: Accra", False),
        ("When was de Gaulle born?", "Name: Charles de Gaulle; Born: 1890", False),
        ("Which office does Berg have?", "Name: Anna von Berg; Office: 214", False),
    ],
)
def test_namesake_is_told_from_who_is_asked_about(question: str, text: str, another: bool) -> None:
    read = read_question(question)
    (candidate,) = gather(read, passages(text)).candidates
    assert speaks_of_a_namesake(read, candidate) is another


async def test_namesake_alone_is_no_answer() -> None:
    found = await answer("How much does the pump P-60 weigh?", passages(PUMPS), Alike(), SETTINGS)
    assert not found.answerable
    assert found.closest
