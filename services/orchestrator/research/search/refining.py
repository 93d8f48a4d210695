"""What is searched for in a further round, from what the rounds before have found and what they lack."""

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest

from kit.queries.rewriting import wordings
from kit.queries.shape import DENSE, LEXICAL
from services.orchestrator.log.events import Coverage, Evidence, PartState
from services.orchestrator.research.coverage import EvidenceView
from services.orchestrator.research.models import PartKind, PlannedSearch, Purpose, QuestionPart
from services.orchestrator.research.planning import different
from services.orchestrator.research.search.hops import Hop

_MOST_WORDINGS = 2


def refine_by_rules(
    question: str,
    parts: Sequence[QuestionPart],
    coverage: Coverage,
    evidence: Sequence[Evidence],
    before: Sequence[PlannedSearch],
    *,
    rewords: bool = True,
) -> list[PlannedSearch]:
    """Searches for what is missing, the most promising first: names that found passages mention and the question does not, then
    parts that nothing was found of by their words alone, then other wordings. None that was made before."""
    lacking = [
        part
        for part, row in zip(parts, coverage.parts, strict=False)
        if row.state in (PartState.MISSING, PartState.PARTLY)
    ]
    # A name is written as passages write it: its words find it, without a vector of it and without reranking.
    named = (PlannedSearch(hop.name, Purpose.NAME, LEXICAL) for hop in _hops(question, parts, lacking, evidence))
    missing = (
        PlannedSearch(part.subject.text, Purpose.SUBJECT, LEXICAL)
        for part in lacking
        if part.kind is PartKind.SUBJECT and part.subject is not None
    )
    reworded = [PlannedSearch(each, Purpose.REWRITE) for each in wordings(question)[:_MOST_WORDINGS]]
    other_route = PlannedSearch(question, Purpose.REWRITE, DENSE)
    return different([*named, *missing, *([*reworded, other_route] if rewords else [])], before)


def _hops(
    question: str, parts: Sequence[QuestionPart], lacking: Sequence[QuestionPart], evidence: Sequence[Evidence]
) -> Iterator[Hop]:
    """The names, one of each subject in turn."""
    subjects = list({part.subject.text: part.subject for part in parts if part.subject is not None}.values())
    view = EvidenceView(question, subjects, evidence)
    wanted = [each for each in subjects if any(part.subject == each for part in lacking)]
    per_subject = [view.hops_of(each) for each in wanted] or [view.hops_of(None)]
    found: dict[str, Hop] = {}
    for hop in chain.from_iterable(zip_longest(*per_subject)):
        if hop is not None:
            found.setdefault(hop.name, hop)
    yield from found.values()
