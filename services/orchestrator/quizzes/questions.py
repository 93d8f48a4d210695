"""What a quiz is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

BLANK = "____"
"""Stands for the words that are asked for."""


class QuestionKind(StrEnum):
    """How a question is answered."""

    MULTIPLE_CHOICE = "multiple_choice"
    TRUE_FALSE = "true_false"
    SHORT_ANSWER = "short_answer"


class Difficulty(StrEnum):
    """How hard a question is: how near the wrong options are to the right one."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


TRUE, FALSE = "true", "false"


@dataclass(frozen=True)
class QuizQuestion:
    """One question, with the words of a passage that prove its answer."""

    kind: QuestionKind
    text: str
    answer: str
    """The right option; `true` or `false`; or a short answer."""

    source: int
    """Number of the passage that proves it."""

    quote: str
    """The words of that passage, exactly."""

    options: Sequence[str] = ()
    """Of a multiple choice, in the order in which they are shown."""

    explanation: str = ""
    difficulty: Difficulty = Difficulty.MEDIUM

    @property
    def statement(self) -> str:
        """What is true, in a sentence."""
        return self.explanation or " ".join(self.quote.split())


def as_kind(word: str) -> QuestionKind | None:
    """The kind of this name; None where there is none."""
    return next((kind for kind in QuestionKind if kind.value == word), None)
