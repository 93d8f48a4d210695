"""Quizzes as clients see them."""

from typing import Annotated

from pydantic import BaseModel, Field

from services.gateway.schemas.conversations.events import Citation
from services.gateway.schemas.fields import RequestBody


class GradedAnswer(BaseModel):
    """What became of an answer."""

    given: str = Field(description="What was answered.")
    is_right: bool = Field(description="Whether it is right.")
    graded_by: str = Field(
        description="How the grade was decided: `option`, `words`, `spelling`, `number`, `model`, or `nothing` of an empty answer."
    )
    answer: str = Field(description="The right answer.")
    explanation: str = Field(description="Why it is right.")
    citations: list[Citation] = Field(description="The words that prove it.")


class QuizQuestion(BaseModel):
    """A question of a quiz."""

    id: str = Field(validation_alias="question_id", description="Unique within the quiz.")
    kind: str = Field(description="`multiple_choice`, `true_false` or `short_answer`.")
    difficulty: str = Field(description="`easy`, `medium` or `hard`.")
    question: str = Field(description="The question, or the statement to judge; `____` stands for what is asked for.")
    options: list[str] = Field(description="Of a multiple choice.")
    result: GradedAnswer | None = Field(description="What was answered last, graded; null before.")


class Quiz(BaseModel):
    """A quiz, as far as it is answered."""

    id: str = Field(validation_alias="quiz_id", description="The run that made it.")
    title: str = Field(description="One line for people.")
    questions: list[QuizQuestion] = Field(description="In order.")
    answered: int = Field(description="Questions that are answered.")
    right: int = Field(description="Of those, questions that are answered right.")


class GivenAnswer(RequestBody):
    """An answer to a question."""

    question_id: Annotated[str, Field(min_length=1, max_length=20)] = Field(description="Question of the quiz.")
    given: Annotated[str, Field(max_length=1000)] = Field(
        description="The option or its letter, `true` or `false`, or a few words."
    )


class GivenAnswers(RequestBody):
    """Answers to questions of a quiz."""

    answers: Annotated[list[GivenAnswer], Field(min_length=1, max_length=100)] = Field(
        description="One a question. A later answer takes the place of the one before."
    )
