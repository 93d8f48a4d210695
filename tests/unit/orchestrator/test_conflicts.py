"""Sources that disagree: found by their wording, and said with dates, newest first."""

from dataclasses import dataclass

import pytest

from services.orchestrator.answering.citations import cited_numbers
from services.orchestrator.conflicts.dates import date_of
from services.orchestrator.conflicts.parallel import find_disagreements
from services.orchestrator.conflicts.saying import say_conflicts
from services.orchestrator.log.events import Evidence, Origin


def sources(*texts: str, names: tuple[str, ...] = ()) -> list[Evidence]:
    given = [*names, *(f"note-{letter}.txt" for letter in "abcdefgh"[len(names) :])]
    return [
        Evidence(number, f"c{number}", f"d{number}", name, text)
        for number, (text, name) in enumerate(zip(texts, given, strict=False), start=1)
    ]


def values(question: str, evidence: list[Evidence]) -> list[set[str]]:
    return [{value.text for value in found.values} for found in find_disagreements(question, evidence)]


@dataclass(frozen=True)
class Case:
    question: str
    left: str
    right: str
    found: frozenset[str]


DISAGREE = (
    Case(
        "Who won the regatta in 2021?",
        "The regatta of 2021 was won by Ines Duarte after a photo finish. Duarte had led from the start.",
        "The regatta of 2021 was won by Paula Reis after a photo finish. Reis had led from the start.",
        frozenset({"Ines Duarte", "Paula Reis"}),
    ),
    Case(
        "When was the bridge opened?",
        "The bridge was opened to traffic on March 3, 2017.",
        "The bridge was opened to traffic on March 13, 2019, in the rain.",
        frozenset({"March 3, 2017", "March 13, 2019"}),
    ),
    Case(
        "How much is the daily allowance?",
        "The daily allowance is 54 euros for journeys within the country.",
        "The daily allowance is 62 euros for journeys within the country.",
        frozenset({"54 euros", "62 euros"}),
    ),
    Case(
        "Wie hoch ist die Tagespauschale?",
        "Die Tagespauschale beträgt 54 Euro je Reisetag.",
        "Die Tagespauschale beträgt 62 Euro je Reisetag.",
        frozenset({"54", "62"}),
    ),
    Case(
        "Кто возглавляет отдел закупок?",
        "Отдел закупок с мая возглавляет Анна Котова.",
        "Отдел закупок с мая возглавляет Пётр Левин.",
        frozenset({"Анна Котова", "Пётр Левин"}),
    ),
    Case(
        "What does the Widget cost?",
        "Name: Widget; Price: 12.50; Stock: 3\nName: Gadget; Price: 9.90; Stock: 8",
        "Name: Widget; Price: 13.80; Stock: 7\nName: Gadget; Price: 9.90; Stock: 8",
        frozenset({"12.50", "13.80"}),
    ),
)
AGREE = (
    ("Who won the regatta in 2021?", "Ines Duarte won the regatta of 2021.", "Paula Reis won the regatta of 2020."),
    (
        "When was the bridge opened?",
        "The bridge was opened on 3 March 2017.",
        "The bridge was opened on March 3, 2017.",
    ),
    ("When was the bridge opened?", "The bridge has 4 lanes for cars.", "The bridge has 6 lanes for cars."),
    (
        "Which rooms have a beamer?",
        "The room Oslo has a beamer and 12 seats.",
        "The room Rome has a beamer and 12 seats.",
    ),
    ("How long is the notice?", "The notice is four weeks.", "The notice is four weeks in writing."),
    ("List the winners of the regatta", "The regatta was won by Ines Duarte.", "The regatta was won by Paula Reis."),
    (
        "What does the Widget cost?",
        "Name: Widget; Year: 2022; Price: 12.50",
        "Name: Widget; Year: 2023; Price: 13.80",
    ),
    (
        "What is the salary of Anna Kern?",
        "Contract of Anna Kern. The salary is 5000 euros a month.",
        "Contract of Boris Lang. The salary is 6000 euros a month.",
    ),
)


@pytest.mark.parametrize("case", DISAGREE, ids=lambda case: case.question)
def test_sources_that_say_the_same_of_different_values_disagree(case: Case) -> None:
    assert values(case.question, sources(case.left, case.right)) == [set(case.found)]


@pytest.mark.parametrize(("question", "left", "right"), AGREE, ids=lambda text: text[:30])
def test_sources_that_speak_of_different_things_do_not_disagree(question: str, left: str, right: str) -> None:
    assert values(question, sources(left, right)) == []


def test_one_document_does_not_contradict_itself_by_its_sentences() -> None:
    one, two = sources("The fee for cars is 5 euros a day.", "The fee for cars is 6 euros a day.")
    both = [one, Evidence(2, "c2", one.document_id, one.document_name, two.text)]
    assert values("How much is the fee?", both) == []


def test_rows_of_two_sheets_of_one_document_disagree() -> None:
    left = Evidence(1, "c1", "d1", "prices.xlsx", "Name: Widget; Price: 12.50", heading_path=("Spring",))
    right = Evidence(2, "c2", "d1", "prices.xlsx", "Name: Widget; Price: 13.80", heading_path=("Autumn",))
    assert values("What does the Widget cost?", [left, right]) == [{"12.50", "13.80"}]


def test_many_passages_make_one_conflict_of_two_sides() -> None:
    won = "The regatta was won by {} in the end. The crowd cheered for {} all day."
    found = values(
        "Who won the regatta?",
        sources(
            won.format("Ines Duarte", "Duarte"),
            won.format("Paula Reis", "Reis"),
            "The regatta was won by Ines Duarte in the end.",
            "The regatta was won by Paula Reis in the end.",
        ),
    )
    assert found == [{"Ines Duarte", "Paula Reis"}]


def test_spans_are_those_of_the_values() -> None:
    evidence = sources("Rates. The rate is 4.5 % a year.", "Rates. The rate is 5.1 % a year.")
    (found,) = find_disagreements("What is the rate?", evidence)
    for value in found.values:
        text = evidence[value.source - 1].text
        assert text[value.start : value.end] == value.text
        assert text[value.unit_start : value.unit_end].startswith("The rate is")


def test_conflict_is_said_with_dates_newest_first() -> None:
    evidence = sources(
        "The allowance is 45 euros a day.",
        "The allowance is 54 euros a day.",
        "The allowance is 62 euros a day.",
        names=("policy.md", "policy-2019.md", "policy-2024-05.md"),
    )
    found = find_disagreements("How much is the allowance?", evidence)
    said = say_conflicts("It is 45 euros a day.", (), found, evidence, "The sources disagree")
    (conflict,) = said.conflicts
    assert [(side.value, side.date) for side in conflict.sides] == [
        ("62 euros", "2024-05"),
        ("54 euros", "2019"),
        ("45 euros", ""),
    ]
    assert said.text.startswith("It is 45 euros a day.\n\n")
    assert cited_numbers(said.text) == tuple(each.number for each in said.citations) == (1, 2, 3)
    for side in conflict.sides:
        cited = said.citations[side.citation - 1]
        assert cited.text[side.start : side.end] == side.value


def test_what_the_answer_has_cited_keeps_its_number() -> None:
    evidence = sources("The allowance is 45 euros a day.", "The allowance is 54 euros a day.")
    found = find_disagreements("How much is the allowance?", evidence)
    first = say_conflicts("", (), found, evidence, "The sources disagree").citations[0]
    said = say_conflicts("It is 45 euros. [1]", (first,), found, evidence, "The sources disagree")
    assert said.citations[0] == first
    assert len(said.citations) == 2


@pytest.mark.parametrize(
    ("name", "headings", "date"),
    [
        ("policy-2024-05-31.md", (), "2024-05-31"),
        ("policy_20240531.md", (), "2024-05-31"),
        ("policy.md", ("Rules", "Valid from 2023"), "2023"),
        ("policy-2019.md", ("Rules of 2023",), "2023"),
        ("order-120240531.md", (), ""),
        ("policy-20240231.md", (), ""),
        ("policy.md", (), ""),
    ],
)
def test_date_of_a_source_is_told_by_its_headings_or_its_name(name: str, headings: tuple[str, ...], date: str) -> None:
    assert date_of(Evidence(1, "c", "d", name, "Text.", heading_path=headings)) == date


def test_date_of_the_metadata_counts_before_all_others() -> None:
    origin = Origin(date="2025-02-01T08:30:00Z")
    assert date_of(Evidence(1, "c", "d", "policy-2019.md", "Text.", origin=origin)) == "2025-02-01"
    assert date_of(Evidence(1, "c", "d", "policy-2019.md", "Text.", origin=Origin(author="Ann"))) == "2019"
