"""A report: the answer in short, and a section for each part of the question, each drafted and checked by itself. Citation numbers
count over the whole report, and a passage span has one number in all sections."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kit.queries.planning import clauses
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL, Draft
from services.orchestrator.log.events import (
    Citation,
    Conflict,
    Coverage,
    Evidence,
    SentenceVerdict,
    SupportStatus,
    Verification,
)
from services.orchestrator.research.models import Purpose
from services.orchestrator.research.question.parts import find_subjects
from services.orchestrator.research.question.second_steps import second_steps
from services.orchestrator.research.steps import Task
from services.orchestrator.verification.verdicts import least_certain

MOST_SECTIONS = 6
_MARK = re.compile(r"\[(\d{1,9})\]")
_Span = tuple[str, int, int]


@dataclass(frozen=True)
class Section:
    """One part of a report."""

    title: str
    question: str
    passages: Sequence[int] = ()
    """Numbers of the passages that it is answered from; none stands for all."""


def second_sections(task: Task, coverage: Coverage, evidence: Sequence[Evidence], draft: Draft) -> list[Section]:
    """The second steps of the question whose passages the draft does not cite, each to be answered from its passage."""
    cited = {each.chunk_id for each in draft.citations}
    steps = second_steps(task.asked, task.parts, coverage, evidence)
    return [
        Section(each.question, each.question, (each.passage.number,))
        for each in steps
        if each.passage.chunk_id not in cited
    ][:MOST_SECTIONS]


def outline(task: Task, question: str) -> list[Section]:
    """The sections of a report: each question in it, else each of its names, and each query of a model's plan."""
    parts = clauses(question) or [each.text for each in find_subjects(question)]
    if task.plan.planned_by == "model":
        parts = [*parts, *(each.text for each in task.plan.searches if each.purpose is Purpose.PART)]
    titles = [each for each in dict.fromkeys(parts) if each != question]
    return [Section(each.rstrip(" ?"), each) for each in titles][:MOST_SECTIONS]


def several(question: str) -> list[Section]:
    """The questions of a text that asks several."""
    return [Section(each.rstrip(" ?"), each) for each in clauses(question)][:MOST_SECTIONS]


class Report:
    """A report as it grows: drafts are added in order. Without headings it is one answer of several paragraphs."""

    def __init__(self, title: str, first: Draft, *, with_headings: bool = True) -> None:
        """`first` answers the question as a whole, or refuses to."""
        self.text = ""
        self._title = title
        self._with_headings = with_headings
        self._first = first
        self._numbers: dict[_Span, int] = {}
        self._citations: list[Citation] = []
        self._sentences: list[SentenceVerdict] = []
        self._conflicts: list[Conflict] = []
        self._drafts: list[Draft] = []
        self.add(None, first)

    def before(self, section: Section | None) -> str:
        """What stands above the text of the next section."""
        if not self._with_headings:
            return f"{self.text}\n\n" if self.text else ""
        above = self.text or f"# {self._title}"
        return f"{above}\n\n" if section is None else f"{above}\n\n## {section.title}\n\n"

    def add(self, section: Section | None, draft: Draft) -> None:
        """Adds what a section says. One that refuses is left out: the coverage says what is missing."""
        if draft.is_refusal and not draft.conflicts:
            return
        numbers = {each.number: self._number(each) for each in draft.citations}
        before = self.before(section)
        self.text = before + _MARK.sub(lambda mark: f"[{numbers.get(int(mark[1]), int(mark[1]))}]", draft.text)
        for each in draft.verification.sentences if draft.verification is not None else ():
            marks = tuple(numbers.get(number, number) for number in each.citations)
            start, end = each.start + len(before), each.end + len(before)
            self._sentences.append(replace(each, citations=marks, start=start, end=end))
        for conflict in draft.conflicts:
            sides = [replace(side, citation=numbers.get(side.citation, side.citation)) for side in conflict.sides]
            self._conflicts.append(replace(conflict, sides=tuple(sides)))
        self._drafts.append(draft)

    def _number(self, citation: Citation) -> int:
        span = (citation.chunk_id, citation.quote_start, citation.quote_end)
        if span not in self._numbers:
            self._numbers[span] = len(self._numbers) + 1
            self._citations.append(replace(citation, number=self._numbers[span]))
        return self._numbers[span]

    def draft(self) -> Draft:
        """The report as one draft: as well carried as its worst section, and as sure as its first."""
        if not self._drafts:
            return self._first
        checked = [each.verification for each in self._drafts if each.verification is not None]
        return replace(
            self._drafts[0],
            text=self.text,
            method=MODEL if any(each.method == MODEL for each in self._drafts) else EXTRACTIVE,
            citations=tuple(self._citations),
            verification=self._verification(checked) if checked else None,
            support_status=_worst(self._drafts),
            closest=(),
            conflicts=tuple(self._conflicts),
        )

    def _verification(self, checked: Sequence[Verification]) -> Verification:
        """Of all sections; shares are weighted by their sentences."""
        total = sum(len(each.sentences) for each in checked) or 1
        return replace(
            checked[0],
            sentences=tuple(self._sentences),
            citation_precision=sum(each.citation_precision * len(each.sentences) for each in checked) / total,
            citation_coverage=sum(each.citation_coverage * len(each.sentences) for each in checked) / total,
            citation_recall=sum(each.citation_recall * len(each.sentences) for each in checked) / total,
            checked_by=least_certain(self._sentences) or checked[0].checked_by,
            support_status=_worst(self._drafts),
            removed=sum(each.removed for each in checked),
        )


_ORDER = (
    SupportStatus.UNAVAILABLE,
    SupportStatus.INSUFFICIENT,
    SupportStatus.PARTIAL,
    SupportStatus.SIMILAR_WORDING,
    SupportStatus.SUPPORTED,
)


def _worst(drafts: Sequence[Draft]) -> SupportStatus | None:
    known = [each.support_status for each in drafts if each.support_status in _ORDER]
    return min(known, key=_ORDER.index, default=None)
