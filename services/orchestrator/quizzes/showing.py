"""A quiz as an artefact: its body, what each question cites, and its outline."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.orchestrator.artefacts.citing import Citing
from services.orchestrator.log.events import Artefact, Evidence
from services.orchestrator.quizzes.questions import Difficulty, QuestionKind, QuizQuestion

QUIZ = "quiz"
"""Kind of the artefact, and its id: a run makes one."""
_LETTERS = "ABCDEFGH"
_NUMBER = re.compile(r"^\d{1,3}\. ")
_TEXT: Mapping[str, Any] = {"type": "string"}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "id": _TEXT,
                    "kind": {"enum": [each.value for each in QuestionKind]},
                    "difficulty": {"enum": [each.value for each in Difficulty]},
                    "question": _TEXT,
                    "options": {"type": "array", "items": _TEXT},
                    "answer": _TEXT,
                    "explanation": _TEXT,
                },
                "required": ["id", "kind", "difficulty", "question", "options", "answer", "explanation"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


def quiz_artefact(questions: Sequence[QuizQuestion], evidence: Sequence[Evidence], title: str) -> Artefact:
    """The quiz: each question cites the words that prove its answer."""
    by_number = {each.number: each for each in evidence}
    citing = Citing()
    for index, question in enumerate(questions):
        source = by_number[question.source]
        start = max(source.text.find(question.quote), 0)
        citing.cite(f"/questions/{index}", source, start, start + len(question.quote))
    body = {"questions": [_as_json(question, number) for number, question in enumerate(questions, start=1)]}
    return Artefact(QUIZ, QUIZ, title, body, citing.items, citing.citations, "\n".join(_outline(questions)))


def quiz_text(questions: Sequence[QuizQuestion]) -> str:
    """The questions alone, a line each: what stands in the thread."""
    return "\n".join(f"{number}. {question.text}" for number, question in enumerate(questions, start=1))


def questions_in(text: str) -> list[str]:
    """The questions of a text that `quiz_text` made."""
    return [_NUMBER.sub("", line) for line in text.splitlines() if _NUMBER.match(line)]


def _as_json(question: QuizQuestion, number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "kind": question.kind.value,
        "difficulty": question.difficulty.value,
        "question": question.text,
        "options": list(question.options),
        "answer": question.answer,
        "explanation": question.statement,
    }


def _outline(questions: Sequence[QuizQuestion]) -> Iterable[str]:
    """Questions and options, without the answers."""
    for number, question in enumerate(questions, start=1):
        yield f"{number}. {question.text}"
        if question.kind is QuestionKind.TRUE_FALSE:
            yield "   true or false?"
        yield from (f"   {letter}) {option}" for letter, option in zip(_LETTERS, question.options, strict=False))
