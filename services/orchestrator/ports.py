"""What the core needs from outside."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from kit.forgetting import Source
from services.orchestrator.log.events import Payload, Retrieval, RunEvent
from services.orchestrator.models import Dependent, Page, RunKey, RunRecord, SearchQuery, Turn


class EventLog(Protocol):
    """The durable log of runs. Each run is one subject; appending names the position it expects to be the last."""

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        """Appends and returns the new position. It is on disk when this returns.

        Raises FencedOff when another writer has appended meanwhile, Unavailable when the log cannot be reached.
        """
        ...

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        """All events so far in order, and the position of the last (0 when there is none). Raises RunForgotten."""
        ...

    def follow(self, key: RunKey, after_seq: int, *, live: bool) -> AsyncIterator[RunEvent]:
        """Events with a higher seq, each once, in order; ends after `done`, and unless `live` at the end of what is stored.

        Raises RunForgotten once the log has been erased.
        """
        ...

    async def erase(self, key: RunKey) -> None:
        """Removes all events and seals the log: nobody appends to it again, and whoever reads it is told. Harmless when repeated,
        and where there are no events."""
        ...

    def payloads(self) -> AsyncGenerator[tuple[RunKey, Payload], None]:
        """What all runs have written so far, by age."""
        ...


class RunStore(Protocol):
    """Summaries, leases and wishes to cancel."""

    async def create(self, record: RunRecord) -> None: ...

    async def get(self, key: RunKey) -> RunRecord | None: ...

    async def finish(self, record: RunRecord) -> None:
        """Stores how and when a run ended, unless its record has been deleted; harmless when repeated."""
        ...

    async def forget(self, key: RunKey, at: datetime) -> None:
        """Notes that the run's events were erased; one that had not ended ends as cancelled. Harmless where there is none."""
        ...

    async def delete(self, key: RunKey) -> None:
        """Removes all that is stored of a run. Harmless when repeated."""
        ...

    async def forget_active(self, key: RunKey) -> None:
        """Strikes a run from the list of those that have not ended."""
        ...

    def all(self) -> AsyncGenerator[RunRecord, None]:
        """The records of all tenants."""
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


class RunSources(Protocol):
    """Which runs hold text from which sources."""

    async def depend(self, run: Dependent, sources: Sequence[Source]) -> frozenset[Source]:
        """Notes that the run is about to write text from these sources. Returns those that are forgotten: their text must not be
        written. Raises Unavailable."""
        ...

    async def mark_forgotten(self, tenant_id: str, source: Source) -> None:
        """From now on `depend` tells of it, for a day."""
        ...

    async def dependents(self, tenant_id: str, source: Source) -> Sequence[Dependent]:
        """The runs that have noted the source."""
        ...

    async def drop_source(self, tenant_id: str, source: Source) -> None:
        """Removes what runs have noted of this source."""
        ...

    async def drop_run(self, key: RunKey) -> None:
        """Removes what this run has noted."""
        ...

    async def is_complete(self) -> bool:
        """Whether the runs of earlier versions have been noted too."""
        ...

    async def set_complete(self) -> None: ...


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

    async def forget_answer(self, thread_id: str, run_id: str) -> None:
        """Replaces the text of a run's answer by a notice; harmless when repeated, and where there is none."""
        ...
