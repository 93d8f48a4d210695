"""The steps of a grounded run: memory → plan → retrieve → answer → verify → finish → remember. Each step's result is an event in
the log before the next begins; a step whose result is already there is not done again."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from kit import deadline
from kit.errors import DeadlineExceeded, GroundworkError, Internal, ResourceExhausted, Unavailable
from kit.forgetting import Source
from kit.llm import TokenUsage
from services.orchestrator.answering.drafting import EXTRACTIVE, MODEL, Draft, Drafter, Question, degraded
from services.orchestrator.answering.refusals import SEARCH_DOWN
from services.orchestrator.log.events import (
    AgentChosen,
    Answer,
    Budgets,
    Done,
    Evidence,
    Plan,
    Retrieval,
    RunMode,
    RunStarted,
    RunStatus,
    SupportStatus,
    Thinking,
    Usage,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.log.screen import Screen
from services.orchestrator.models import RunRecord, SearchQuery, Turn
from services.orchestrator.modes.followups import search_queries
from services.orchestrator.ports import Memory, RunSources, Searcher
from services.orchestrator.runs.forgetting import documents_of
from services.orchestrator.verification import cite, let_go_of_texts

DEFAULT_AGENT = "reasoning"
_SEARCH_OUTAGES = (Unavailable, DeadlineExceeded, ResourceExhausted, Internal)
"""The retriever is away, hangs, is overloaded or broken. Any other error is the question's: the run fails and says why."""


@dataclass(frozen=True)
class Limits:
    """Numbers of the pipeline; see settings.py for their reasons."""

    evidence_top_k: int = 8
    history_turns: int = 8
    answer_tokens: int = 600
    wall_clock_s: float = 120.0
    prompt_usd_per_million_tokens: float = 0.0
    completion_usd_per_million_tokens: float = 0.0


@dataclass
class Clocks:
    """Seconds by step, for the usage event."""

    clock: Callable[[], float] = time.monotonic
    seconds: dict[str, float] = field(default_factory=dict)

    @asynccontextmanager
    async def step(self, name: str) -> AsyncIterator[None]:
        started = self.clock()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + self.clock() - started, 4)


class Pipeline:
    """Runs the modes qa and grounded."""

    def __init__(
        self, searcher: Searcher, memory: Memory, sources: RunSources, drafter: Drafter, limits: Limits
    ) -> None:
        self._searcher = searcher
        self._memory = memory
        self._sources = sources
        self._drafter = drafter
        self._limits = limits

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        """Takes the run from where its log ends to `done`. Returns how it ended."""
        if journal.progress.done is not None:
            return journal.progress.done.status
        clocks = Clocks()
        await self._open(record, journal)
        history = await self._history(record, journal)
        retrieval = await self._evidence(record, journal, history, clocks)
        answer, tokens = await self._answer(record, journal, history, retrieval, clocks)
        if journal.progress.usage is None:
            seconds = (journal.now() - record.created_at).total_seconds()
            await journal.write(self._usage(tokens, seconds, clocks.seconds, answer.method))
        await self._remember(record, journal, answer)
        status = RunStatus.REFUSED if _is_refusal(answer) else RunStatus.COMPLETED
        await journal.write(Done(status))
        return status

    async def _open(self, record: RunRecord, journal: Journal) -> None:
        request = record.request
        if journal.progress.started:
            await journal.write(Thinking("resume", "Another worker continues this answer."))
        else:
            await journal.write(
                RunStarted(
                    mode=request.mode,
                    question=request.question,
                    thread_id=request.thread_id,
                    collection_ids=request.collection_ids,
                    budgets=self._in_force(request.budgets),
                    model=self._drafter.model_name,
                )
            )
        if request.mode is RunMode.GROUNDED and journal.progress.agent is None:
            chosen_by = "default" if request.agent in ("", "auto") else "explicit"
            await journal.write(AgentChosen(DEFAULT_AGENT, chosen_by))

    def _in_force(self, asked: Budgets) -> Budgets:
        wall_clock_s = min(asked.wall_clock_s or self._limits.wall_clock_s, self._limits.wall_clock_s)
        return Budgets(wall_clock_s, asked.answer_tokens or self._limits.answer_tokens)

    async def _history(self, record: RunRecord, journal: Journal) -> Sequence[Turn]:
        """Turns before this one; none for runs without a thread, and none, said so, when memory does not answer."""
        thread_id = record.request.thread_id
        if not thread_id or journal.progress.answer is not None:
            return ()
        try:
            history = await self._memory.history(thread_id, self._limits.history_turns)
            return await self._without_forgotten_turns(record, history)
        except GroundworkError as error:
            await journal.write(degraded("memory", "memory", error, "Going on without what was said before."))
            return ()

    async def _without_forgotten_turns(self, record: RunRecord, history: Sequence[Turn]) -> Sequence[Turn]:
        """What may be shown to a model, which may repeat it: this run then holds text of the runs that gave the answers."""
        if not self._drafter.model_name:
            return history
        answers = {turn.run_id for turn in history if turn.run_id and turn.role == "assistant"}
        forgotten = await self._sources.depend(record.dependent, [Source.run(run_id) for run_id in answers])
        return [turn for turn in history if turn.role != "assistant" or Source.run(turn.run_id) not in forgotten]

    async def _evidence(
        self, record: RunRecord, journal: Journal, history: Sequence[Turn], clocks: Clocks
    ) -> Retrieval | None:
        """The evidence set; None when search is down."""
        if journal.progress.retrieval is not None or journal.progress.answer is not None:
            return journal.progress.retrieval
        plan = journal.progress.plan or Plan("hybrid", search_queries(record.request.question, history))
        if journal.progress.plan is None:
            await journal.write(plan)
        request = record.request
        top_k = request.top_k or self._limits.evidence_top_k
        query = SearchQuery(plan.queries, request.collection_ids, request.document_ids, top_k)
        try:
            async with clocks.step("retrieve"):
                retrieval = await self._searcher.search(query)
        except _SEARCH_OUTAGES as error:
            if deadline.is_spent():
                raise
            await journal.write(degraded("retrieve", "search", error, "Search does not answer."))
            return None
        retrieval = await self._without_forgotten_documents(record, journal, retrieval)
        await journal.write(retrieval)
        for part in retrieval.degraded:
            await journal.write(Thinking("retrieve", part.message, part))
        return retrieval

    async def _without_forgotten_documents(
        self, record: RunRecord, journal: Journal, retrieval: Retrieval
    ) -> Retrieval:
        """The evidence without documents that were deleted while it was searched for. What cannot be noted is not logged."""
        if not journal.durable:
            return retrieval
        try:
            forgotten = await self._sources.depend(record.dependent, documents_of(retrieval))
        except Unavailable as error:
            journal.go_on_live(error)
            return retrieval
        kept = [hit for hit in retrieval.evidence if Source.document(hit.document_id) not in forgotten]
        return replace(
            retrieval, evidence=tuple(replace(hit, number=number) for number, hit in enumerate(kept, start=1))
        )

    async def _answer(
        self,
        record: RunRecord,
        journal: Journal,
        history: Sequence[Turn],
        retrieval: Retrieval | None,
        clocks: Clocks,
    ) -> tuple[Answer, TokenUsage]:
        if journal.progress.answer is not None:
            return journal.progress.answer, TokenUsage()
        if retrieval is None:
            await Screen(journal).settle(SEARCH_DOWN)
            answer = Answer(SEARCH_DOWN, (), SupportStatus.UNAVAILABLE, EXTRACTIVE)
            await journal.write(answer)
            return answer, TokenUsage()
        request = record.request
        answer_tokens = request.budgets.answer_tokens or self._limits.answer_tokens
        async with clocks.step("answer"):
            draft = await self._drafter.write(
                Question(request.question, history, retrieval.evidence, answer_tokens, retrieval.degraded), journal
            )
        answer = _published(draft, retrieval.evidence)
        let_go_of_texts()
        if draft.verification is not None:
            await journal.write(draft.verification)
        await journal.write(answer)
        return answer, draft.tokens

    def _usage(self, tokens: TokenUsage, seconds: float, step_seconds: Mapping[str, float], method: str) -> Usage:
        limits = self._limits
        cost_usd = (
            tokens.prompt_tokens * limits.prompt_usd_per_million_tokens
            + tokens.completion_tokens * limits.completion_usd_per_million_tokens
        ) / 1e6
        model = self._drafter.model_name if method == MODEL else ""
        return Usage(
            prompt_tokens=tokens.prompt_tokens,
            completion_tokens=tokens.completion_tokens,
            seconds=round(seconds, 4),
            cost_usd=cost_usd,
            step_seconds=step_seconds,
            model=model,
        )

    async def _remember(self, record: RunRecord, journal: Journal, answer: Answer) -> None:
        # A run that is not durable is done again by whoever finds it unfinished, and remembered then.
        if not record.request.thread_id or not journal.durable:
            return
        try:
            await self._memory.remember(record, answer)
        except GroundworkError as error:
            await journal.write(degraded("memory", "memory", error, "This turn could not be kept in its thread."))


def _published(draft: Draft, evidence: Sequence[Evidence]) -> Answer:
    citations = () if draft.is_refusal else cite(draft.text, evidence)
    return Answer(draft.text, citations, draft.support_status, draft.method)


def _is_refusal(answer: Answer) -> bool:
    return not answer.citations
