"""How much work a question is worth, where the request leaves it open: a question that one search answers gets one round, one that
puts several things together gets more."""

from dataclasses import dataclass

from kit.language.questions import AnswerKind, read_question
from kit.queries.planning import clauses
from services.orchestrator.research.models import Effort, PartKind
from services.orchestrator.research.question.parts import split_question
from services.orchestrator.research.question.relations import roles_in

_SEVERAL = 2
_OF_CLAIMS = (AnswerKind.FACT, AnswerKind.KEYWORDS)
"""What a statement is read as: it has no word of a question."""


@dataclass(frozen=True)
class ChosenEffort:
    """The effort of a run, and why."""

    effort: Effort
    reason: str


def takes_steps(question: str) -> bool:
    """Whether a question puts several things together, by its shape alone. A claim that is looked up does not: its names stand in
    one passage."""
    is_claim = question.rstrip().endswith(".") and read_question(question).kind in _OF_CLAIMS
    return not is_claim and choose_effort(question).effort is not Effort.LOW


def choose_effort(question: str, asked: Effort = Effort.AUTO) -> ChosenEffort:
    """By the question's shape alone; what a request asks for wins."""
    if asked is not Effort.AUTO:
        return ChosenEffort(asked, "asked for")
    if len(clauses(question)) >= _SEVERAL:
        return ChosenEffort(Effort.MEDIUM, "several questions in one")
    parts = split_question(question)
    subjects = [part for part in parts if part.kind is PartKind.SUBJECT]
    if len(subjects) >= _SEVERAL:
        return ChosenEffort(Effort.MEDIUM, "several names, and each is to be looked at")
    if subjects and roles_in(question) and any(part.kind is PartKind.ASKED for part in parts):
        return ChosenEffort(Effort.MEDIUM, "asks something of somebody who is only described")
    return ChosenEffort(Effort.LOW, "one search may answer it")
