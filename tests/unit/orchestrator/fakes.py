"""Fakes of the orchestrator's ports, all in memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from kit.errors import Unavailable
from kit.forgetting import Source
from kit.llm import ChatMessage, TokenUsage
from kit.principal import current_principal
from services.orchestrator.errors import FencedOff
from services.orchestrator.log.events import Answer, Evidence, Retrieval, RunEvent
from services.orchestrator.models import Dependent, RunKey, RunRecord, SearchQuery, Turn

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


class FakeScorer:
    """Similarity by shared words: enough to tell the right sentence from the wrong one."""

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        asked = set(question.lower().strip("?").split())
        return [len(asked & set(text.lower().strip(".").split())) / max(len(asked), 1) for text in sentences]


class FakeMemory:
    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        self.turns = turns
        self.remembered: list[tuple[str, str, str, str]] = []
        self.forgotten: list[tuple[str, str, str]] = []
        """Subject, thread and run of each answer that was forgotten."""
        self.down = False

    async def history(self, thread_id: str, limit: int) -> Sequence[Turn]:
        if self.down:
            raise Unavailable("memory is down")
        return self.turns[-limit:]

    async def remember(self, record: RunRecord, answer: Answer) -> None:
        if self.down:
            raise Unavailable("memory is down")
        request = record.request
        self.remembered.append((request.thread_id, record.key.run_id, request.question, answer.text))

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
    """Says `pieces`, then raises `error` if there is one."""

    name = "fake"

    def __init__(self, pieces: Sequence[str], error: Exception | None = None) -> None:
        self.pieces = pieces
        self.error = error
        self.prompts: list[Sequence[ChatMessage]] = []

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float = 0.0
    ) -> AsyncIterator[str | TokenUsage]:
        self.prompts.append(messages)
        for piece in self.pieces:
            yield piece
        if self.error is not None:
            raise self.error
        yield TokenUsage(100, len(self.pieces))
