"""What is made of true sentences to fit the judge of claims on."""

import random

import pytest

from scripts.judge.changes import change, combined, shortened
from scripts.judge.rows import row_claims

_PASSAGE = (
    "Ada Moncrieff met Jules Kettering in Lindow on 6 May 1949. The firm will build 12 mills if the council agrees."
)


def kinds(sentence: str, language: str = "en") -> dict[str, str]:
    return {
        each.kind: each.text for each in change(sentence, _PASSAGE, "Bananas are yellow.", language, random.Random(1))
    }


def test_each_change_says_something_else() -> None:
    made = kinds("Then Ada Moncrieff met Jules Kettering on 6 May 1949.")
    assert made["roles"] == "Then Jules Kettering met Ada Moncrieff on 6 May 1949."
    assert "6 May 1949" not in made["date"]
    assert made["cause"].startswith("Then Ada Moncrieff met Jules Kettering on 6 May 1949 ")


def test_conditions_and_plans_are_dropped() -> None:
    made = kinds("The firm will build 12 mills if the council agrees.")
    assert made["condition"] == "The firm will build 12 mills."
    assert "builded" in made["plan or fact"]
    assert "12" not in made["number"]


@pytest.mark.parametrize(
    ("sentence", "language", "denied"),
    [
        ("Das Haus ist alt.", "de", "Das Haus ist nicht alt."),
        ("La casa es vieja.", "es", "La casa no es vieja."),
        ("It is not old.", "en", "It is old."),
    ],
)
def test_denials_are_put_in_and_taken_out(sentence: str, language: str, denied: str) -> None:
    assert kinds(sentence, language)["negation"] == denied


def test_true_claims_are_made_too() -> None:
    assert shortened("The old mill burned down, which the council regretted.") == "The old mill burned down."
    assert combined("It rained.", "The fair closed.", "en") == "It rained and the fair closed."


def test_claims_about_rows_are_true_of_their_list_alone() -> None:
    for made in row_claims(20, random.Random(1)):
        if made.kind == "row of another":
            assert not made.is_true
        if made.kind == "row":
            assert made.is_true
        assert made.passage.count("\n") >= 2
