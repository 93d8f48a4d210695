"""What becomes of a job after a try: done, another try later, or given up with a dead letter. A file that cannot be read is none of
these: its document fails, with a reason, at the first try."""

from collections.abc import Callable
from datetime import datetime

import structlog

from kit.errors import Code, GroundworkError
from services.ingest.documents import life
from services.ingest.documents.models import DeadLetter, Failure, IngestJob, Tries
from services.ingest.ports import DeadLetterStore, DocumentStore
from services.ingest.work.ledger import FailedTry, failure_of
from services.ingest.work.pipeline import Pipeline

_log = structlog.get_logger()

FAILURES_MAX = 5
"""Failed tries before a job is given up whose error is of our own making: it will hardly go away."""

NEIGHBOUR_FAILURES_MAX = 12
"""The same for errors that a neighbour answers with: over an hour, in which a broken one is repaired."""

BACKOFF_S = (1.0, 5.0, 15.0, 60.0, 300.0, 600.0)
"""Seconds before the next try, by failures so far; the last repeats."""

WAIT_S = 5.0
"""Seconds before the next try where nothing was wrong with the document."""

_HOPELESS = {Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.DATA_LOSS}
"""Answers that another try would only get again."""


class Attempts:
    """Runs jobs."""

    def __init__(
        self,
        pipeline: Pipeline,
        documents: DocumentStore,
        dead_letters: DeadLetterStore,
        now: Callable[[], datetime],
    ) -> None:
        self._pipeline = pipeline
        self._documents = documents
        self._dead_letters = dead_letters
        self._now = now

    async def run(self, job: IngestJob, delivery: int) -> float | None:
        """One try. None when the job is done with, else the seconds until the next."""
        try:
            await self._pipeline.handle(job, delivery)
        except FailedTry as failed:
            return await self._after(job, failed)
        except GroundworkError as error:  # before the document was in hand: a store that is away
            _log.warning("job_waits", reason=error.reason, error=error.message)
            return error.retry_after_s or WAIT_S
        return None

    async def _after(self, job: IngestJob, failed: FailedTry) -> float | None:
        error, tries = failed.error, failed.tries
        if tries is None:
            _log.warning("job_waits", error=repr(error))
            return (error.retry_after_s if isinstance(error, GroundworkError) else None) or WAIT_S
        if not isinstance(error, GroundworkError):
            _log.error("job_failed_unexpectedly", error=repr(error), exc_info=error)
        failures_max = NEIGHBOUR_FAILURES_MAX if isinstance(error, GroundworkError) else FAILURES_MAX
        if is_hopeless(error) or tries.failures >= failures_max:
            await self._give_up(job, failed, tries)
            return None
        _log.warning("job_will_be_tried_again", failures=tries.failures, error=repr(error))
        return BACKOFF_S[min(tries.failures, len(BACKOFF_S)) - 1]

    async def _give_up(self, job: IngestJob, failed: FailedTry, tries: Tries) -> None:
        """The letter first: a job that dies in between is given up once more, to the same letter."""
        failure = failure_of(failed.error)
        stored = await self._documents.get(job.tenant_id, job.document_id)
        if stored is None or not life.is_current(stored, job):
            return
        document, now = stored.document, self._now()
        assert document.pending is not None
        letter = DeadLetter(
            tenant_id=job.tenant_id,
            revision_id=job.revision_id,
            revision_number=document.pending.number,
            document_id=job.document_id,
            collection_id=document.collection_id,
            document_name=document.name,
            failure=failure,
            stage=failed.stage,
            failures=tries.failures,
            deaths=tries.deaths,
            first_failed_at=tries.first_failed_at or now,
            last_failed_at=tries.last_failed_at or now,
        )
        await self._dead_letters.put(letter)
        _log.error("job_given_up", document_id=job.document_id, reason=failure.reason, error=failure.message)
        await self._pipeline.fail(job, _add_tries(failure, tries))


def is_hopeless(error: Exception) -> bool:
    """Whether another try cannot end otherwise."""
    if not isinstance(error, GroundworkError):
        return False
    return error.reason == "WORKER_DIED" or (error.code in _HOPELESS and not error.retryable)


def _add_tries(failure: Failure, tries: Tries) -> Failure:
    if failure.reason == "WORKER_DIED":
        return failure
    tried = f"given up after {tries.failures} tries: " if tries.failures > 1 else ""
    return Failure(failure.reason, f"{tried}{failure.message}. Queue it again once the cause is removed")
