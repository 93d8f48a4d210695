"""One research run: effort → plan → rounds of searching and measuring → answer. It reads as a plain program; each step is recorded
once, so that a run that is cut off goes on where it was."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from kit import deadline
from services.orchestrator.answering.drafting import EXTRACTIVE, Draft, Drafter, Question, degraded
from services.orchestrator.answering.refusals import SEARCH_DOWN
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import (
    Answer,
    Coverage,
    Retrieval,
    SupportStatus,
    Thinking,
)
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import ResearchOptions, RunRecord, SearchQuery, Turn
from services.orchestrator.modes.drafts import answer_of, checked, write_draft
from services.orchestrator.modes.threads import Threads, forgotten_documents
from services.orchestrator.ports import RunSources, Searcher
from services.orchestrator.research.coverage import measure_coverage
from services.orchestrator.research.endings import AnswerEnding, Searched, ending_of, reconciled, with_note
from services.orchestrator.research.models import (
    Effort,
    PlannedSearch,
    QuestionPart,
    ResearchPlan,
    RoundFound,
)
from services.orchestrator.research.planning import plan_by_rules
from services.orchestrator.research.question.effort import ChosenEffort, choose_effort
from services.orchestrator.research.question.parts import split_question
from services.orchestrator.research.search.fusing import EvidenceSet, fuse
from services.orchestrator.research.search.refining import refine_by_rules
from services.orchestrator.research.search.rounds import LIMITS, OUTAGES, EffortLimits, is_done, search_all
from services.orchestrator.research.telling import degradations, told_effort, told_plan, told_refinement, told_round
from services.orchestrator.steps.run import Run, just, tell_time_is_up
from services.orchestrator.verification.checks import Checks
from services.orchestrator.without_model.followups import stand_alone

_AT_ONCE = 8
_TIME = "wall_clock"
_EIGHTHS = 8


@dataclass(frozen=True)
class ResearchServices:
    """What a research run works with."""

    searcher: Searcher
    sources: RunSources
    threads: Threads
    drafter: Drafter
    checks: Checks
    evidence_top_k: int = 8
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True)
class _Task:
    """What is to be done."""

    question: str
    parts: Sequence[QuestionPart]
    plan: ResearchPlan
    effort: Effort
    limits: EffortLimits


@dataclass
class _State:
    """How far the rounds have come: the fold of their steps."""

    found: list[RoundFound] = field(default_factory=list)
    coverages: list[Coverage] = field(default_factory=list)
    searches: list[PlannedSearch] = field(default_factory=list)
    evidence: EvidenceSet = field(default_factory=EvidenceSet)
    spent_budget: str = ""


@dataclass(frozen=True)
class RoundsResult:
    """What the rounds came to."""

    searched: Searched
    found: Sequence[RoundFound]


class ResearchRun:
    """One run, at work in this process."""

    def __init__(self, services: ResearchServices, run: Run, record: RunRecord) -> None:
        self._services = services
        self._run = run
        self._record = record
        self._options = record.request.research or ResearchOptions()

    async def answer(self) -> Answer:
        """The answer to the question of the run. Raises what the first search raises when it is no outage."""
        services, run, record = self._services, self._run, self._record
        has_model = bool(services.drafter.model_name)
        history = await services.threads.history(run, record, for_model=has_model)
        question = stand_alone(record.request.question, history)
        rounds = await self._rounds(question)
        if rounds is None:
            await Screen(run.journal).settle(SEARCH_DOWN)
            return Answer(SEARCH_DOWN, (), SupportStatus.UNAVAILABLE, EXTRACTIVE)
        draft = await run.once(
            "draft",
            partial(self._draft, history, rounds),
            Draft,
            show=checked,
            is_last_resort=True,
        )
        searched = rounds.searched
        answer = answer_of(draft, searched.evidence)
        ending = ending_of(draft, searched)
        return replace(answer, coverage=reconciled(searched.coverage, draft), ending=ending.value)

    async def _draft(self, history: Sequence[Turn], rounds: RoundsResult) -> Draft:
        """The answer as text, with what was left open behind it."""
        run, searched, question = self._run, rounds.searched, self._record.request.question
        best_first = tuple(sorted(searched.evidence, key=lambda each: -each.score))
        retrieval = Retrieval(best_first, degradations(rounds.found))
        drafter = self._services.drafter
        check = self._services.checks.of(run, self._record, retrieval.evidence)
        draft = await write_draft(run, drafter, question, history, retrieval, check)
        searched = replace(searched, coverage=reconciled(searched.coverage, draft))
        ending = ending_of(draft, searched)
        if ending is AnswerEnding.REFUSAL and not draft.is_refusal:
            draft = await drafter.refuse(Question(question, history, best_first, 1, retrieval.degraded))
        draft = with_note(draft, ending, searched, question)
        await Screen(run.journal).settle(draft.text)
        return draft

    async def _rounds(self, question: str) -> RoundsResult | None:
        """What the rounds came to; None when search is down from the beginning."""
        task = await self._task(question)
        state = _State()
        try:
            await self._search_in_rounds(state, task)
        except BudgetSpent as error:
            state.spent_budget = error.metadata["budget"]
            if state.spent_budget == _TIME:
                await tell_time_is_up(self._run.journal)
            await self._run.say(degraded("plan", "budget", error, "Answering with what was found by then."))
        if not state.found and not state.spent_budget:
            return None
        evidence = state.evidence.evidence
        coverage = state.coverages[-1] if state.coverages else measure_coverage(question, task.parts, evidence)
        return RoundsResult(Searched(coverage, evidence, len(state.searches), state.spent_budget), tuple(state.found))

    async def _task(self, question: str) -> _Task:
        """What is to be done, decided once."""
        run, asked = self._run, self._options
        parts = split_question(question)
        effort = choose_effort(question, Effort(asked.effort or Effort.AUTO.value))
        chosen = await run.once("effort", partial(just, effort), ChosenEffort, show=told_effort, is_last_resort=True)
        by_rules = plan_by_rules(question, self._services.now(), asked.filter)
        plan = await run.once(
            "plan",
            partial(just, by_rules),
            ResearchPlan,
            show=partial(told_plan, chosen.effort, parts),
            is_last_resort=True,
        )
        return _Task(question, parts, plan, chosen.effort, self._limits(chosen.effort))

    def _limits(self, effort: Effort) -> EffortLimits:
        limits = LIMITS[effort]
        top_k = self._record.request.top_k or self._services.evidence_top_k
        return replace(limits, passages=max(1, top_k * limits.passages // _EIGHTHS))

    async def _search_in_rounds(self, state: _State, task: _Task) -> None:
        """Searches until the question is covered, or nothing more is to be expected. Raises BudgetSpent."""
        searches = list(task.plan.searches)[: task.limits.searches]
        while searches:
            number = len(state.found) + 1
            try:
                await self._round(state, task, searches, number)
            except OUTAGES as error:
                if deadline.is_spent():
                    raise
                await self._run.say(degraded("retrieve", "search", error, "Search does not answer."))
                return
            coverage = replace(measure_coverage(task.question, task.parts, state.evidence.evidence), round=number)
            state.coverages.append(await self._run.once(f"round{number}/coverage", partial(just, coverage), Coverage))
            if is_done(state.coverages, task.limits, len(state.searches)):
                return
            searches = await self._refined(state, task, number + 1)

    async def _refined(self, state: _State, task: _Task, number: int) -> list[PlannedSearch]:
        """What the next round searches for; nothing where there is nothing left to try."""
        coverage, evidence = state.coverages[-1], state.evidence.evidence
        searches = refine_by_rules(task.question, task.parts, coverage, evidence, state.searches)
        searches = searches[: task.limits.searches - len(state.searches)]
        if not searches:
            return []
        return await self._run.once(
            f"round{number}/plan",
            partial(just, searches),
            list[PlannedSearch],
            show=partial(told_refinement, number, task.effort, task.plan),
        )

    async def _round(self, state: _State, task: _Task, searches: Sequence[PlannedSearch], number: int) -> None:
        def fused(found: RoundFound) -> EvidenceSet:
            return fuse([*state.found, found], task.question, task.limits.passages, state.evidence)

        found = await self._run.once(
            f"round{number}/retrieve",
            partial(self._search, searches, task),
            RoundFound,
            show=lambda found: told_round(found, fused(found), number),
        )
        state.evidence = fused(found)
        state.found.append(found)
        state.searches += searches
        for part in found.degraded:
            await self._run.say(Thinking("retrieve", part.message, part))

    async def _search(self, searches: Sequence[PlannedSearch], task: _Task) -> RoundFound:
        """What a round finds, without documents that were deleted meanwhile."""
        request, own = self._record.request, task.plan.filter
        base = SearchQuery(
            (),
            request.collection_ids,
            request.document_ids,
            task.limits.passages,
            metadata={each.key: each.values for each in own.metadata},
            date_from=own.date_from,
            date_to=own.date_to,
        )
        found = await search_all(self._services.searcher, base, searches, task.plan.route, at_once=_AT_ONCE)
        forgotten = await forgotten_documents(self._run, self._record, self._services.sources, found.passages)
        return replace(found, passages=tuple(each for each in found.passages if each.document_id not in forgotten))
