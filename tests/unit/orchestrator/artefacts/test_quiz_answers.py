"""Answers to a quiz of a thread are graded, by a model where words differ, and kept with it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.access.principal import Principal, use_principal
from kit.errors import NotFound, Unavailable
from kit.llm import LanguageModel
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.log.events import RunMode, RunStatus
from services.orchestrator.models import RunKey, RunRecord, RunRequest, StoredQuiz
from services.orchestrator.quizzes.answers import QuizAnswers, ReadRun, states_of
from services.orchestrator.quizzes.questions import QuestionKind, QuizQuestion
from services.orchestrator.quizzes.showing import quiz_artefact
from tests.unit.orchestrator.artefacts.passages import BUILDINGS
from tests.unit.orchestrator.fakes import FakeMemory, FakeModel
from tests.unit.orchestrator.serving import NoModel

ANN = Principal("acme", "ann")
AT = datetime(2026, 1, 31, tzinfo=UTC)
THREAD, QUIZ_ID = "0" * 12, "a" * 32
BUILT = "The tower was built in 1889 by Gustave Eiffel for the world exhibition in Paris."
QUESTIONS = (
    QuizQuestion(QuestionKind.MULTIPLE_CHOICE, "When?", "1889", 1, BUILT, ("1932", "1889", "1936")),
    QuizQuestion(QuestionKind.SHORT_ANSWER, "What for?", "world exhibition", 1, BUILT),
)


@pytest.fixture(autouse=True)
def ann() -> Iterator[None]:
    with use_principal(ANN):
        yield


def made_by(*, is_bound: bool) -> ReadRun:
    """The record of the run that made the quiz."""

    async def read(key: RunKey) -> RunRecord | None:
        request = RunRequest(RunMode.GROUNDED, "A quiz", ("default",))
        return RunRecord(key, ANN.subject, request, RunStatus.COMPLETED, AT, local_models_only=is_bound)

    return read


def answering(model: LanguageModel | None = None, *, is_bound: bool = False) -> QuizAnswers:
    memory = FakeMemory()
    memory.quizzes[THREAD, QUIZ_ID] = StoredQuiz(quiz_artefact(QUESTIONS, BUILDINGS, "Quiz"))
    return QuizAnswers(memory, model or NoModel(), made_by(is_bound=is_bound))


def right(stored: StoredQuiz) -> dict[str, bool]:
    return {each.question_id: each.is_right for each in stored.answers}


async def test_answers_are_graded_and_kept_with_the_quiz() -> None:
    quizzes = answering()
    assert right(await quizzes.grade(THREAD, QUIZ_ID, {"q1": "A"})) == {"q1": False}
    assert right(await quizzes.grade(THREAD, QUIZ_ID, {"q1": "b", "q2": "The World Exhibition"})) == {
        "q1": True,
        "q2": True,
    }
    stored = await quizzes.get(THREAD, QUIZ_ID)
    first, _ = states_of(stored)
    assert first.answer is not None
    assert first.answer.given == "b"
    assert [each.text[each.quote_start : each.quote_end] for each in first.citations] == [BUILT]


@pytest.mark.parametrize(
    ("says", "is_right", "by"), [(True, True, "model"), (False, False, "model"), ("?", False, "spelling")]
)
async def test_model_grades_a_short_answer_in_other_words(says: Any, is_right: bool, by: str) -> None:
    model = FakeModel([json.dumps({"is_right": says})])
    (answer,) = (await answering(model).grade(THREAD, QUIZ_ID, {"q2": "a fair of all nations"})).answers
    assert (answer.is_right, answer.graded_by) == (is_right, by)
    assert "a fair of all nations" in model.prompts[0][-1].content
    assert model.requests[0].schema is not None


async def test_model_is_not_asked_where_rules_are_sure_and_its_failure_is_no_error() -> None:
    model = FakeModel([], Unavailable("the model is down"))
    stored = await answering(model).grade(THREAD, QUIZ_ID, {"q1": "1889", "q2": "a fair"})
    assert right(stored) == {"q1": True, "q2": False}
    assert len(model.requests) == 1


@pytest.mark.parametrize("given", [{}, {"q9": "x"}, {f"q{number}": "x" for number in range(101)}])
async def test_answers_that_fit_no_question_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        await answering().grade(THREAD, QUIZ_ID, given)


async def test_quiz_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        await answering().get(THREAD, "b" * 32)
