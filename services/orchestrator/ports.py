"""What the core needs from outside."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Protocol

from kit.access.principal import Principal
from kit.stores.forgetting import Source
from services.orchestrator.log.events import Answer, Evidence, Payload, Retrieval, RunEvent, RunStatus
from services.orchestrator.models import (
    Dependent,
    MarkerChange,
    Page,
    QuizAnswer,
    ReadableDocument,
    RunKey,
    RunMarker,
    RunRecord,
    RunRequest,
    SearchQuery,
    StoredQuiz,
    Tool,
    Turn,
)
from services.orchestrator.steps.effects import Call, ToolAnswer


class RunLog(Protocol):
    """What a run's writer does with the log of runs. Each run is one subject; appending names the position it expects to be the
    last."""

    async def append(self, key: RunKey, event: RunEvent, last_position: int) -> int:
        """Appends and returns the new position. It is on disk when this returns.

        Raises FencedOff when another writer has appended meanwhile, Unavailable when the log cannot be reached.
        """
        ...

    async def read(self, key: RunKey) -> tuple[Sequence[RunEvent], int]:
        """All events so far in order, and the position of the last (0 when there is none). Raises RunForgotten."""
        ...


class EventLog(RunLog, Protocol):
    """The durable log of runs."""

    def follow(self, key: RunKey, after_seq: int, *, live: bool) -> AsyncGenerator[RunEvent, None]:
        """Events with a higher seq, each once, in order; ends after `done`, and unless `live` at the end of what is stored.

        Raises RunForgotten or RunNotFound once the log has been erased, and RunExpired when nothing is stored of a run that is not
        live.
        """
        ...

    def hold(self, key: RunKey) -> None:
        """This process works on the run: it alone appends to it, but for decisions, and hands what it appends to who follows the
        run here."""
        ...

    def let_go(self, key: RunKey) -> None:
        """This process does not work on the run any more: who follows it here hears of it from the store."""
        ...

    async def erase(self, key: RunKey, *, deleted: bool) -> None:
        """Removes all events and seals the log: nobody appends to it again, and its readers learn that the run was
        `deleted`, or else a document that it quotes. Harmless when repeated, and where there are no events."""
        ...

    async def position(self, key: RunKey) -> int:
        """Of the last entry; 0 when there is none."""
        ...

    def payloads(self) -> AsyncGenerator[tuple[RunKey, Payload], None]:
        """What all runs have written so far, by age."""
        ...


class RunStore(Protocol):
    """Summaries, wishes to cancel and idempotency keys."""

    async def create(self, record: RunRecord) -> None:
        """Raises AlreadyExists."""
        ...

    async def get(self, key: RunKey) -> RunRecord | None:
        """Raises RunDamaged."""
        ...

    async def finish(self, record: RunRecord) -> None:
        """Stores how and when a run ended and what came out, unless its record has been deleted, and removes its marker; harmless
        when repeated. Of a run whose text was erased no text is stored."""
        ...

    async def set_status(self, record: RunRecord) -> None:
        """Stores the record's status, and what the run asks, in the present format, unless the run has ended."""
        ...

    async def drop_outcome(self, key: RunKey) -> None:
        """Removes what the run answered from its record, and what was said before. Harmless when repeated, and where there is
        none."""
        ...

    async def drop_said_before(self, key: RunKey) -> None:
        """Removes earlier answers, calls and what these returned from the record of a run. Harmless when repeated, and where there
        is none."""
        ...

    async def forget(self, key: RunKey, at: datetime) -> None:
        """Notes that the run's events were erased, and removes its answer; one that had not ended ends as cancelled. Harmless where
        there is none."""
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

    async def list(self, tenant_id: str, page_size: int, page_token: str, subject: str | None = None) -> Page:
        """Runs of a tenant, newest first, without their outcome; with `subject` those of one only."""
        ...

    async def request_cancel(self, key: RunKey) -> None: ...

    def watch_cancels(self) -> AsyncIterator[RunKey]:
        """Runs that somebody wants stopped, those wished for earlier included, until closed."""
        ...

    async def is_cancelled(self, key: RunKey) -> bool: ...

    async def claim_key(self, principal: Principal, key: str, request: RunRequest, run_id: str) -> str:
        """The id of the run that the principal's idempotency key stands for: `run_id` when it is new. Raises IdempotencyConflict
        when it stands for another request."""
        ...

    async def free_key(self, principal: Principal, key: str, run_id: str) -> None:
        """Lets the key be used for another request, unless it stands for another run or its run was made after all. Harmless when
        repeated."""
        ...


class CollectionRules(Protocol):
    """What collections demand of runs."""

    async def bind_to_local_models(self, caller: Principal, request: RunRequest) -> bool:
        """Whether the run asks local models only: one of its collections allows no others. A run that names no collection may
        search all that its caller reads. Raises CollectionsStale, Unavailable."""
        ...


class Markers(Protocol):
    """Who works on each run that has not ended, and which orchestrator processes live."""

    async def renew(self, owner: str) -> None:
        """The process lives, for a lease's lifetime from now."""
        ...

    async def leave(self, owner: str) -> None:
        """The process works on nothing any more."""
        ...

    async def is_alive(self, owner: str) -> bool: ...

    async def create(self, key: RunKey, marker: RunMarker) -> int | None:
        """The marker's revision; None when the run has one."""
        ...

    async def read(self, key: RunKey) -> RunMarker | None: ...

    async def update(self, key: RunKey, marker: RunMarker) -> int | None:
        """The new revision; None when the run's marker has another than `marker.revision` by now."""
        ...

    def changes(self, after: int) -> AsyncGenerator[MarkerChange, None]:
        """What became of markers behind this revision, each in its last state, by age. The newest may be missing."""
        ...

    async def last_revision(self) -> int:
        """Of the newest change that the store has; 0 when there is none."""
        ...

    def released(self) -> AsyncGenerator[None, None]:
        """Each time when somebody has let runs go that anybody may take, until closed. Not every time is heard."""
        ...

    async def living(self) -> Collection[str]:
        """The processes that live, and at times some that have just left."""
        ...


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

    async def documents_of(self, key: RunKey) -> Sequence[str]:
        """Ids of the documents that the run has noted; not of web pages and rows. Raises Unavailable."""
        ...

    async def drop_source(self, tenant_id: str, source: Source) -> None:
        """Removes what runs have noted of this source."""
        ...

    async def drop_run(self, key: RunKey) -> None:
        """Removes what this run has noted."""
        ...

    async def is_complete(self) -> bool:
        """Whether the sources of all stored runs are noted. False of a store that was lost."""
        ...

    async def set_complete(self) -> None: ...


class Searcher(Protocol):
    async def search(self, query: SearchQuery) -> Retrieval:
        """The evidence set, numbered from 1. Raises Unavailable when neither engine answers."""
        ...


class Library(Protocol):
    """Whole documents, as far as the run's principal may read them."""

    async def documents(
        self, collection_ids: Sequence[str], document_ids: Sequence[str], most: int
    ) -> Sequence[ReadableDocument]:
        """The searchable documents of the collections, or those of them that are named: at most so many. Raises Unavailable."""
        ...

    async def chunks(self, document_id: str) -> Sequence[Evidence]:
        """The chunks of its visible revision in reading order, numbered from 1; none where there is no such document any more.
        Raises Unavailable."""
        ...

    async def readable(self, document_ids: Sequence[str]) -> Set[str]:
        """Those of the documents that exist and that the principal may read. Raises Unavailable."""
        ...

    async def around(self, chunk_ids: Sequence[str]) -> Mapping[str, Sequence[Evidence]]:
        """Of each chunk the one before it and the one after it in its document, without numbers; at most 200 chunks. One that does
        not exist any more is left out. Raises Unavailable."""
        ...


class Tools(Protocol):
    """The tools service, in the name of the run's principal."""

    async def offered(self) -> Sequence[Tool]:
        """The tools that the tenant may use, by name. Raises Unavailable."""
        ...

    def call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        collection_ids: Sequence[str],
        progress: Callable[[str], Awaitable[None]] | None = None,
        answers: Sequence[ToolAnswer] = (),
    ) -> Call:
        """A call that may read these collections, all of the tenant's when there are none; ready to be made by `Run.effect`.
        `progress` gets short sentences that say what the tool is doing, at most twenty for a call. `answers` are to what it has
        asked before."""
        ...


class ToolNotes(Protocol):
    """What the tools service has noted of calls."""

    async def forget_calls(self, run_id: str) -> None:
        """Erases what came of the calls of a run, and has those refused that still arrive. Harmless when repeated. Raises
        Unavailable."""
        ...


class SentenceScorer(Protocol):
    """Late-interaction (MaxSim) or cosine similarity of a question to sentences."""

    async def score(self, question: str, sentences: Sequence[str]) -> Sequence[float]:
        """One score a sentence, in order, about -1 to 1. May raise anything: the answerer goes on without."""
        ...


class Memory(Protocol):
    async def history(self, thread_id: str, limit: int) -> Sequence[Turn]:
        """The last turns, oldest first."""
        ...

    async def remember(self, record: RunRecord, answer: Answer, status: RunStatus) -> None:
        """Appends the run's question and answer to its thread, with how the run ended; harmless when repeated."""
        ...

    async def quiz(self, thread_id: str, run_id: str) -> StoredQuiz:
        """The quiz that a run has made in the thread. Raises NotFound."""
        ...

    async def record_answers(self, thread_id: str, run_id: str, answers: Sequence[QuizAnswer]) -> StoredQuiz:
        """Keeps graded answers with their quiz, each in place of the one before to its question. Raises NotFound."""
        ...

    async def forget_answer(self, thread_id: str, run_id: str) -> None:
        """Replaces the text of a run's answer by a notice; harmless when repeated, and where there is none."""
        ...
