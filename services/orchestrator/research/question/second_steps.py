"""The second step of a question as a question of its own.

"Where was the director of The Circus Cyclone born?" asks where a person was born, once a passage names the director."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kit.language.terms import stem
from kit.queries.planning import clauses
from services.orchestrator.log.events import Coverage, Evidence, PartState
from services.orchestrator.research.models import PartKind, QuestionPart
from services.orchestrator.research.question.names import Name
from services.orchestrator.research.question.parts import find_subjects
from services.orchestrator.research.question.relations import roles_in

_ARTICLE = re.compile(r"\b(?:the|der|die|das|des|dem|den)\s+$", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^)]*\)$")
"""What tells two of the same name apart in a title: "Edda Lindqvist (director)"."""


@dataclass(frozen=True)
class SecondStep:
    """What is asked of whom a passage tells about."""

    question: str
    passage: Evidence


def second_steps(
    question: str, parts: Sequence[QuestionPart], coverage: Coverage, evidence: Sequence[Evidence]
) -> Iterator[SecondStep]:
    """One for each part that is asked of somebody who is only described, as far as the coverage has a passage about them."""
    passages = {each.number: each for each in evidence}
    for part, row in zip(parts, coverage.parts, strict=False):
        passage = passages.get(row.evidence[0]) if row.evidence else None
        is_second = part.kind is PartKind.ASKED and part.is_of_relation and part.subject is not None
        if not is_second or passage is None or row.state is PartState.MISSING:
            continue
        for clause in clauses(question) or [question]:
            for subject in find_subjects(clause):
                if subject.text == part.subject.text and (asked := named(clause, subject, _name_of(passage))):  # type: ignore[union-attr] # is_second
                    yield SecondStep(asked, passage)


def named(clause: str, subject: Name, name: str) -> str:
    """The question with the name instead of the words that describe whom it asks about; empty where it describes nobody."""
    roles = roles_in(clause)
    places = [match.span() for match in re.finditer(r"\w+(?:-\w+)*", clause) if stem(match[0].lower()) in roles]
    if not places:
        return ""
    start, end = min(places[0][0], subject.start), max(places[-1][1], subject.end)
    article = _ARTICLE.search(clause[:start])
    return clause[: article.start() if article else start] + name + clause[end:]


def _name_of(passage: Evidence) -> str:
    title = passage.heading_path[-1] if passage.heading_path else passage.document_name.rpartition(".")[0]
    return _ASIDE.sub("", title)
