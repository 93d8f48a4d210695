"""Fakes of the orchestrator's ports, all in memory."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from kit.access.principal import Principal, current_principal
from kit.errors import GroundworkError, NotFound, Unavailable
from kit.llm import (
    ChatMessage,
    Delta,
    Finish,
    FinishReason,
    ModelInfo,
    Operation,
    Request,
    Spent,
    TextDelta,
    TokenUsage,
    estimate_tokens,
)
from kit.stores.forgetting import Source, SourceKind
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import Answer, EffectClass, Evidence, Retrieval, RunEvent, RunStatus
from services.orchestrator.models import (
    Dependent,
    QuizAnswer,
    ReadableDocument,
    RunKey,
    RunRecord,
    RunRequest,
    SearchQuery,
    StoredQuiz,
    Tool,
    Turn,
)
from services.orchestrator.steps.effects import Call, Fate, ToolAnswer, ToolOutcome

EVIDENCE = (
    Evidence(1, "c1", "d1", "tower.txt", "The tower was built in 1889 by Gustave Eiffel.", dense_score=0.8, score=1.0),
    Evidence(2, "c2", "d2", "bridge.txt", "The bridge was opened in 1932.", dense_score=0.3, score=0.5),
)


class MemoryLog:
    """EventLog in a dict. `down` makes it unreachable; `crash_after` kills the writer behind an append of that seq."""

    def __init__(self) -> None:
        self.events: dict[RunKey, list[RunEvent]] = {}
        self.down = False

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        if self.down:
            raise Unavailable("the log is down")
        await asyncio.sleep(0)
        events = self.events.setdefault(key, [])
        if len(events) != last_position:
            raise FencedOff("somebody else writes")
        events.append(event)
        return len(events)

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        events = list(self.events.get(key, ()))
        return events, len(events)

    async def position(self, key: RunKey) -> int:
        return len(self.events.get(key, ()))

    async def follow(self, key: RunKey, after_seq: int, *, live: bool) -> AsyncIterator[RunEvent]:
        for event in self.events.get(key, ()):
            if event.seq > after_seq:
                yield event


class FakeSearcher:
    def __init__(self, retrieval: Retrieval | None = None) -> None:
        self.retrieval = retrieval or Retrieval(EVIDENCE, strategy="hybrid")
        self.queries: list[SearchQuery] = []
        self.down = False
        self.error: Exception | None = None

    async def search(self, query: SearchQuery) -> Retrieval:
        self.queries.append(query)
        if self.error is not None:
            raise self.error
        if self.down:
            raise Unavailable("both engines are down", reason="SEARCH_UNAVAILABLE")
        return self.retrieval


class FakeLibrary:
    """Library in memory: the chunks of each document by its id."""

    def __init__(self, documents: Mapping[str, Sequence[Evidence]] | None = None) -> None:
        self._chunks = documents if documents is not None else {each.document_id: [each] for each in EVIDENCE}
        self.reads: list[str] = []

    def add(self, document_id: str, chunks: Sequence[Evidence]) -> None:
        """Gives the document these chunks from now on."""
        self._chunks = {**self._chunks, document_id: chunks}

    async def documents(
        self, collection_ids: Sequence[str], document_ids: Sequence[str], most: int
    ) -> Sequence[ReadableDocument]:
        named = [each for each in self._chunks if not document_ids or each in document_ids]
        return [
            ReadableDocument(each, self._chunks[each][0].document_name, "r1", len(self._chunks[each])) for each in named
        ]

    async def chunks(self, document_id: str) -> Sequence[Evidence]:
        self.reads.append(document_id)
        return self._chunks.get(document_id, ())

    async def readable(self, document_ids: Sequence[str]) -> Set[str]:
        return {each for each in document_ids if each in self._chunks}

    async def around(self, chunk_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        found: dict[str, Sequence[Evidence]] = {}
        for chunks in self._chunks.values():
            for place, chunk in enumerate(chunks):
                if chunk.chunk_id in chunk_ids:
                    found[chunk.chunk_id] = (*chunks[max(0, place - 1) : place], *chunks[place + 1 : place + 2])
        return found


class FakeScorer:
    """Similarity by shared words: enough to tell the right sentence from the wrong one."""

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        asked = set(question.lower().strip("?").split())
        return [len(asked & set(text.lower().strip(".").split())) / max(len(asked), 1) for text in sentences]


class FakeMemory:
    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        self.turns = turns
        self.remembered: list[tuple[str, str, str, str]] = []
        self.endings: list[RunStatus] = []
        self.quizzes: dict[tuple[str, str], StoredQuiz] = {}
        """By thread and run."""
        self.forgotten: list[tuple[str, str, str]] = []
        """Subject, thread and run of each answer that was forgotten."""
        self.down = False

    async def history(self, thread_id: str, limit: int) -> Sequence[Turn]:
        if self.down:
            raise Unavailable("memory is down")
        return self.turns[-limit:]

    async def remember(self, record: RunRecord, answer: Answer, status: RunStatus) -> None:
        if self.down:
            raise Unavailable("memory is down")
        request = record.request
        self.endings.append(status)
        self.remembered.append((request.thread_id, record.key.run_id, request.question, answer.text))

    async def quiz(self, thread_id: str, run_id: str) -> StoredQuiz:
        if (thread_id, run_id) not in self.quizzes:
            raise NotFound("there is no such quiz", reason="ARTEFACT_NOT_FOUND")
        return self.quizzes[thread_id, run_id]

    async def record_answers(self, thread_id: str, run_id: str, answers: Sequence[QuizAnswer]) -> StoredQuiz:
        stored = await self.quiz(thread_id, run_id)
        known = {each.question_id: each for each in [*stored.answers, *answers]}
        self.quizzes[thread_id, run_id] = replace(stored, answers=tuple(known.values()))
        return self.quizzes[thread_id, run_id]

    async def forget_answer(self, thread_id: str, run_id: str) -> None:
        if self.down:
            raise Unavailable("memory is down")
        self.forgotten.append((current_principal().subject, thread_id, run_id))


class FakeSources:
    """RunSources in memory."""

    def __init__(self) -> None:
        self.noted: dict[tuple[str, Source], dict[RunKey, Dependent]] = {}
        self.forgotten: set[tuple[str, Source]] = set()
        self.complete = False
        self.down = False

    async def depend(self, run: Dependent, sources: Sequence[Source]) -> frozenset[Source]:
        if self.down:
            raise Unavailable("the store is down")
        for source in sources:
            self.noted.setdefault((run.key.tenant_id, source), {})[run.key] = run
        return frozenset(source for source in sources if (run.key.tenant_id, source) in self.forgotten)

    async def mark_forgotten(self, tenant_id: str, source: Source) -> None:
        self.forgotten.add((tenant_id, source))

    async def dependents(self, tenant_id: str, source: Source) -> Sequence[Dependent]:
        return list(self.noted.get((tenant_id, source), {}).values())

    async def documents_of(self, key: RunKey) -> Sequence[str]:
        return [
            source.item_id
            for (tenant_id, source), runs in self.noted.items()
            if tenant_id == key.tenant_id and source.kind == SourceKind.DOCUMENT and key in runs
        ]

    async def drop_source(self, tenant_id: str, source: Source) -> None:
        self.noted.pop((tenant_id, source), None)

    async def drop_run(self, key: RunKey) -> None:
        for runs in self.noted.values():
            runs.pop(key, None)

    async def is_complete(self) -> bool:
        return self.complete

    async def set_complete(self) -> None:
        self.complete = True


class FakeModel:
    """Says `pieces` (text, or any delta), then raises `error` if there is one, else ends for `reason`."""

    def __init__(
        self,
        pieces: Sequence[str | Delta],
        error: Exception | None = None,
        *,
        reason: FinishReason = FinishReason.STOP,
        context_tokens: int = 4096,
        counter: Callable[[str], int] = estimate_tokens,
    ) -> None:
        self.pieces = pieces
        self.error = error
        self.reason = reason
        self.context_tokens = context_tokens
        self.counter = counter
        self.prompts: list[Sequence[ChatMessage]] = []
        self.requests: list[Request] = []

    def info(self, operation: Operation) -> ModelInfo:
        return ModelInfo("fake", "fake", self.context_tokens)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        return [self.counter(text) for text in texts]

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.prompts.append(request.messages)
        self.requests.append(request)
        usage = TokenUsage(100, len(self.pieces))
        try:
            for piece in self.pieces:
                yield TextDelta(piece) if isinstance(piece, str) else piece
            if self.error is not None:
                raise self.error
            yield Finish(self.reason, usage, "fake", "fake")
        finally:
            if request.meter is not None:
                request.meter.add(Spent("fake", "fake", usage))


class FakeRules:
    """CollectionRules: the collections in `bound` allow local models only."""

    def __init__(self, bound: Iterable[str] = ()) -> None:
        self.bound = set(bound)

    async def bind_to_local_models(self, caller: Principal, request: RunRequest) -> bool:
        return not self.bound.isdisjoint(request.collection_ids)


class FakeTools:
    """The tools service: keeps what came of each call by its id, so that asked again it is the same call. `made` are the calls that
    were made, in order."""

    def __init__(
        self, tools: Sequence[Tool] = (), answer: Callable[[str, Mapping[str, Any]], ToolOutcome] | None = None
    ) -> None:
        self.tools = list(tools)
        self.made: list[tuple[str, Mapping[str, Any]]] = []
        self.forgotten: list[tuple[str, str]] = []
        self.failure: GroundworkError | None = None
        self._answer = answer or (lambda name, _: ToolOutcome(True, {"said_by": name}, f"{name} answered."))
        self._outcomes: dict[str, ToolOutcome] = {}
        self.answers: tuple[ToolAnswer, ...] = ()
        """Those of the call that was made ready last."""

    async def offered(self) -> Sequence[Tool]:
        return self.tools

    def call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        collection_ids: Sequence[str],
        progress: Callable[[str], Awaitable[None]] | None = None,
        answers: Sequence[ToolAnswer] = (),
    ) -> Call:
        self.answers = tuple(answers)
        return _FakeCall(self, tool.name, arguments, tool.effect)

    async def forget_calls(self, run_id: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.forgotten.append((current_principal().tenant_id, run_id))

    async def outcome(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        if call_id not in self._outcomes:
            self.made.append((name, arguments))
            self._outcomes[call_id] = self._answer(name, arguments)
        return self._outcomes[call_id]


@dataclass(frozen=True)
class _FakeCall:
    tools: FakeTools
    name: str
    arguments: Mapping[str, Any]
    effect: EffectClass

    async def run(self, call_id: str) -> ToolOutcome:
        return await self.tools.outcome(call_id, self.name, self.arguments)

    async def find(self, call_id: str) -> ToolOutcome | Fate:
        return await self.run(call_id)
