"""Rows of tables as answers."""

from kit.language.questions import read_question
from services.orchestrator.answering.extractive import ExtractiveSettings, Passage, answer
from services.orchestrator.answering.extractive.answering import LEAST_OF_FITTING_ROW, MOST_OF_THE_UNSAID
from services.orchestrator.answering.extractive.features import gather, has_column_and_cell
from services.orchestrator.answering.extractive.rows import MOST_CHARS, fields, is_row, shortened

CUPS = "Stanley Cups\n\nTeam: Blues; Stanley Cups: 1\nTeam: Flyers; Stanley Cups: 2\n\nSince 67\n\nTeam: Flyers; Stanley Cups: 0"
WIDE = "; ".join(["Country: France", *(f"Code {number}: {number}{number}" for number in range(60)), "Capital: Paris"])


def passage(text: str) -> Passage:
    return Passage(1, text, "d1", "c1", 1.0, 0.6)


def test_row_is_known_by_its_fields() -> None:
    assert is_row("Team: Blues; Wins: 3")
    assert not is_row("He said: no; she said yes.")
    assert not is_row("He said: no; she said:")
    assert is_row("Team: Blues; Wins: 3; Losses:")
    assert fields("R1; Wins: 3") == [("", "R1"), ("Wins", "3")]


def test_long_row_is_shown_by_its_first_field_and_those_that_are_asked_for() -> None:
    assert len(WIDE) > MOST_CHARS
    assert shortened(WIDE, read_question("What is the capital of France?").stems) == "Country: France … Capital: Paris"
    assert shortened("Country: France; Capital: Paris", frozenset()) == "Country: France; Capital: Paris"


def test_long_row_shows_fields_by_the_words_that_their_columns_are_made_of() -> None:
    row = WIDE.replace("Capital", "ISO4217-currency_name").replace("Paris", "Euro")
    shown = shortened(row, read_question("What is the currency of France?").stems)
    assert shown == "Country: France … ISO4217-currency_name: Euro"


async def test_long_row_of_which_nothing_is_asked_shows_its_first_fields_and_is_hardly_believed() -> None:
    found = await answer("Where is France?", [passage(WIDE)], None, ExtractiveSettings(min_confidence_by_words=0.0))
    (sentence,) = found.sentences
    assert sentence.text.startswith("Country: France; Code 0: 00; Code 1: 11")
    assert len(sentence.text) <= MOST_CHARS + 2
    assert found.confidence <= MOST_OF_THE_UNSAID


async def test_the_most_of_several_is_told_by_no_single_row() -> None:
    text = "Region: North; Orders: 31\nRegion: West; Orders: 9\nRegion: Total; Orders: 40"
    fewest = await answer("Which region had the fewest orders?", [passage(text)], None, ExtractiveSettings())
    assert (fewest.answerable, bool(fewest.closest)) == (False, True)
    told = f"{text}\nFewest orders: West; Region: West"
    assert (await answer("Which region had the fewest orders?", [passage(told)], None, ExtractiveSettings())).answerable


async def test_the_least_that_one_thing_takes_is_told_by_its_row() -> None:
    text = "Course: Diving; Age from: 14; Price: 90 euros\nCourse: Sailing; Age from: 10; Price: 70 euros"
    found = await answer("What is the minimum age for diving?", [passage(text)], None, ExtractiveSettings())
    assert [each.text for each in found.sentences] == ["Course: Diving; Age from: 14; Price: 90 euros"]
    assert not (await answer("What is the minimum age?", [passage(text)], None, ExtractiveSettings())).answerable


async def test_what_a_thing_costs_stands_under_its_price() -> None:
    text = "Name: Birne; Preis: 2,35; Menge: 15\nName: Apfel; Preis: 1,20; Menge: 40"
    for question in ("Was kostet eine Birne?", "What is the price of a Birne?"):
        found = await answer(question, [passage(text)], None, ExtractiveSettings())
        assert [each.text for each in found.sentences] == ["Name: Birne; Preis: 2,35; Menge: 15"]


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
