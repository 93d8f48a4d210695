"""An answer from documents, as the modes qa and grounded give it: history → plan → retrieve → draft."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from kit import deadline
from kit.errors import DeadlineExceeded, Internal, ResourceExhausted, Unavailable
from services.orchestrator.agent import Agent, Searching
from services.orchestrator.answering.draft import EXTRACTIVE, Draft
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.answering.refusals import SEARCH_DOWN
from services.orchestrator.conflicts.widening import compared_with, with_the_other_side
from services.orchestrator.log.events import Answer, Budgets, Evidence, Plan, Retrieval, SupportStatus, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import RunRecord, SearchQuery, Turn
from services.orchestrator.modes.drafts import PLAIN, answer_of, checked, write_draft
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.modes.threads import forgotten_documents
from services.orchestrator.remembering.recalling import NOTHING_RECALLED, Recall
from services.orchestrator.settings import OrchestratorSettings
from services.orchestrator.steps.budgets import most_budgets
from services.orchestrator.steps.run import Run, resolved
from services.orchestrator.without_model.followups import search_queries
from services.orchestrator.without_model.intents import Route, read_intent

_SEARCH_OUTAGES = (Unavailable, DeadlineExceeded, ResourceExhausted, Internal)
"""The retriever is away, hangs, is overloaded or broken. Any other error is the question's: the run fails and says why."""


@dataclass(frozen=True)
class Limits:
    """Numbers of these modes; see settings.py for their reasons."""

    evidence_top_k: int = 8
    budgets: Budgets = Budgets(wall_clock_s=120.0, answer_tokens=600)
    """The most that a request gets."""

    @classmethod
    def of(cls, settings: OrchestratorSettings) -> "Limits":
        return cls(settings.evidence_top_k, most_budgets(settings))


class DocumentAnswers:
    """Answers questions by one search."""

    def __init__(self, services: ModeServices, limits: Limits) -> None:
        self._searcher = services.searcher
        self._threads = services.threads
        self._sources = services.sources
        self._drafter = services.drafter
        self._checks = services.checks
        self._limits = limits

    async def answer(
        self, run: Run, record: RunRecord, agent: Agent = PLAIN, recall: Recall = NOTHING_RECALLED, *, within: str = ""
    ) -> Answer:
        """The answer of the agent, or its refusal, to the question of the run. `recall` is awaited behind the search. `within`
        begins the keys of its steps, for a run that has such steps already."""
        if is_small_talk(record.request.question):
            return await self._greeted(run, record.request.question)
        history = await self._threads.history(run, record, for_model=bool(self._drafter.model_name))
        retrieval = await self._found(run, record, agent, history, within)
        if retrieval is None:
            await Screen(run.journal).settle(SEARCH_DOWN)
            return Answer(SEARCH_DOWN, (), SupportStatus.UNAVAILABLE, EXTRACTIVE)
        agent = replace(agent, prompt=await recall.added_to(agent.prompt))
        check = self._checks.of(run, record, retrieval.evidence)
        draft = await run.once(
            f"{within}draft",
            partial(write_draft, run, self._drafter, record.request.question, history, retrieval, check, agent),
            Draft,
            show=checked,
        )
        return answer_of(draft, retrieval.evidence)

    async def evidence(self, run: Run, record: RunRecord, agent: Agent, history: Sequence[Turn]) -> Sequence[Evidence]:
        """What one search finds for the question; nothing, said so, where search is down, and for small talk."""
        if is_small_talk(record.request.question):
            return ()
        retrieval = await self._found(run, record, agent, history, "")
        return () if retrieval is None else retrieval.evidence

    async def _found(
        self, run: Run, record: RunRecord, agent: Agent, history: Sequence[Turn], within: str
    ) -> Retrieval | None:
        queries = search_queries(record.request.question, history)
        plan = await run.once(
            f"{within}plan", partial(resolved, Plan(agent.searching.strategy or "hybrid", queries)), Plan
        )
        return await self._evidence(run, record, plan, agent.searching, within)

    async def _greeted(self, run: Run, question: str) -> Answer:
        """Small talk asks nothing of the documents."""
        text = await self._drafter.greeting(question)
        await Screen(run.journal).settle(text)
        return Answer(text, (), None, EXTRACTIVE)

    async def _evidence(
        self, run: Run, record: RunRecord, plan: Plan, searching: Searching, within: str
    ) -> Retrieval | None:
        """The evidence set; None when search is down."""
        try:
            retrieval = await run.once(
                f"{within}retrieve", partial(self._retrieve, run, record, plan, searching), Retrieval
            )
        except _SEARCH_OUTAGES as error:
            if deadline.is_spent():
                raise
            await run.say(degraded("retrieve", "search", error, "Search does not answer."))
            return None
        for part in retrieval.degraded:
            await run.say(Thinking("retrieve", part.message, part))
        return retrieval

    async def _retrieve(self, run: Run, record: RunRecord, plan: Plan, searching: Searching) -> Retrieval:
        """The evidence without documents that were deleted while it was searched for. What cannot be noted is not logged."""
        request = record.request
        count = request.top_k or searching.top_k or self._limits.evidence_top_k
        query = SearchQuery(
            plan.queries,
            request.collection_ids,
            request.document_ids,
            compared_with(count),
            searching.strategy,
            searching.metadata,
            weights=searching.weights,
        )
        found = await self._searcher.search(query.narrowed_to(request.filter))
        evidence = await asyncio.to_thread(with_the_other_side, plan.queries[0], found.evidence, count)
        retrieval = replace(found, evidence=evidence)
        forgotten = await forgotten_documents(run, record, self._sources, retrieval.evidence)
        kept = [hit for hit in retrieval.evidence if hit.document_id not in forgotten]
        return replace(
            retrieval, evidence=tuple(replace(hit, number=number) for number, hit in enumerate(kept, start=1))
        )


def is_small_talk(message: str) -> bool:
    """Whether the message asks nothing of documents."""
    return read_intent(message).route is Route.TALK and any(map(str.isalnum, message))
