"""What the core needs from outside."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from kit.llm import ChatMessage, TokenUsage
from services.orchestrator.events import Retrieval, RunEvent
from services.orchestrator.models import Page, RunKey, RunRecord, SearchQuery, Turn


class EventLog(Protocol):
    """The durable log of runs. Each run is one subject; appending names the position it expects to be the last."""

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        """Appends and returns the new position. It is on disk when this returns.

        Raises FencedOff when another writer has appended meanwhile, Unavailable when the log cannot be reached.
        """
        ...

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        """All events so far in order, and the position of the last (0 when there is none)."""
        ...

    def follow(self, key: RunKey, after_seq: int, *, live: bool) -> AsyncIterator[RunEvent]:
        """Events with a higher seq, each once, in order; ends after `done`, and unless `live` at the end of what is stored."""
        ...


class RunStore(Protocol):
    """Summaries, leases and wishes to cancel."""

    async def create(self, record: RunRecord) -> None: ...

    async def get(self, key: RunKey) -> RunRecord | None: ...

    async def finish(self, record: RunRecord) -> None:
        """Stores a finished record; harmless when repeated."""
        ...

    async def forget_active(self, key: RunKey) -> None:
        """Strikes a run from the list of those that have not ended."""
        ...

    async def list(self, tenant_id: str, page_size: int, page_token: str) -> Page: ...

    def watch_running(self) -> AsyncIterator[tuple[RunKey, bool]]:
        """Every run that is running (True), and every change, until closed: for the sweeper."""
        ...

    async def acquire_lease(self, key: RunKey) -> bool:
        """True when no other orchestrator holds this run; it then belongs to this one for the lease's lifetime."""
        ...

    async def renew_lease(self, key: RunKey) -> bool:
        """False when the lease was lost."""
        ...

    async def release_lease(self, key: RunKey) -> None: ...

    async def request_cancel(self, key: RunKey) -> None: ...

    def watch_cancels(self) -> AsyncIterator[RunKey]:
        """Runs that somebody wants stopped, those wished for earlier included, until closed."""
        ...

    async def is_cancelled(self, key: RunKey) -> bool: ...


class Searcher(Protocol):
    async def search(self, query: SearchQuery) -> Retrieval:
        """The evidence set, numbered from 1. Raises Unavailable when neither engine answers."""
        ...


class SentenceScorer(Protocol):
    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        """Similarity of the question to each sentence, about -1 to 1."""
        ...


class Memory(Protocol):
    async def history(self, thread_id: str, limit: int) -> Sequence[Turn]:
        """The last turns, oldest first."""
        ...

    async def remember(self, thread_id: str, run_id: str, question: str, answer: str) -> None:
        """Appends the turn; harmless when repeated."""
        ...


class LanguageModel(Protocol):
    name: str

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float = 0.0
    ) -> AsyncIterator[str | TokenUsage]:
        """Pieces of the answer, then one TokenUsage. See kit.llm."""
        ...
