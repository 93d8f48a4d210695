"""Sub-investigations: what a first round has left open is looked into side by side, each part of the question with its share of the
searches that are left."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.orchestrator.log.events import Coverage, Evidence, PartState
from services.orchestrator.research.models import QuestionPart
from services.orchestrator.research.search.rounds import EffortLimits

MOST = 3
"""Investigations side by side."""
_LEAST = 2
"""A single one is the run itself."""


@dataclass(frozen=True)
class Investigation:
    """One line of searching. The run itself is one, of the whole question."""

    parts: Sequence[QuestionPart]
    limits: EffortLimits
    """Of rounds and searches, with those that were made before it began."""
    key: str = ""
    """What its steps begin with."""
    title: str = ""
    """The part of the question that it looks at."""
    rewords: bool = True
    """Whether it tries other wordings of the question: one of several does."""


def share_out(
    parts: Sequence[QuestionPart], coverage: Coverage, limits: EffortLimits, searches: int
) -> list[Investigation]:
    """An investigation for each subject that lacks something, at most three, each with an equal share of the searches that
    are left; none where a single line of searching does as well. `searches` were made before."""
    lacking: dict[str, list[QuestionPart]] = {}
    for part, row in zip(parts, coverage.parts, strict=False):
        if row.state in (PartState.MISSING, PartState.PARTLY):
            lacking.setdefault(part.subject.text if part.subject else part.text, []).append(part)
    most = min(MOST, len(lacking), limits.searches - searches)
    if most < _LEAST:
        return []
    share = (limits.searches - searches) // most
    own = replace(limits, searches=searches + share)
    titles = list(lacking)[:most]
    return [
        Investigation(
            [part for part in parts if (part.subject.text if part.subject else part.text) == title],
            own,
            f"sub{number}/",
            title,
            rewords=number == 1,
        )
        for number, title in enumerate(titles, start=1)
    ]


def unnumbered(evidence: Sequence[Evidence], known: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The passages of an investigation as they are shown: one that the run has not numbered yet has no number."""
    numbers = {each.chunk_id: each.number for each in known}
    return tuple(replace(each, number=numbers.get(each.chunk_id, 0)) for each in evidence)


def without_numbers(coverage: Coverage, known: Sequence[Evidence]) -> Coverage:
    """The coverage of an investigation, whose parts name only passages that the run has numbered."""
    numbers = {each.number for each in known}
    parts = tuple(
        replace(part, evidence=tuple(each for each in part.evidence if each in numbers)) for part in coverage.parts
    )
    return replace(coverage, parts=parts)
