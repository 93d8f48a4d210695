"""Says in an answer that its sources disagree: each value with its citation and its date, newest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.orchestrator.answering.quotes import Quote, citation
from services.orchestrator.conflicts.dates import date_of
from services.orchestrator.conflicts.disagreement import Disagreement, Value
from services.orchestrator.log.events import Citation, Conflict, ConflictSide, Evidence

MOST_CONFLICTS = 2
"""More in one answer would bury it."""
_MOST_SIDES = 4


@dataclass(frozen=True)
class Said:
    """An answer that tells of conflicts."""

    text: str
    citations: tuple[Citation, ...]
    conflicts: tuple[Conflict, ...]


def say_conflicts(
    text: str,
    citations: Sequence[Citation],
    disagreements: Sequence[Disagreement],
    evidence: Sequence[Evidence],
    phrase: str,
) -> Said:
    """The answer with a sentence for each disagreement behind it, which begins with `phrase`. What is cited keeps its number."""
    by_number = {source.number: source for source in evidence}
    known = list(citations)
    conflicts = []
    for found in disagreements[:MOST_CONFLICTS]:
        conflict = _conflict(found, by_number, known)
        conflicts.append(conflict)
        text = f"{text}\n\n{_sentence(conflict, phrase)}".lstrip()
    return Said(text, tuple(known), tuple(conflicts))


def _conflict(found: Disagreement, evidence: Mapping[int, Evidence], known: list[Citation]) -> Conflict:
    """The conflict, newest side first. Citations that it needs are added to `known`."""
    dated = [(date_of(evidence[value.source]), value) for value in found.values]
    newest_first = sorted(
        dated, key=lambda each: each[0], reverse=True
    )  # stable: sources without a date keep their rank
    sides = tuple(_side(value, date, evidence[value.source], known) for date, value in newest_first[:_MOST_SIDES])
    return Conflict(found.what, sides, found.found_by)


def _side(value: Value, date: str, source: Evidence, known: list[Citation]) -> ConflictSide:
    cited = next((each for each in known if _holds(each, source, value)), None)
    if cited is None:
        cited = citation(source, Quote(source.number, value.unit_start, value.unit_end), len(known) + 1)
        known.append(cited)
    return ConflictSide(
        value.text, cited.number, value.start, value.end, date, source.document_id, source.document_name
    )


def _holds(cited: Citation, source: Evidence, value: Value) -> bool:
    if cited.chunk_id != source.chunk_id:
        return False
    return cited.quote_start == cited.quote_end or (cited.quote_start <= value.start and value.end <= cited.quote_end)


def _sentence(conflict: Conflict, phrase: str) -> str:
    sides = "; ".join(
        f"{side.value}{f' ({side.date})' if side.date else ''} [{side.citation}]" for side in conflict.sides
    )
    return f"{phrase}: {sides}."
