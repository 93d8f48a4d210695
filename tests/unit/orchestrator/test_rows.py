"""Rows of tables as answers."""

from kit.language.questions import read_question
from services.orchestrator.answering.extractive import ExtractiveSettings, Passage, answer
from services.orchestrator.answering.extractive.answering import LEAST_OF_FITTING_ROW
from services.orchestrator.answering.extractive.features import gather, has_column_and_cell
from services.orchestrator.answering.extractive.rows import MOST_CHARS, fields, is_row, shortened

CUPS = "Stanley Cups\n\nTeam: Blues; Stanley Cups: 1\nTeam: Flyers; Stanley Cups: 2\n\nSince 67\n\nTeam: Flyers; Stanley Cups: 0"
WIDE = "; ".join(["Country: France", *(f"Code {number}: {number}{number}" for number in range(60)), "Capital: Paris"])


def passage(text: str) -> Passage:
    return Passage(1, text, "d1", "c1", 1.0, 0.6)


def test_row_is_known_by_its_fields() -> None:
    assert is_row("Team: Blues; Wins: 3")
    assert not is_row("He said: no; she said yes.")
    assert fields("R1; Wins: 3") == [("", "R1"), ("Wins", "3")]


def test_long_row_is_shown_by_its_first_field_and_those_that_are_asked_for() -> None:
    assert len(WIDE) > MOST_CHARS
    assert shortened(WIDE, read_question("What is the capital of France?").stems) == "Country: France … Capital: Paris"
    assert shortened("Country: France; Capital: Paris", frozenset()) == "Country: France; Capital: Paris"


async def test_wide_row_is_one_quote() -> None:
    found = await answer("What is the capital of France?", [passage(WIDE)], None, ExtractiveSettings())
    (sentence,) = found.sentences
    assert sentence.text == "Country: France … Capital: Paris"
    assert (sentence.start, sentence.end) == (0, len(WIDE))


async def test_row_is_shown_under_its_caption() -> None:
    found = await answer("How many cups have the Flyers since 67?", [passage(CUPS)], None, ExtractiveSettings())
    assert "Since 67: Team: Flyers; Stanley Cups: 0" in [each.text for each in found.sentences]


async def test_row_without_the_asked_column_is_no_answer() -> None:
    text = "Team: Blues; Stanley Cups: 1\nTeam: Flyers; Stanley Cups: 2"
    asked = "Who is the manager of the Flyers?"
    found = await answer(asked, [passage(text)], None, ExtractiveSettings())
    assert not found.answerable
    assert found.closest
    candidates = gather(read_question(asked), [passage(text)]).candidates
    assert not any(has_column_and_cell(read_question(asked), each) for each in candidates)


async def test_questions_and_lead_ins_are_no_answers() -> None:
    text = (
        "Who owns the bridge?\n\nThe bridge is owned by:\n\nThe bridge over the Elbe is owned by the city of Meissen."
    )
    found = await answer("Who owns the bridge?", [passage(text)], None, ExtractiveSettings(min_confidence=0.0))
    assert [each.text for each in found.sentences] == ["The bridge over the Elbe is owned by the city of Meissen."]


async def test_words_of_a_column_name_are_words() -> None:
    text = "name: Singapore; currency_name: Singapore Dollar; area_km2: 728"
    found = await answer("Which currency does Singapore use?", [passage(text)], None, ExtractiveSettings())
    assert found.answerable
    assert found.confidence >= LEAST_OF_FITTING_ROW


async def test_row_of_other_years_is_no_answer() -> None:
    text = "Segment: Sensors; Revenue 2024: 118; Revenue 2023: 104\n\nThe company was founded in 2019."
    asked = "What was the revenue of the Sensors segment in {}?"
    assert (await answer(asked.format(2023), [passage(text)], None, ExtractiveSettings())).answerable
    assert not (await answer(asked.format(2019), [passage(text)], None, ExtractiveSettings())).answerable
