"""How a research run ends: with an answer, with something left open, with a conflict, with a gap, or with a refusal; and what its
text says of that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from services.orchestrator.answering.draft import MODEL, Draft
from services.orchestrator.log.events import AnswerStatus, Citation, Coverage, Evidence, PartState, SupportStatus
from services.orchestrator.research.coverage import ENOUGH, PARTLY
from services.orchestrator.research.models import PartKind
from services.orchestrator.research.phrases import listed, phrases_for

LEAST_COVERED = 0.5
"""Below it a draft that its passages do not carry either is no answer (the seed's threshold)."""
_WEAK = (SupportStatus.INSUFFICIENT, SupportStatus.PARTIAL)


class AnswerEnding(Enum):
    """How a research run ended."""

    ANSWER = "answer"
    CAVEAT = "caveat"
    CONFLICT = "conflict"
    GAP = "gap"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Searched:
    """What the rounds came to."""

    coverage: Coverage
    evidence: Sequence[Evidence]
    searches: int
    spent_budget: str = ""
    """The budget that ended the search; empty where none did."""


def ending_of(draft: Draft, searched: Searched) -> AnswerEnding:
    """The ending of a run with this draft."""
    states = {part.state for part in searched.coverage.parts}
    if draft.conflicts:
        return AnswerEnding.CONFLICT
    is_weak = draft.support_status in _WEAK and searched.coverage.share < LEAST_COVERED
    if draft.is_refusal or is_weak:
        return AnswerEnding.REFUSAL
    if PartState.MISSING in states and not searched.spent_budget:
        return AnswerEnding.GAP
    return AnswerEnding.CAVEAT if searched.spent_budget or searched.coverage.share < ENOUGH else AnswerEnding.ANSWER


def reconciled(coverage: Coverage, draft: Draft) -> Coverage:
    """The coverage with what the draft knows of it. What is asked is conflicting where sources disagree.

    What its words alone would call missing is partly there where the answer likely answers, or all its claims are carried: words do
    not see that "an American singer" tells a nationality.
    """
    if draft.conflicts:
        parts = [
            replace(part, state=PartState.CONFLICTING)
            if part.kind == PartKind.ASKED.value and part.state is not PartState.MISSING
            else part
            for part in coverage.parts
        ]
        return replace(coverage, parts=tuple(parts))
    if draft.answer_status is not AnswerStatus.LIKELY and (
        draft.method != MODEL or draft.support_status is not SupportStatus.SUPPORTED
    ):
        return coverage
    parts = [
        replace(part, state=PartState.PARTLY, score=max(part.score, PARTLY))
        if part.state is PartState.MISSING and part.kind == PartKind.ASKED.value
        else part
        for part in coverage.parts
    ]
    share = round(sum(part.score for part in parts) / len(parts), 3) if parts else coverage.share
    return replace(coverage, parts=tuple(parts), share=share)


def by_citation(coverage: Coverage, citations: Sequence[Citation], evidence: Sequence[Evidence]) -> Coverage:
    """The coverage with numbers of citations instead of passages; a passage that is not cited is left out."""
    chunks = {each.number: each.chunk_id for each in evidence}
    numbers: dict[str, list[int]] = {}
    for citation in citations:
        numbers.setdefault(citation.chunk_id, []).append(citation.number)
    parts = [
        replace(part, evidence=tuple(n for each in part.evidence for n in numbers.get(chunks.get(each, ""), ())))
        for part in coverage.parts
    ]
    return replace(coverage, parts=tuple(parts))


def with_note(draft: Draft, ending: AnswerEnding, searched: Searched, question: str) -> Draft:
    """The draft with a sentence behind it that says what was left open and why; an answer and a refusal have none."""
    note = "" if ending is AnswerEnding.REFUSAL else _note(ending, searched, question)
    return replace(draft, text=f"{draft.text}\n\n{note}") if note else draft


def _note(ending: AnswerEnding, searched: Searched, question: str) -> str:
    phrases = phrases_for(question)
    open_parts = _parts(searched, PartState.MISSING, PartState.PARTLY)
    if searched.spent_budget:
        wanted = phrases.left_out if open_parts else phrases.not_all
        budget = phrases.budgets.get(searched.spent_budget, searched.spent_budget)
        return wanted.format(budget=budget, parts=listed(open_parts))
    if ending is AnswerEnding.GAP:
        documents = list(dict.fromkeys(each.document_name for each in searched.evidence))
        return phrases.missing.format(
            parts=listed(_parts(searched, PartState.MISSING)), searches=searched.searches, documents=listed(documents)
        )
    return ""


def _parts(searched: Searched, *states: PartState) -> list[str]:
    return [part.text for part in searched.coverage.parts if part.state in states]
