"""What is known of a question, and how an answer to it is graded: right, refused rightly, with the messages that say so."""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.agents.asking import Outcome
from evals.errors import EvaluationError

DENIAL = "denial"
"""Kind of the questions that the documents do not answer."""


@dataclass(frozen=True)
class KnownQuestion:
    """A question with its answer and the messages that give it."""

    text: str
    kind: str
    """`lookup`, `steps`, `temporal`, `across` or `denial`."""
    language: str
    answers: Sequence[str]
    """Any of them stands in a right answer; none where the documents do not say."""
    messages: frozenset[str]
    """`channel/id` of each message that the answer rests on."""
    is_disputed: bool = False
    """Whether the messages disagree."""

    @property
    def is_denial(self) -> bool:
        return not self.answers


@dataclass(frozen=True)
class Grade:
    """What came of one question."""

    question: KnownQuestion
    outcome: Outcome
    is_right: bool
    """Of a question without an answer: that the run says so."""
    has_refused: bool
    recall: float | None
    """Share of the known messages in the evidence; None where there are none."""
    cited_recall: float | None
    """Share of the known messages that are cited."""
    cited_precision: float | None
    """Share of the cited messages that are known ones; None where nothing is cited or known."""
    judged: bool | None = None
    """Whether a model calls the answer right; None without a model that grades."""


def load_known(path: Path) -> list[KnownQuestion]:
    """The questions of a file of JSON Lines. Raises EvaluationError."""
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        return [_known(row) for row in rows]
    except (OSError, ValueError, KeyError) as error:
        raise EvaluationError(f"{path} holds no questions with known answers: {error!r}") from error


def _known(row: dict[str, Any]) -> KnownQuestion:
    return KnownQuestion(
        row["question"],
        row["kind"],
        row["language"],
        tuple(row["answers"]),
        frozenset(row["messages"]),
        bool(row.get("conflict")),
    )


def grade(question: KnownQuestion, outcome: Outcome) -> Grade:
    """A gap counts as a refusal: the text says that the documents do not tell."""
    refused = outcome.status == "refused" or outcome.ending in ("refusal", "gap")
    says = any(_plain(each) in _plain(outcome.text) for each in question.answers)
    known, cited = question.messages, set(outcome.cited_messages)
    found = known & set(outcome.messages)
    return Grade(
        question,
        outcome,
        refused if question.is_denial else says and outcome.status != "refused",
        refused,
        len(found) / len(known) if known else None,
        len(known & cited) / len(known) if known else None,
        len(known & cited) / len(cited) if known and cited else None,
    )


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("ё", "е").split())
