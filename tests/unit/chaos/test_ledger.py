"""What a campaign holds a system to."""

import itertools
from collections import Counter

import pytest

from chaos.ledger import Ledger
from chaos.verdict import Verdict


def test_request_without_an_answer_leaves_both_ends_open() -> None:
    promise = Ledger().promise("a.txt")
    promise.begin("old")
    promise.answered("old", "id-1")
    promise.begin("new")
    assert promise.may_hold == {"old", "new"}
    promise.answered("new", "id-1")
    assert promise.may_hold == {"new"}
    promise.begin(None)
    assert promise.may_hold == {"new", None}
    promise.answered(None)
    assert promise.may_hold == {None}
    assert promise.words == {"old", "new"}


def test_damage_is_remembered_after_it_was_mended() -> None:
    ledger = Ledger()
    for seen in ({"FILES": 2}, {"FILES": 1, "RUNS": 3}, {}):
        ledger.note_damage(seen)
    assert ledger.named == {"FILES": 2, "RUNS": 3}


def verdict(**violations: list[str]) -> Verdict:
    return Verdict(1, 1, 1, **violations)  # type: ignore[arg-type] # fields by name


@pytest.mark.parametrize(
    ("named", "violations", "is_clean"),
    [
        ({"FILES": 2}, {"lost": ["a"], "unsettled": ["b"]}, True),
        ({"FILES": 1}, {"lost": ["a.txt was acknowledged"], "unsettled": ["a.txt is failed"]}, True),
        ({"FILES": 1}, {"lost": ["a"], "unsettled": ["b"]}, False),
        ({"RUNS": 9}, {"lost": ["a"]}, False),
        ({"DOCUMENTS": 1}, {"broken": ["r"]}, False),
        ({"DOCUMENTS": 1}, {"doubled": ["a"]}, False),
        ({"DOCUMENTS": 1}, {"stale": ["a"]}, False),
    ],
)
def test_what_is_lost_is_no_violation_where_the_system_named_as_much(
    named: dict[str, int], violations: dict[str, list[str]], is_clean: bool
) -> None:
    made = verdict(**violations)
    made.excuse(Counter(named))
    assert made.is_clean is is_clean
    assert sorted(made.named) == (sorted(itertools.chain(*violations.values())) if is_clean else [])
