"""The recorded steps of a research run up to its evidence: effort, plan, and rounds of searching, measuring and refining."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from kit import deadline
from kit.errors import GroundworkError
from kit.llm import LanguageModel, Operation
from services.orchestrator.answering.drafting import Drafter, degraded
from services.orchestrator.errors import BudgetSpent
from services.orchestrator.guard.policy import flag_passages
from services.orchestrator.log.events import Coverage, Retrieval, Thinking
from services.orchestrator.models import ResearchOptions, RunRecord, SearchQuery, Tool, Turn
from services.orchestrator.modes.threads import Threads, forgotten_documents, forgotten_sources
from services.orchestrator.ports import Library, RunSources, Searcher, Tools
from services.orchestrator.research.asking_model import clarify_by_model, plan_by_model, refine_by_model
from services.orchestrator.research.calling import ResearchTools, calls_by_rules, taint_of
from services.orchestrator.research.collection_outline import outline_collections
from services.orchestrator.research.coverage import ENOUGH, measure_coverage
from services.orchestrator.research.endings import LEAST_COVERED, Searched
from services.orchestrator.research.event_payloads import (
    describe_effort,
    describe_joined,
    describe_plan,
    describe_refinement,
    describe_round,
    describe_unclear,
)
from services.orchestrator.research.models import (
    Effort,
    PlannedSearch,
    QuestionPart,
    ResearchPlan,
    RoundFound,
    Unclear,
)
from services.orchestrator.research.planning import plan_by_rules
from services.orchestrator.research.question.clarifying import clarify_by_rules, may_be_unclear
from services.orchestrator.research.question.effort import ChosenEffort, choose_effort
from services.orchestrator.research.question.parts import split_question
from services.orchestrator.research.search.fusing import EvidenceSet, fuse
from services.orchestrator.research.search.investigations import Investigation, share_out, without_numbers
from services.orchestrator.research.search.neighbours import read_neighbours
from services.orchestrator.research.search.refining import refine_by_rules
from services.orchestrator.research.search.rounds import LIMITS, OUTAGES, EffortLimits, is_done, search_all
from services.orchestrator.steps.run import Run, resolved, tell_time_is_up
from services.orchestrator.verification.checks import Checks
from services.orchestrator.without_model.followups import stand_alone

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
    tools: Tools
    library: Library
    evidence_top_k: int = 8
    input_life_s: float = 86_400.0
    """For which a question to the user stands."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def has_planner(self) -> bool:
        """Whether a model plans."""
        return bool(self.model.info(Operation.PLAN).model)

    @property
    def has_judge(self) -> bool:
        """Whether a model compares what sources say."""
        return bool(self.model.info(Operation.VERIFY).model)


@dataclass(frozen=True)
class Task:
    """What is to be done."""

    asked: str
    """The words of the user, with what they answered when they were asked back."""
    question: str
    """With the subject that it takes from the conversation."""
    history: Sequence[Turn]
    parts: Sequence[QuestionPart]
    plan: ResearchPlan
    effort: Effort
    limits: EffortLimits
    tools: Sequence[Tool] = ()
    """Those that the request names and the plan may call."""


@dataclass
class RoundsState:
    """How far the rounds have come: the fold of their steps."""

    found: list[RoundFound] = field(default_factory=list)
    coverages: list[Coverage] = field(default_factory=list)
    searches: list[PlannedSearch] = field(default_factory=list)
    evidence: EvidenceSet = field(default_factory=EvidenceSet)
    spent_budget: str = ""
    known: EvidenceSet = field(default_factory=EvidenceSet)
    """Of an investigation: what the run had numbered before it."""
    called: Sequence[RoundFound] = ()
    """What tools found before the first round; one at most."""

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
        note = partial(forgotten_sources, run, record, services.sources)
        self._tools = ResearchTools(services.tools, run, record.request, note)

    async def task(self, asked: str, history: Sequence[Turn]) -> Task:
        """What is to be done, decided once. Raises Parked while the run waits for the user's clarification."""
        run = self._run
        effort = choose_effort(stand_alone(asked, history), Effort(self._options.effort or Effort.AUTO.value))
        chosen = await run.once(
            "effort", partial(resolved, effort), ChosenEffort, show=describe_effort, is_last_resort=True
        )
        if chosen.effort is Effort.HIGH:
            asked = await self._clarified(asked, history)
        question = stand_alone(asked, history)
        parts = split_question(question)
        tools = await self._tools.offered()
        plan = await run.once(
            "plan",
            partial(self._planned, question, history, chosen.effort, tools),
            ResearchPlan,
            show=partial(describe_plan, chosen.effort, parts),
            is_last_resort=True,
        )
        return Task(asked, question, history, parts, plan, chosen.effort, self._limits(chosen.effort), tools)

    async def _clarified(self, asked: str, history: Sequence[Turn]) -> str:
        """The question with what the user answers, where it cannot be answered as it stands."""
        run = self._run
        unclear = partial(self._unclear, asked, history)
        found = await run.once("clarify", unclear, Unclear, show=describe_unclear, is_last_resort=True)
        if not found.question:
            return asked
        expires_at = run.journal.now() + timedelta(seconds=self._services.input_life_s)
        answer = await run.ask_user("input", found.question, expires_at)
        if not answer:
            await run.say(Thinking("plan", "Nobody answered in time: going on with the question as it stands."))
        return f"{asked} ({answer})" if answer else asked

    async def _unclear(self, asked: str, history: Sequence[Turn]) -> Unclear:
        by_rules = clarify_by_rules(asked, history)
        if by_rules or not self._services.has_planner or not may_be_unclear(asked, history):
            return Unclear(by_rules)
        try:
            self._run.budgets.require_time()
            self._run.budgets.require_model()
            return Unclear(await clarify_by_model(self._services.model, asked))
        except (BudgetSpent, GroundworkError):  # nobody is asked because a model is away
            return Unclear("")

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

    async def _planned(
        self, question: str, history: Sequence[Turn], effort: Effort, tools: Sequence[Tool]
    ) -> ResearchPlan:
        by_rules = plan_by_rules(question, self._services.now(), self._options.filter)
        by_rules = replace(by_rules, calls=calls_by_rules(question, tools))
        if effort is Effort.LOW:
            return by_rules

        async def by_model() -> ResearchPlan:
            outline = await outline_collections(self._services.library, self._record.request, question)
            now = self._services.now()
            return await plan_by_model(self._services.model, question, history, now, by_rules, tools, outline)

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
        whole = Investigation(task.parts, task.limits)
        await self._call_tools(state, task)
        searches = self._affordable(state, whole, list(task.plan.searches)[: task.limits.searches])
        while searches and await self._round(state, task, whole, searches):
            if task.effort is Effort.HIGH and len(state.found) == 1:
                limits = replace(task.limits, searches=self._most_searches(task.limits.searches))
                if shared := share_out(task.parts, state.coverages[-1], limits, len(state.searches)):
                    await self._investigate(state, task, shared)
                    return
            searches = await self._refined(state, task, whole)

    async def _call_tools(self, state: RoundsState, task: Task) -> None:
        """Makes the planned calls; one search is left for the documents. Raises BudgetSpent."""
        if not task.plan.calls:
            return
        most = self._most_searches(task.limits.searches) - 1
        taint = taint_of(task.asked, task.history, task.plan)
        found, searches = await self._tools.called(task.plan, task.tools, most, taint)
        if found is not None:
            state.called = (found,)
            state.searches += searches

    async def _investigate(self, state: RoundsState, task: Task, investigations: Sequence[Investigation]) -> None:
        """Looks into all of them side by side, and joins what they have found. Each keeps to its own share."""
        known = len(state.found), len(state.searches)
        ended = await self._run.all(*(self._investigated(state, task, each) for each in investigations))
        state.found += [found for each in ended for found in each.found[known[0] :]]
        state.searches += [search for each in ended for search in each.searches[known[1] :]]
        number = max(len(each.found) for each in ended) + 1
        state.evidence = fuse([*state.called, *state.found], task.question, task.limits.passages, state.evidence)
        joined = describe_joined(state.evidence, number)
        await self._run.once("joined/retrieve", partial(resolved, joined), Retrieval, is_last_resort=True)
        await self._measure(state, task, Investigation(task.parts, task.limits), "joined", number)
        if spent := next((each.spent_budget for each in ended if each.spent_budget), ""):
            state.spent_budget = spent

    async def _investigated(self, before: RoundsState, task: Task, investigation: Investigation) -> RoundsState:
        """How far one of several has come, from what the run had found before."""
        measured = measure_coverage(task.question, investigation.parts, before.evidence.evidence)
        state = RoundsState(
            list(before.found),
            [measured],
            list(before.searches),
            before.evidence,
            known=before.evidence,
            called=before.called,
        )
        try:
            while searches := await self._refined(state, task, investigation):
                if not await self._round(state, task, investigation, searches):
                    break
        except BudgetSpent as error:
            await self.note_spent(state, error)
        is_cut_short = len(state.searches) >= investigation.limits.searches and state.coverages[-1].share < ENOUGH
        if is_cut_short and self._most_searches(task.limits.searches) < task.limits.searches:
            state.spent_budget = state.spent_budget or "searches"
        return state

    async def _round(
        self, state: RoundsState, task: Task, investigation: Investigation, searches: Sequence[PlannedSearch]
    ) -> bool:
        """Searches and measures once. Whether another round may follow."""
        number = len(state.found) + 1
        key = f"{investigation.key}round{number}"
        try:
            await self._retrieved(state, task, investigation, searches, key)
        except OUTAGES as error:
            if deadline.is_spent():
                raise
            await self._run.say(degraded("retrieve", "search", error, "Search does not answer."))
            return False
        await self._measure(state, task, investigation, key, number)
        return not is_done(state.coverages, investigation.limits, len(state.searches))

    async def _measure(
        self, state: RoundsState, task: Task, investigation: Investigation, key: str, number: int
    ) -> None:
        measured = measure_coverage(task.question, investigation.parts, state.evidence.evidence)
        coverage = replace(measured, round=number, investigation=investigation.title)
        if investigation.title:
            coverage = without_numbers(coverage, state.known.evidence)
        state.coverages.append(await self._run.once(f"{key}/coverage", partial(resolved, coverage), Coverage))

    async def _refined(self, state: RoundsState, task: Task, investigation: Investigation) -> list[PlannedSearch]:
        """What the next round searches for; nothing where there is nothing left to try. Raises BudgetSpent."""
        number = len(state.found) + 1
        return await self._run.once(
            f"{investigation.key}round{number}/plan",
            partial(self._refinement, state, task, investigation),
            list[PlannedSearch],
            show=partial(describe_refinement, number, task.effort, task.plan, investigation.title),
        )

    async def _refinement(self, state: RoundsState, task: Task, investigation: Investigation) -> list[PlannedSearch]:
        coverage, evidence, before = state.coverages[-1], state.evidence.evidence, state.searches
        searches = refine_by_rules(
            task.question, investigation.parts, coverage, evidence, before, rewords=investigation.rewords
        )
        if coverage.share < LEAST_COVERED:
            ask = partial(refine_by_model, self._services.model, task.question, coverage, evidence, before)
            by_model = await self._by_model("plan", ask) or []
            searches = [*by_model, *searches]
        return self._affordable(state, investigation, searches)

    def _affordable(
        self, state: RoundsState, investigation: Investigation, searches: list[PlannedSearch]
    ) -> list[PlannedSearch]:
        """As many as the investigation may still make. Raises BudgetSpent when the run's budget allows none although there are
        some."""
        limit = investigation.limits.searches
        most = self._most_searches(limit)
        if searches and most < limit and most <= len(state.searches):
            raise BudgetSpent(
                f"the run's budget of searches is used up: {most}; ask with a larger budget", budget="searches"
            )
        return searches[: max(0, most - len(state.searches))]

    def _most_searches(self, limit: int) -> int:
        """The limit, or the run's budget of searches where it is smaller."""
        return min(limit, self._run.budgets.budgets.tool_calls or limit)

    async def _retrieved(
        self, state: RoundsState, task: Task, investigation: Investigation, searches: Sequence[PlannedSearch], key: str
    ) -> None:
        number = len(state.found) + 1

        def fused(found: RoundFound) -> EvidenceSet:
            return fuse([*state.called, *state.found, found], task.question, task.limits.passages, state.evidence)

        found = await self._run.once(
            f"{key}/retrieve",
            partial(self._search, searches, task),
            RoundFound,
            show=lambda found: describe_round(found, fused(found), number, investigation.title, state.known.evidence),
        )
        state.evidence = fused(found)
        if not investigation.title:  # passages of investigations are flagged when they are joined and numbered
            await flag_passages(state.evidence.evidence)
        state.found.append(found)
        state.searches += searches
        for part in found.degraded:
            await self._run.say(Thinking("retrieve", part.message, part))

    async def _search(self, searches: Sequence[PlannedSearch], task: Task) -> RoundFound:
        """What a round finds, without documents that were deleted meanwhile. Messages bring those beside them, unless the request
        filters: these may be of another author or day."""
        request, own = self._record.request, task.plan.filter
        base = SearchQuery((), request.collection_ids, request.document_ids, task.limits.passages).narrowed_to(own)
        found = await search_all(self._services.searcher, base, searches, task.plan.route, at_once=_AT_ONCE)
        forgotten = await forgotten_documents(self._run, self._record, self._services.sources, found.passages)
        found = replace(found, passages=tuple(each for each in found.passages if each.document_id not in forgotten))
        return found if own.is_set else await read_neighbours(self._services.library, found)
