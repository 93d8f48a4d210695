"""The recorded steps of a research run up to its evidence: effort, plan, and rounds of searching, measuring and refining."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from kit import deadline
from kit.errors import GroundworkError
from kit.llm import LanguageModel, Operation
from services.orchestrator.answering.drafting import Drafter, degraded
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import Coverage, Thinking
from services.orchestrator.models import ResearchOptions, RunRecord, SearchQuery, Turn
from services.orchestrator.modes.threads import Threads, forgotten_documents
from services.orchestrator.ports import RunSources, Searcher
from services.orchestrator.research.asking_model import plan_by_model, refine_by_model
from services.orchestrator.research.coverage import measure_coverage
from services.orchestrator.research.endings import LEAST_COVERED, Searched
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
from services.orchestrator.research.telling import told_effort, told_plan, told_refinement, told_round
from services.orchestrator.steps.run import Run, just, tell_time_is_up
from services.orchestrator.verification.checks import Checks

T = TypeVar("T")
_AT_ONCE = 8
_EIGHTHS = 8
_TIME, _CALLS = "wall_clock", "tool_calls"
_MODEL_BUDGETS = frozenset({"tokens", "cost_usd"})


@dataclass(frozen=True)
class ResearchServices:
    """What a research run works with."""

    searcher: Searcher
    sources: RunSources
    threads: Threads
    drafter: Drafter
    model: LanguageModel
    """One without a name is none."""
    checks: Checks
    evidence_top_k: int = 8
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def has_planner(self) -> bool:
        """Whether a model plans."""
        return bool(self.model.info(Operation.PLAN).model)


@dataclass(frozen=True)
class Task:
    """What is to be done."""

    question: str
    """With the subject that it takes from the conversation."""
    history: Sequence[Turn]
    parts: Sequence[QuestionPart]
    plan: ResearchPlan
    effort: Effort
    limits: EffortLimits


@dataclass
class RoundsState:
    """How far the rounds have come: the fold of their steps."""

    found: list[RoundFound] = field(default_factory=list)
    coverages: list[Coverage] = field(default_factory=list)
    searches: list[PlannedSearch] = field(default_factory=list)
    evidence: EvidenceSet = field(default_factory=EvidenceSet)
    spent_budget: str = ""

    def searched(self, task: Task) -> Searched:
        """What the rounds have come to."""
        evidence = self.evidence.evidence
        coverage = self.coverages[-1] if self.coverages else measure_coverage(task.question, task.parts, evidence)
        return Searched(coverage, evidence, len(self.searches), self.spent_budget)


class ResearchSteps:
    """The steps of one run."""

    def __init__(self, services: ResearchServices, run: Run, record: RunRecord) -> None:
        self._services = services
        self._run = run
        self._record = record
        self._options = record.request.research or ResearchOptions()

    async def task(self, question: str, history: Sequence[Turn]) -> Task:
        """What is to be done, decided once."""
        run, asked = self._run, self._options
        parts = split_question(question)
        effort = choose_effort(question, Effort(asked.effort or Effort.AUTO.value))
        chosen = await run.once("effort", partial(just, effort), ChosenEffort, show=told_effort, is_last_resort=True)
        plan = await run.once(
            "plan",
            partial(self._planned, question, history, chosen.effort),
            ResearchPlan,
            show=partial(told_plan, chosen.effort, parts),
            is_last_resort=True,
        )
        return Task(question, history, parts, plan, chosen.effort, self._limits(chosen.effort))

    async def search_in_rounds(self, task: Task) -> RoundsState:
        """Searches until the question is covered, or nothing more is to be expected, or a budget is spent. Raises what the first
        search raises when it is the question's fault."""
        state = RoundsState()
        try:
            await self._rounds(state, task)
        except BudgetSpent as error:
            await self.note_spent(state, error)
        return state

    async def note_spent(self, state: RoundsState, error: BudgetSpent) -> None:
        """Says that a budget ends the search."""
        state.spent_budget = error.metadata["budget"]
        if state.spent_budget == _TIME:
            await tell_time_is_up(self._run.journal)
        await self._run.say(degraded("plan", "budget", error, "Answering with what was found by then."))

    async def _planned(self, question: str, history: Sequence[Turn], effort: Effort) -> ResearchPlan:
        by_rules = plan_by_rules(question, self._services.now(), self._options.filter)
        if effort is Effort.LOW:
            return by_rules
        by_model = partial(plan_by_model, self._services.model, question, history, self._services.now(), by_rules)
        return await self._by_model("plan", by_model) or by_rules

    async def _by_model(self, phase: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """What the model says; None, said so, where it may not be asked, fails, is late or says what is no plan."""
        if not self._services.has_planner:
            return None
        try:
            self._run.budgets.require_time()
            self._run.budgets.require_model()
            return await ask()
        except BudgetSpent as error:
            if error.metadata["budget"] not in _MODEL_BUDGETS:
                return None  # said when the next step begins
            await self._run.say(degraded(phase, "llm", error, "Planning by rules instead."))
        except GroundworkError as error:
            await self._run.say(degraded(phase, "llm", error, "Planning by rules instead."))
        return None

    def _limits(self, effort: Effort) -> EffortLimits:
        limits = LIMITS[effort]
        top_k = self._record.request.top_k or self._services.evidence_top_k
        return replace(limits, passages=max(1, top_k * limits.passages // _EIGHTHS))

    async def _rounds(self, state: RoundsState, task: Task) -> None:
        searches = self._affordable(state, list(task.plan.searches)[: task.limits.searches])
        while searches:
            key = f"round{len(state.found) + 1}"
            try:
                await self._round(state, task, searches, key)
            except OUTAGES as error:
                if deadline.is_spent():
                    raise
                await self._run.say(degraded("retrieve", "search", error, "Search does not answer."))
                return
            await self._measure(state, task, key)
            if is_done(state.coverages, task.limits, len(state.searches)):
                return
            searches = await self._refined(state, task)

    async def _measure(self, state: RoundsState, task: Task, key: str) -> None:
        measured = measure_coverage(task.question, task.parts, state.evidence.evidence)
        coverage = replace(measured, round=len(state.found))
        state.coverages.append(await self._run.once(f"{key}/coverage", partial(just, coverage), Coverage))

    async def _refined(self, state: RoundsState, task: Task) -> list[PlannedSearch]:
        """What the next round searches for; nothing where there is nothing left to try. Raises BudgetSpent."""
        number = len(state.found) + 1
        return await self._run.once(
            f"round{number}/plan",
            partial(self._refinement, state, task),
            list[PlannedSearch],
            show=partial(told_refinement, number, task.effort, task.plan),
        )

    async def _refinement(self, state: RoundsState, task: Task) -> list[PlannedSearch]:
        coverage, evidence = state.coverages[-1], state.evidence.evidence
        searches = refine_by_rules(task.question, task.parts, coverage, evidence, state.searches)
        if coverage.share < LEAST_COVERED:
            ask = partial(refine_by_model, self._services.model, task.question, coverage, evidence, state.searches)
            by_model = await self._by_model("plan", ask) or []
            searches = [*by_model, *searches]
        return self._affordable(state, searches[: task.limits.searches - len(state.searches)])

    def _affordable(self, state: RoundsState, searches: list[PlannedSearch]) -> list[PlannedSearch]:
        """As many as the budget of calls allows. Raises BudgetSpent when that is none although there are some."""
        most = self._run.budgets.budgets.tool_calls
        if not most or not searches:
            return searches
        left = most - len(state.searches)
        if left <= 0:
            raise BudgetSpent(
                f"the run's budget of searches is used up: {most}; ask with a larger budget", budget="searches"
            )
        return searches[:left]

    async def _round(self, state: RoundsState, task: Task, searches: Sequence[PlannedSearch], key: str) -> None:
        number = len(state.found) + 1

        def fused(found: RoundFound) -> EvidenceSet:
            return fuse([*state.found, found], task.question, task.limits.passages, state.evidence)

        found = await self._run.once(
            f"{key}/retrieve",
            partial(self._search, searches, task),
            RoundFound,
            show=lambda found: told_round(found, fused(found), number),
        )
        state.evidence = fused(found)
        state.found.append(found)
        state.searches += searches
        for part in found.degraded:
            await self._run.say(Thinking("retrieve", part.message, part))

    async def _search(self, searches: Sequence[PlannedSearch], task: Task) -> RoundFound:
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
