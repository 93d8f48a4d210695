"""Checks the questions that a model has written: each must be proved by a passage, and have one right option and no other."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kit.grounding import coverage
from kit.language.cues import is_negated
from kit.language.sentences import split_units
from services.orchestrator.answering.citations import without_marks
from services.orchestrator.log.events import Evidence
from services.orchestrator.quizzes.distractors import Sentences, stems_of
from services.orchestrator.quizzes.grading import chosen_option, truth
from services.orchestrator.quizzes.making import LEAST_WRONG_OPTIONS, key_of, shuffled
from services.orchestrator.quizzes.questions import TRUE, Difficulty, QuestionKind, QuizQuestion, as_kind

_LEAST_CARRIED = 0.6
"""Share of the content words of a statement that its proof must have; see kit/grounding.py."""


def schema_of(count: int, kinds: Sequence[QuestionKind]) -> Mapping[str, Any]:
    """What a model fills in."""
    text = {"type": "string"}
    question = {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": sorted({each.value for each in kinds})},
            "question": text,
            "options": {"type": "array", "items": text, "maxItems": 4},
            "answer": text,
            "quote": text,
            "source": {"type": "integer", "minimum": 1},
            "explanation": text,
        },
        "required": ["kind", "question", "options", "answer", "quote", "source", "explanation"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"questions": {"type": "array", "items": question, "minItems": 1, "maxItems": count}},
        "required": ["questions"],
        "additionalProperties": False,
    }


def checked_questions(
    filled: Mapping[str, Any], evidence: Sequence[Evidence], difficulty: Difficulty, earlier: Collection[str] = ()
) -> list[QuizQuestion]:
    """The questions that hold: proved by the words of a passage, with one right option, and not asked before."""
    sentences = Sentences(evidence)
    asked = {key_of(each) for each in earlier}
    kept: list[QuizQuestion] = []
    for written in filled.get("questions", ()):
        question = _checked(written, evidence, sentences)
        if question is not None and not {key_of(question.text), key_of(question.quote)} & asked:
            asked |= {key_of(question.text), key_of(question.quote)}
            kept.append(replace(question, difficulty=difficulty))
    return kept


def _checked(written: Mapping[str, Any], evidence: Sequence[Evidence], sentences: Sentences) -> QuizQuestion | None:
    kind, text, answer = as_kind(written["kind"]), written["question"].strip(), written["answer"].strip()
    proof = find_proof(without_marks(written["quote"]), int(written["source"]), evidence)
    if proof is None or not text or not answer or kind is None:
        return None
    source, quote = proof
    explanation = without_marks(written["explanation"]).strip()
    carried = coverage(explanation, [quote, source.text]) >= _LEAST_CARRIED
    question = QuizQuestion(kind, text, answer, source.number, quote, explanation=explanation if carried else "")
    if kind is QuestionKind.TRUE_FALSE:
        return _checked_statement(question, source)
    if kind is QuestionKind.MULTIPLE_CHOICE:
        return _checked_options(question, written["options"], sentences)
    return question if coverage(answer, [quote]) >= _LEAST_CARRIED else None


def find_proof(quote: str, number: int, evidence: Sequence[Evidence]) -> tuple[Evidence, str] | None:
    """The passage and its words, exactly, that a quote stands for: in the passage of this number, else in any other. None where
    no passage has such words."""
    ranked = sorted(evidence, key=lambda each: each.number != number)
    for passage in ranked:
        for unit in split_units(passage.text):
            if " ".join(quote.split()).casefold() in " ".join(unit.text.split()).casefold() and len(quote) > 1:
                return passage, unit.text
    best = max(
        (
            (coverage(quote, [unit.text]), passage, unit.text)
            for passage in ranked[:1]
            for unit in split_units(passage.text)
        ),
        key=lambda each: each[0],
        default=None,
    )
    return (best[1], best[2]) if best and best[0] >= _LEAST_CARRIED else None


def _checked_statement(question: QuizQuestion, source: Evidence) -> QuizQuestion | None:
    """The question where its statement is carried and called true, or is not carried and called false."""
    answer = truth(question.answer)
    is_carried = coverage(question.text, [question.quote]) >= _LEAST_CARRIED
    is_denied = is_negated(question.text) != is_negated(question.quote)
    holds = is_carried and not is_denied
    if not answer or (answer == TRUE) != holds:
        return None
    if answer != TRUE and not is_denied and coverage(question.text, [source.text]) >= _LEAST_CARRIED:
        return None
    return replace(question, answer=answer, options=())


def _checked_options(question: QuizQuestion, written: Sequence[str], sentences: Sentences) -> QuizQuestion | None:
    """The question with those wrong options that no sentence carries; None where too few are left, or none is the right one."""
    options = list(dict.fromkeys(each.strip() for each in written if each.strip()))
    right = chosen_option(replace(question, options=options), question.answer) or question.answer
    if coverage(right, [question.quote]) < _LEAST_CARRIED:
        return None
    own = stems_of(right)
    wrong = [
        each
        for each in options
        if each != right and stems_of(each) != own and not sentences.may_carry(f"{question.text} {each}", each)
    ]
    if len(wrong) < LEAST_WRONG_OPTIONS:
        return None
    return replace(question, answer=right, options=shuffled([right, *wrong[:3]], question.text))
