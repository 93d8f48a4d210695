"""Questions are proved by their passages, have one right option, and are not asked twice; with a model and without."""

import pytest

from services.orchestrator.quizzes.checking import checked_questions
from services.orchestrator.quizzes.making import make_questions
from services.orchestrator.quizzes.questions import BLANK, Difficulty, QuestionKind, QuizQuestion
from services.orchestrator.quizzes.wishes import Wishes, read_wishes
from tests.unit.orchestrator.artefacts.passages import BUILDINGS, ROWS, TOWER, passage

CHOICE, TRUTH, SHORT = QuestionKind.MULTIPLE_CHOICE, QuestionKind.TRUE_FALSE, QuestionKind.SHORT_ANSWER


def made(count: int, *kinds: QuestionKind, earlier: tuple[str, ...] = ()) -> list[QuizQuestion]:
    return make_questions(BUILDINGS, Wishes(count, kinds), earlier)


def test_choice_has_the_words_of_a_passage_as_proof_and_wrong_options_from_others() -> None:
    questions = made(4, CHOICE)
    assert len(questions) == 4
    for question in questions:
        source = BUILDINGS[question.source - 1]
        assert question.quote in source.text
        assert question.text.replace(BLANK, question.answer) == question.quote
        assert question.options.count(question.answer) == 1
        assert len(question.options) == 4
        wrong = [option for option in question.options if option != question.answer]
        assert all(any(option in each.text for each in BUILDINGS) for option in wrong)
        assert not any(option in question.quote for option in wrong)


def test_option_that_another_passage_carries_is_no_wrong_one() -> None:
    said_again = passage(5, "The tower was built in 1936 by Gustave Eiffel for the world exhibition in Paris.")
    questions = make_questions((*BUILDINGS, said_again), Wishes(10, (CHOICE,)))
    about_the_year = [question for question in questions if question.text.startswith(f"The tower was built in {BLANK}")]
    assert about_the_year
    assert all(not {"1889", "1936"} <= set(question.options) for question in about_the_year)


def test_statements_are_true_as_they_stand_or_false_by_another_value() -> None:
    questions = made(6, TRUTH)
    assert {question.answer for question in questions} == {"true", "false"}
    for question in questions:
        assert (question.text == question.quote) is (question.answer == "true")


def test_cell_of_a_table_is_asked_for_by_its_row_and_column() -> None:
    rows = passage(
        1, f"{ROWS}\nRegion: East; Revenue 2022: 77; Revenue 2023: 80\nRegion: West; Revenue 2022: 9; Revenue 2023: 8"
    )
    (question, *_) = make_questions([rows], Wishes(2, (CHOICE,)))
    assert (question.text, question.answer) == (f"Region: North; Revenue 2022: {BLANK}", "512")
    assert set(question.options) == {"512", "208", "77", "9"}


def test_one_more_does_not_repeat() -> None:
    first = made(4, CHOICE)
    more = made(4, CHOICE, earlier=tuple(question.text for question in first))
    assert more
    assert not {question.text for question in more} & {question.text for question in first}


def written(**changes: object) -> dict[str, object]:
    return {
        "questions": [
            {
                "kind": "multiple_choice",
                "question": "When was the tower built?",
                "options": ["1889", "1932", "1936", "1914"],
                "answer": "1889",
                "quote": "The tower was built in 1889 by Gustave Eiffel",
                "source": 1,
                "explanation": "The tower was built in 1889 by Gustave Eiffel. [1]",
            }
            | changes
        ]
    }


def kept(**changes: object) -> list[QuizQuestion]:
    return checked_questions(written(**changes), BUILDINGS, Difficulty.HARD)


def test_question_of_a_model_gets_the_whole_sentence_as_proof() -> None:
    (question,) = kept()
    assert question.quote == TOWER.partition(" The tower has")[0]
    assert (question.source, question.answer, question.difficulty) == (1, "1889", Difficulty.HARD)
    assert sorted(question.options) == ["1889", "1914", "1932", "1936"]


def test_proof_is_found_although_the_model_names_another_passage() -> None:
    (question,) = kept(source=3)
    assert question.source == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"quote": "The tower is painted every seven years"},
        {"answer": "1890"},
        {"answer": "1932"},
        {"options": ["1889", "1889"]},
        {"question": " "},
        {"kind": "true_false", "question": "The tower was built in 1936 by Gustave Eiffel.", "answer": "true"},
        {"kind": "true_false", "question": "The tower was built in 1889 by Gustave Eiffel.", "answer": "false"},
        {"kind": "short_answer", "answer": "a German"},
    ],
)
def test_question_of_a_model_that_does_not_hold_is_dropped(changes: dict[str, object]) -> None:
    assert kept(**changes) == []


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        (
            {"kind": "true_false", "question": "The tower was built in 1936 by Gustave Eiffel.", "answer": "False"},
            "false",
        ),
        (
            {"kind": "true_false", "question": "The tower was not built in 1889 by Gustave Eiffel.", "answer": "no"},
            "false",
        ),
        ({"kind": "short_answer", "question": "Who built the tower?", "answer": "Gustave Eiffel"}, "Gustave Eiffel"),
        ({"answer": "A"}, "1889"),
    ],
)
def test_question_of_a_model_that_holds_is_kept(changes: dict[str, object], answer: str) -> None:
    (question,) = kept(**changes)
    assert question.answer == answer


def test_option_of_a_model_that_is_right_too_is_taken_out() -> None:
    (question,) = kept(
        question="What has a height of more than 200 metres?",
        answer="The tower",
        options=["The tower", "The great dam", "The long canal", "The harbour"],
        quote="The tower has a height of 324 metres",
    )
    assert sorted(question.options) == ["The harbour", "The long canal", "The tower"]


@pytest.mark.parametrize(
    ("message", "count", "kinds", "difficulty", "topic", "is_more"),
    [
        ("Make a quiz", 5, 4, "medium", "", False),
        ("Make a quiz with 10 hard true/false questions about ducks", 10, 1, "hard", "ducks", False),
        ("five questions on this document please", 5, 4, "medium", "", False),
        (
            "Ask me 7 multiple choice questions about the feeding of mallards",
            7,
            1,
            "medium",
            "the feeding of mallards",
            False,
        ),
        ("one more", 1, 4, "medium", "", True),
        ("3 more", 3, 4, "medium", "", True),
        ("Give me another quiz", 5, 4, "medium", "", True),
        ("Erstelle 3 leichte Fragen zum Turmbau", 3, 4, "easy", "Turmbau", False),
        ("Fais-moi un quiz vrai ou faux sur la tour", 5, 1, "medium", "la tour", False),
        ("Give me 500 questions", 30, 4, "medium", "", False),
    ],
)
def test_message_says_what_it_wants(
    message: str, count: int, kinds: int, difficulty: str, topic: str, is_more: bool
) -> None:
    wishes = read_wishes(message)
    assert (wishes.count, len(wishes.kinds), wishes.difficulty.value, wishes.topic, wishes.is_more) == (
        count,
        kinds,
        difficulty,
        topic,
        is_more,
    )
