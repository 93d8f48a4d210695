"""Measuring what is said of sources that disagree: the halves, the shares, the gate."""

import json
from pathlib import Path

import pytest

from evals.conflicts import __main__ as command
from evals.conflicts.asking import DISPUTED, UNDISPUTED, Answered
from evals.conflicts.questions import DEVELOPED_ON, FILE, HELD_OUT, DisputedQuestion, load_questions
from evals.errors import EvaluationError


def answered(said: dict[str, list[bool]], half: str = HELD_OUT) -> list[Answered]:
    question = DisputedQuestion("Who?", ("A.",), ("B.",), ("C.",), half)
    return [
        Answered(question, sources, {"answer": "A.", "conflicts": [{}] if flag else []})
        for sources, flags in said.items()
        for flag in flags
    ]


def test_questions_are_read_in_two_halves(tmp_path: Path) -> None:
    row = {"query": "Who?", "positive": ["A."], "positive_wrong": ["B."], "negative": ["C."]}
    path = tmp_path / FILE
    path.parent.mkdir()
    path.write_text("\n".join(json.dumps({"id": number, **row}) for number in (0, 1)), "utf-8")
    assert [each.half for each in load_questions(tmp_path)] == [DEVELOPED_ON, HELD_OUT]


def test_folder_without_the_set_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="--data"):
        load_questions(tmp_path)


def test_shares_are_of_one_half_each() -> None:
    both = answered({DISPUTED: [True, False], UNDISPUTED: [False, False]})
    both += answered({DISPUTED: [False], UNDISPUTED: [True]}, DEVELOPED_ON)
    assert command.shares(both, HELD_OUT) == command.Shares(2, 0.5, 0.0)
    assert command.shares(both, DEVELOPED_ON) == command.Shares(1, 0.0, 1.0)


@pytest.mark.parametrize(
    ("disputed", "undisputed", "code"),
    [([True] * 4, [False] * 4, 0), ([True, False], [False] * 4, 1), ([True] * 4, [True, False], 1)],
)
def test_held_out_half_is_the_gate(
    disputed: list[bool], undisputed: list[bool], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def measured(_: object) -> list[Answered]:
        return answered({DISPUTED: disputed, UNDISPUTED: undisputed})

    monkeypatch.setattr(command, "_measured", measured)
    monkeypatch.setattr(command, "load_questions", lambda _: [])
    assert command.main(["--data", str(tmp_path)]) == code
