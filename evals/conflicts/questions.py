"""Questions whose sources disagree, read from the counterfactual part of RGB (Chen et al., arXiv:2309.01431)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.errors import EvaluationError

FILE = "qa_rgb_conflict/en_fact.jsonl"
DEVELOPED_ON, HELD_OUT = "developed on", "held out"
"""The halves: the rules were written with the first before one's eyes."""


@dataclass(frozen=True)
class DisputedQuestion:
    """A question, with passages that say the right thing, the same ones with a wrong thing, and others."""

    text: str
    right: Sequence[str]
    wrong: Sequence[str]
    others: Sequence[str]
    half: str


def load_questions(folder: Path) -> list[DisputedQuestion]:
    """All questions. Raises EvaluationError where the file is not there."""
    path = folder / FILE
    if not path.is_file():
        raise EvaluationError(f"there is no {path}; name the folder that holds {FILE} with --data")
    return [_question(json.loads(line)) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _question(row: dict[str, Any]) -> DisputedQuestion:
    half = DEVELOPED_ON if row["id"] % 2 == 0 else HELD_OUT
    return DisputedQuestion(row["query"], row["positive"], row["positive_wrong"], row["negative"], half)
