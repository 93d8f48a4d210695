"""Rows of tables as answers."""

from kit.language.questions import read_question
from kit.reading.rows import MOST_CHARS, fields, is_row, shortened
from services.orchestrator.without_model import ExtractiveSettings, Passage, answer
from services.orchestrator.without_model.features import gather

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
    assert not any(each.is_about_row for each in candidates)


async def test_questions_and_lead_ins_are_no_answers() -> None:
    text = (
        "Who owns the bridge?\n\nThe bridge is owned by:\n\nThe bridge over the Elbe is owned by the city of Meissen."
    )
    found = await answer("Who owns the bridge?", [passage(text)], None, ExtractiveSettings(min_confidence=0.0))
    assert [each.text for each in found.sentences] == ["The bridge over the Elbe is owned by the city of Meissen."]


def test_words_of_a_column_name_are_words() -> None:
    text = "name: Singapore; currency_name: Singapore Dollar; area_km2: 728"
    (row,) = gather(read_question("Which currency does Singapore use?"), [passage(text)]).candidates
    assert row.is_about_row
