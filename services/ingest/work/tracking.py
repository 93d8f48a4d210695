"""Writing a document's record while it is ingested. Every write is a compare-and-set, and each conflict is looked at: a writer that
deleted the document or queued a newer revision meanwhile wins, and the ingestion ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from functools import partial

from kit.errors import Aborted, Unavailable
from services.ingest.documents import life
from services.ingest.documents.models import Document, IngestJob, Revision, StoredDocument
from services.ingest.errors import Superseded
from services.ingest.ports import DocumentStore, HeldLease

Step = Callable[[Document, datetime], Document]
"""A move of documents/life.py: the record as it is and the time make the record as it will be."""

REPORT_INTERVAL_S = 0.7
"""Least time between two writes of a document's progress: enough to look alive."""

REPORTS_PER_S = 4.0
"""What the documents in a worker's hands write together, at most. Each write also goes to everybody who watches: 2 ms of CPU."""

_IDLE_REPORTS = 3
"""After so many intervals without progress the record is read instead: another may have ended this ingestion."""

# Where each stage begins and ends on the bar that people see; embedding is what takes time.
_SHARE = {
    "parse": (0.0, 0.05),
    "ocr": (0.0, 0.05),
    "clean": (0.05, 0.06),
    "chunk": (0.06, 0.1),
    "embed": (0.1, 0.9),
    "index": (0.9, 0.98),
    "activate": (0.98, 1.0),
}


class Pace:
    """How often documents report, by how many are in hand."""

    def __init__(self) -> None:
        self._in_hand = 0

    @contextlib.contextmanager
    def one_more(self) -> Iterator[None]:
        """Counts a document for the block."""
        self._in_hand += 1
        try:
            yield
        finally:
            self._in_hand -= 1

    @property
    def interval_s(self) -> float:
        return max(REPORT_INTERVAL_S, self._in_hand / REPORTS_PER_S)


class Tracker:
    """The record of the document in hand."""

    def __init__(
        self, store: DocumentStore, stored: StoredDocument, job: IngestJob, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._stored = stored
        self._job = job
        self._now = now
        self._stage = "parse"
        self._progress = 0.0
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, store: DocumentStore, job: IngestJob, now: Callable[[], datetime]) -> "Tracker":
        """Raises Superseded when the job's revision need not be made any more."""
        stored = await store.get(job.tenant_id, job.document_id)
        if stored is None or not life.is_current(stored, job):
            raise Superseded
        return cls(store, stored, job, now)

    @property
    def document(self) -> Document:
        return self._stored.document

    @property
    def revision(self) -> Revision:
        assert self.document.pending is not None
        return self.document.pending

    async def move(self, step: Step) -> Document:
        """Writes the record that `step` makes of it. Raises Superseded when somebody else's change ended this ingestion."""
        async with self._lock:
            await self._write(step)
            return self._stored.document

    async def _write(self, step: Step) -> None:
        while True:
            moved = step(self._stored.document, self._now())
            try:
                self._stored = await self._store.update(moved, self._stored.version)
            except Aborted:
                await self._reload()
            else:
                return

    @property
    def stage(self) -> str:
        """Where the ingestion is, whether that has been written yet or not."""
        return self._stage

    def at(self, stage: str, fraction: float = 0.0) -> None:
        """Notes progress; `reporting` writes it when it is time."""
        begin, end = _SHARE[stage]
        self._stage = stage
        self._progress = round(begin + (end - begin) * fraction, 3)

    @contextlib.asynccontextmanager
    async def reporting(self, lease: HeldLease, pace: Pace) -> AsyncIterator[None]:
        """Writes progress while the block runs, and ends the block with Superseded or LeaseLost when it works for nothing."""
        with _unwrapped(), pace.one_more():
            async with asyncio.TaskGroup() as group:
                reporter = group.create_task(self._report(lease, pace))
                try:
                    yield
                finally:
                    reporter.cancel()

    async def _report(self, lease: HeldLease, pace: Pace) -> None:
        clock = asyncio.get_running_loop().time
        written, asked_at = (self.document.stage, self.document.progress), clock()
        while True:
            await asyncio.sleep(REPORT_INTERVAL_S)
            lease.check()
            silent_s = clock() - asked_at
            if silent_s < pace.interval_s:
                continue
            with contextlib.suppress(Unavailable):
                async with self._lock:
                    if self.document.pending is None:
                        return  # done: what comes now is not progress
                    noted = (self._stage, self._progress)
                    if noted != written:
                        stage, progress = noted
                        await self._write(partial(life.advance, stage=stage, progress=progress))
                        written, asked_at = noted, clock()
                    elif silent_s >= _IDLE_REPORTS * pace.interval_s:
                        await self._reload()
                        asked_at = clock()

    async def _reload(self) -> None:
        stored = await self._store.get(self._job.tenant_id, self._job.document_id)
        if stored is None or not life.is_current(stored, self._job):
            raise Superseded
        self._stored = stored


@contextlib.contextmanager
def _unwrapped() -> Iterator[None]:
    """Raises the first error of a task group instead of the group: callers handle errors, not bundles."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
