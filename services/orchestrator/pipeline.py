"""The steps of a grounded run: memory → plan → retrieve → answer → verify → finish → remember. Each step's result is an event in
the log before the next begins; a step whose result is already there is not done again."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from kit.errors import GroundworkError, Unavailable
from kit.llm import TokenUsage
from services.orchestrator import extractive
from services.orchestrator.events import (
    AgentChosen,
    Answer,
    Degradation,
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
    Verification,
)
from services.orchestrator.extractive import ExtractiveSettings, Passage
from services.orchestrator.followups import search_queries
from services.orchestrator.generation import REFUSAL, Generator
from services.orchestrator.journal import Journal
from services.orchestrator.models import RunRecord, SearchQuery, Turn
from services.orchestrator.ports import Memory, Searcher, SentenceScorer
from services.orchestrator.screen import Screen
from services.orchestrator.verification import attribute, cite, verify

SEARCH_DOWN = (
    "Search is not available at the moment, so this question cannot be answered. Please ask again in a minute."
)
MODEL, EXTRACTIVE = "model", "extractive"
DEFAULT_AGENT = "reasoning"


@dataclass(frozen=True)
class Limits:
    """Numbers of the pipeline; see settings.py for their reasons."""

    evidence_top_k: int = 8
    history_turns: int = 8
    answer_tokens: int = 600
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


@dataclass(frozen=True)
class _Draft:
    """An answer before it is published."""

    text: str
    method: str
    verification: Verification | None
    tokens: TokenUsage = TokenUsage()
    refused: bool = False


class Pipeline:
    """Runs the modes qa and grounded. Without a generator, answers are extractive."""

    def __init__(
        self,
        searcher: Searcher,
        scorer: SentenceScorer,
        memory: Memory,
        generator: Generator | None,
        limits: Limits,
        extractive_settings: ExtractiveSettings = ExtractiveSettings(),  # noqa: B008 - frozen
    ) -> None:
        self._searcher = searcher
        self._scorer = scorer
        self._memory = memory
        self._generator = generator
        self._limits = limits
        self._extractive_settings = extractive_settings

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
            await journal.write(self._usage(tokens, clocks.seconds, answer.method))
        await self._remember(record, journal, answer)
        status = RunStatus.REFUSED if _is_refusal(answer) else RunStatus.COMPLETED
        await journal.write(Done(status))
        return status

    async def _open(self, record: RunRecord, journal: Journal) -> None:
        request = record.request
        if journal.progress.started:
            await journal.write(Thinking("resume", "Another worker continues this answer."))
        else:
            model = self._generator.model.name if self._generator else ""
            await journal.write(
                RunStarted(
                    mode=request.mode,
                    question=request.question,
                    thread_id=request.thread_id,
                    collection_ids=request.collection_ids,
                    budgets=request.budgets,
                    model=model,
                )
            )
        if request.mode is RunMode.GROUNDED and journal.progress.agent is None:
            chosen_by = "default" if request.agent in ("", "auto") else "explicit"
            await journal.write(AgentChosen(DEFAULT_AGENT, chosen_by))

    async def _history(self, record: RunRecord, journal: Journal) -> Sequence[Turn]:
        """Turns before this one; none for runs without a thread, and none, said so, when memory does not answer."""
        thread_id = record.request.thread_id
        if not thread_id or journal.progress.answer is not None:
            return ()
        try:
            return await self._memory.history(thread_id, self._limits.history_turns)
        except GroundworkError as error:
            await journal.write(_degraded("memory", "memory", error, "Going on without what was said before."))
            return ()

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
        except Unavailable as error:
            await journal.write(_degraded("retrieve", "search", error, "Search does not answer."))
            return None
        await journal.write(retrieval)
        for part in retrieval.degraded:
            await journal.write(Thinking("retrieve", part.message, part))
        return retrieval

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
        screen = Screen(journal)
        if retrieval is None:
            await screen.settle(SEARCH_DOWN)
            answer = Answer(SEARCH_DOWN, (), SupportStatus.UNAVAILABLE, EXTRACTIVE)
            await journal.write(answer)
            return answer, TokenUsage()
        async with clocks.step("answer"):
            draft = await self._draft(record, journal, history, retrieval.evidence, screen)
            await screen.settle(draft.text)
        answer = _published(draft, retrieval.evidence)
        if draft.verification is not None:
            await journal.write(draft.verification)
        await journal.write(answer)
        return answer, draft.tokens

    async def _draft(
        self,
        record: RunRecord,
        journal: Journal,
        history: Sequence[Turn],
        evidence: Sequence[Evidence],
        screen: Screen,
    ) -> _Draft:
        if self._generator is None or not evidence:
            return await self._extract(record.request.question, journal, evidence, screen)
        try:
            draft = await self._generate(self._generator, record, journal, history, evidence, screen)
        except GroundworkError as error:
            await journal.write(_degraded("answer", "llm", error, "Quoting the documents instead."))
            return await self._extract(record.request.question, journal, evidence, screen)
        if draft.refused or _carries_something(draft):
            return draft
        note = Degradation("llm", "UNSUPPORTED_ANSWER", "Nothing the model wrote is carried by the documents.")
        await journal.write(Thinking("verify", f"{note.message} Quoting the documents instead.", note))
        fallback = await self._extract(record.request.question, journal, evidence, screen)
        return replace(fallback, tokens=draft.tokens)

    async def _generate(
        self,
        generator: Generator,
        record: RunRecord,
        journal: Journal,
        history: Sequence[Turn],
        evidence: Sequence[Evidence],
        screen: Screen,
    ) -> _Draft:
        max_tokens = record.request.budgets.answer_tokens or self._limits.answer_tokens
        generated = await generator.write(record.request.question, history, evidence, screen, max_tokens=max_tokens)
        if generated.is_refusal:
            return _Draft(REFUSAL, MODEL, None, generated.usage, refused=True)
        if generated.invented_citations:
            text = f"{generated.invented_citations} citation(s) of sources that do not exist were removed."
            await journal.write(Thinking("verify", text, Degradation("llm", "INVENTED_CITATION", text)))
        text = attribute(generated.text, evidence)
        return _Draft(text, MODEL, verify(text, evidence), generated.usage)

    async def _extract(self, question: str, journal: Journal, evidence: Sequence[Evidence], screen: Screen) -> _Draft:
        passages = [_passage(source) for source in evidence]
        found = await extractive.answer(question, passages, self._scorer, self._extractive_settings)
        if found.degraded_reason:
            note = Degradation("rerank", "SENTENCE_SCORES_UNAVAILABLE", found.degraded_reason)
            await journal.write(Thinking("answer", "Choosing sentences by their words alone.", note))
        if not found.answerable:
            return _Draft(REFUSAL, EXTRACTIVE, None, refused=True)
        text = ""
        for piece in extractive.render(found):
            text += piece
            await screen.show(text)
        return _Draft(text, EXTRACTIVE, verify(text, evidence))

    def _usage(self, tokens: TokenUsage, step_seconds: Mapping[str, float], method: str) -> Usage:
        limits = self._limits
        cost_usd = (
            tokens.prompt_tokens * limits.prompt_usd_per_million_tokens
            + tokens.completion_tokens * limits.completion_usd_per_million_tokens
        ) / 1e6
        model = self._generator.model.name if self._generator and method == MODEL else ""
        return Usage(
            prompt_tokens=tokens.prompt_tokens,
            completion_tokens=tokens.completion_tokens,
            seconds=round(sum(step_seconds.values()), 4),
            cost_usd=cost_usd,
            step_seconds=step_seconds,
            model=model,
        )

    async def _remember(self, record: RunRecord, journal: Journal, answer: Answer) -> None:
        request = record.request
        if not request.thread_id:
            return
        try:
            await self._memory.remember(request.thread_id, record.key.run_id, request.question, answer.text)
        except GroundworkError as error:
            await journal.write(_degraded("memory", "memory", error, "This turn could not be kept in its thread."))


def _published(draft: _Draft, evidence: Sequence[Evidence]) -> Answer:
    if draft.verification is None:
        return Answer(draft.text, (), SupportStatus.INSUFFICIENT, draft.method)
    return Answer(draft.text, cite(draft.text, evidence), draft.verification.support_status, draft.method)


def _carries_something(draft: _Draft) -> bool:
    return draft.verification is not None and draft.verification.support_status is not SupportStatus.INSUFFICIENT


def _is_refusal(answer: Answer) -> bool:
    return not answer.citations


def _passage(source: Evidence) -> Passage:
    return Passage(
        number=source.number,
        text=source.text,
        document_id=source.document_id,
        chunk_id=source.chunk_id,
        score=source.score,
        dense_score=source.dense_score,
        char_start=source.char_start,
        document_name=source.document_name,
        heading_path=tuple(source.heading_path),
    )


def _degraded(phase: str, part: str, error: GroundworkError, text: str) -> Thinking:
    return Thinking(phase, text, Degradation(part, error.reason, error.message))
