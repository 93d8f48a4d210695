"""What a try at a document costs. The count is kept in the document's record, where it survives every process: only errors that may
be the document's, and deaths of the worker that had it in hand, bring it nearer to being given up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog

from kit.errors import Aborted, Cancelled, GroundworkError, ResourceExhausted, Unavailable
from services.ingest.documents import life
from services.ingest.documents.models import Failure, IngestJob, Tries
from services.ingest.errors import DocumentRejected, Superseded, WorkersDied
from services.ingest.ports import DocumentStore
from services.ingest.work.tracking import Tracker

_log = structlog.get_logger()

DEATHS_MAX = 5
"""Workers a document may take with it before it is given up."""

SUSPECT_DEATHS = 3
"""From so many deaths on, documents are read one at a time, so that the next death counts for one of them alone: those that were
merely in hand beside a file that kills are acquitted."""

REST_S = (0.0, 0.0, 5.0, 20.0, 120.0)
"""Seconds that a document is left alone after so many deaths. A file that kills ends workers ever more rarely, and a storm that
ends them for another reason passes over the documents that were merely in hand."""

_HAND_BACK_TIMEOUT_S = 2.0


@dataclass
class FailedTry(Exception):
    """A try that did not come to its end. `tries` counts this one, or is None when nobody's fault was found with the document."""

    error: Exception
    tries: Tries | None
    stage: str


class Ledger:
    """Writes the tries of documents. `worker_id` is this process's own and differs after every start."""

    def __init__(self, documents: DocumentStore, now: Callable[[], datetime], worker_id: str) -> None:
        self._documents = documents
        self._now = now
        self._worker_id = worker_id
        self._suspect = asyncio.Lock()

    @asynccontextmanager
    async def one_try(self, tracker: Tracker, job: IngestJob) -> AsyncIterator[Tries]:
        """Runs the block as one try at the tracker's document; the caller writes the yielded tries into the record first.

        Raises FailedTry for what the block raises, unless that is an answer (rejected, superseded) or a cancellation.
        """
        tries = self._begun(tracker.document.tries)
        if tries.deaths >= DEATHS_MAX:
            raise FailedTry(_workers_died(tries.deaths), tries, tracker.document.stage)
        await self._rest(tracker, tries)
        async with self._suspect if tries.deaths >= SUSPECT_DEATHS else nullcontext():
            try:
                yield tries
            except (Superseded, DocumentRejected):
                raise
            except asyncio.CancelledError:
                await self._hand_back(job, tracker.stage)
                raise
            except Exception as error:
                counted = is_fault(error)
                settled = await self._settle(job, error if counted else None, tracker.stage)
                raise FailedTry(error, settled if counted else None, tracker.stage) from error

    def _begun(self, tries: Tries) -> Tries:
        """The tries when this worker takes the document in hand: a mark of another worker is that of a dead one, since the
        document's lease is ours."""
        if not tries.worker_id or tries.worker_id == self._worker_id:
            return replace(tries, worker_id=self._worker_id)
        now = self._now()
        return replace(
            tries,
            worker_id=self._worker_id,
            deaths=tries.deaths + 1,
            first_failed_at=tries.first_failed_at or now,
            last_failed_at=now,
        )

    async def _rest(self, tracker: Tracker, tries: Tries) -> None:
        """Ends the try before it has begun while the document is to be left alone."""
        since = tries.last_failed_at
        if not since or not tries.deaths:
            return
        # A clock that was set back far is as good as one that went on: the rest would last until it has caught up.
        rested_s = abs((self._now() - since).total_seconds())
        rest_s = REST_S[tries.deaths] - rested_s
        if rest_s <= 0:
            return
        waiting = replace(tries, worker_id="")
        await tracker.move(partial(life.hand_back, stage=tracker.document.stage, tries=waiting))
        resting = Unavailable(
            f"{tries.deaths} workers ended with this document in hand; it is left alone for a while",
            reason="WORKERS_DIED",
            retry_after_s=rest_s,
        )
        raise FailedTry(resting, None, tracker.document.stage)

    async def _hand_back(self, job: IngestJob, stage: str) -> None:
        """This worker has to stop, so there is little time: a mark that stays behind counts as a death."""
        try:
            async with asyncio.timeout(_HAND_BACK_TIMEOUT_S):
                await self._settle(job, None, stage)
        except (TimeoutError, GroundworkError) as error:
            _log.warning("job_not_handed_back", error=str(error))

    async def _settle(self, job: IngestJob, error: Exception | None, stage: str) -> Tries | None:
        """Takes our mark off the record and counts `error`. None when the document is no longer ours."""
        while True:
            stored = await self._documents.get(job.tenant_id, job.document_id)
            if (
                stored is None
                or not life.is_current(stored, job)
                or stored.document.tries.worker_id not in ("", self._worker_id)
            ):
                return None
            tries = self._ended(stored.document.tries, error)
            waiting = life.hand_back(stored.document, self._now(), stage, tries)
            try:
                await self._documents.update(waiting, stored.version)
            except Aborted:
                continue
            return tries

    def _ended(self, tries: Tries, error: Exception | None) -> Tries:
        if error is None:
            return replace(tries, worker_id="")
        now = self._now()
        return replace(
            tries,
            worker_id="",
            failures=tries.failures + 1,
            last_failure=failure_of(error),
            first_failed_at=tries.first_failed_at or now,
            last_failed_at=now,
        )


def is_fault(error: Exception) -> bool:
    """Whether an error may be the document's. A neighbour that is away, full or stopping says nothing about the document."""
    return not isinstance(error, Unavailable | ResourceExhausted | Cancelled)


def failure_of(error: Exception) -> Failure:
    """An error as people see it. A foreign error may hold anything, so only its type is shown."""
    if isinstance(error, GroundworkError):
        return Failure(error.reason, error.message)
    return Failure(
        "INTERNAL", f"something went wrong that should not ({type(error).__name__}); the worker's log says more"
    )


def _workers_died(deaths: int) -> WorkersDied:
    return WorkersDied(
        f"reading this file ended the worker {deaths} times; it is probably damaged: save it again and upload that"
    )
