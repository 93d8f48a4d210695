"""One research run: effort → plan → rounds of searching and measuring → draft, checked → answer. It reads as a plain program; each
step is recorded once, so that a run that is cut off goes on where it was."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kit.errors import GroundworkError
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL, Draft
from services.orchestrator.answering.drafting import Question
from services.orchestrator.answering.refusals import SEARCH_DOWN
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import (
    Answer,
    Degradation,
    Evidence,
    Payload,
    Retrieval,
    SupportStatus,
    Thinking,
)
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import ResearchOptions, RunRecord
from services.orchestrator.modes.drafts import answer_of, checked, write_draft
from services.orchestrator.research.amounts import find_different_amounts
from services.orchestrator.research.disagreements import Compared, compare_by_model, describe_compared
from services.orchestrator.research.endings import AnswerEnding, by_citation, ending_of, reconciled, with_note
from services.orchestrator.research.event_payloads import degradations
from services.orchestrator.research.models import REPORT, Effort
from services.orchestrator.research.report import Report, Section, outline, second_sections, several
from services.orchestrator.research.steps import ResearchServices, ResearchSteps, RoundsState, Task
from services.orchestrator.steps.run import Run


class ResearchRun:
    """One run, at work in this process."""

    def __init__(self, services: ResearchServices, run: Run, record: RunRecord) -> None:
        self._services = services
        self._run = run
        self._record = record
        self._options = record.request.research or ResearchOptions()
        self._steps = ResearchSteps(services, run, record)

    async def answer(self) -> Answer:
        """The answer to the question of the run. Raises what the first search raises when it is no outage."""
        services, run, record = self._services, self._run, self._record
        has_model = bool(services.drafter.model_name)
        history = await services.threads.history(run, record, for_model=has_model)
        task = await self._steps.task(record.request.question, history)
        state = await self._steps.search_in_rounds(task)
        if not state.found and not state.spent_budget:
            await Screen(run.journal).settle(SEARCH_DOWN)
            return Answer(SEARCH_DOWN, (), SupportStatus.UNAVAILABLE, EXTRACTIVE)
        question = task.asked
        draft = await self._drafted("draft", task, state, question)
        if self._options.answer == REPORT:
            draft = await self._in_sections("section", draft, task, state, outline(task, question), with_headings=True)
        else:
            draft = await self._with_its_parts(draft, task, state)
        return await self._ended(await self._with_conflict(draft, task, state), task, state)

    async def _with_its_parts(self, draft: Draft, task: Task, state: RoundsState) -> Draft:
        """The draft with what it leaves out: the answers to several questions where no quote answers all, and what the
        passages of a second step say where no model wrote it: there is none, or it is away, or its budget is spent."""
        by_model = draft.method == MODEL
        if draft.is_refusal and not draft.conflicts:
            sections = several(task.asked)
            draft = await self._in_sections("section", draft, task, state, sections, with_headings=False)
        if by_model:
            return draft
        coverage = state.searched(task).coverage
        sections = second_sections(task, coverage, state.evidence.evidence, draft)
        return await self._in_sections("second", draft, task, state, sections, with_headings=False)

    async def _with_conflict(self, draft: Draft, task: Task, state: RoundsState) -> Draft:
        """The draft with both sides where sources give different amounts, or where a model finds that they disagree in other words
        than each other's. A model that refuses has read them all."""
        if draft.conflicts or draft.is_refusal:
            return draft
        evidence = _best_first(state)
        if amounts := find_different_amounts(task.question, evidence):
            return await self._services.drafter.with_disagreements(draft, amounts, task.asked, state.evidence.evidence)
        is_compared = draft.method == MODEL
        if not is_compared or task.effort is Effort.LOW or state.spent_budget or not self._services.has_judge:
            return draft
        compare = partial(self._compared, task.question, evidence)
        compared = await self._run.once("conflict", compare, Compared, show=describe_compared, is_last_resort=True)
        drafter = self._services.drafter
        return await drafter.with_disagreements(draft, compared.disagreements, task.asked, state.evidence.evidence)

    async def _compared(self, question: str, evidence: Sequence[Evidence]) -> Compared:
        try:
            self._run.budgets.require_time()
            self._run.budgets.require_model()
            return Compared(await compare_by_model(self._services.model, question, evidence))
        except GroundworkError as error:
            return Compared(degraded=Degradation("llm", error.reason, error.message))

    async def _drafted(
        self, key: str, task: Task, state: RoundsState, question: str, before: str = "", passages: Sequence[int] = ()
    ) -> Draft:
        write = partial(self._draft, task, state, question, before, passages)
        return await self._run.once(key, write, Draft, show=checked, is_last_resort=True)

    async def _in_sections(
        self,
        key: str,
        draft: Draft,
        task: Task,
        state: RoundsState,
        sections: Sequence[Section],
        *,
        with_headings: bool,
    ) -> Draft:
        """The draft with what each section says behind it. Sections of a report for which there is no time are left out, and that
        is said. A short answer quotes the documents then, which takes next to no time."""
        report = Report(task.asked, draft, with_headings=with_headings)
        for number, section in enumerate(sections, start=1):
            try:
                if with_headings:
                    self._run.budgets.require_time()
                before = report.before(section)
                written = await self._drafted(f"{key}{number}", task, state, section.question, before, section.passages)
            except BudgetSpent as error:
                await self._steps.note_spent(state, error)
                break
            report.add(section, written)
        return report.draft()

    async def _draft(
        self, task: Task, state: RoundsState, question: str, before: str, passages: Sequence[int]
    ) -> Draft:
        services, run, record = self._services, self._run, self._record
        evidence = [each for each in _best_first(state) if not passages or each.number in passages]
        retrieval = Retrieval(evidence, degradations(state.found))
        check = services.checks.of(run, record, retrieval.evidence)
        return await write_draft(run, services.drafter, question, task.history, retrieval, check, before=before)

    async def _ended(self, draft: Draft, task: Task, state: RoundsState) -> Answer:
        """The answer with its ending and what it covers, and a note of what was left open behind its text."""
        run, question = self._run, task.asked
        searched = state.searched(task)
        searched = replace(searched, coverage=reconciled(searched.coverage, draft))
        ending = ending_of(draft, searched)
        if ending is AnswerEnding.REFUSAL and not draft.is_refusal:
            draft = await run.once(
                "refusal", partial(self._refused, task, state), Draft, show=_describe_refusal, is_last_resort=True
            )
        draft = with_note(draft, ending, searched, question)
        await Screen(run.journal).settle(draft.text)
        answer = answer_of(draft, searched.evidence)
        coverage = by_citation(searched.coverage, answer.citations, searched.evidence)
        return replace(answer, coverage=coverage, ending=ending.value)

    async def _refused(self, task: Task, state: RoundsState) -> Draft:
        question = Question(task.asked, task.history, _best_first(state), 1, degradations(state.found))
        return await self._services.drafter.refuse(question)


def _best_first(state: RoundsState) -> Sequence[Evidence]:
    return tuple(sorted(state.evidence.evidence, key=lambda each: -each.score))


def _describe_refusal(_: Draft) -> Payload:
    return Thinking("verify", "The passages do not carry an answer.")
