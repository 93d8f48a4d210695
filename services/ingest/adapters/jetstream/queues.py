"""The queues that ingestion writes to. INGEST holds the documents to read, with one subject a revision, so that the
server can be asked for the subject's message: a waiting job has one, a lost job has none. FORGET holds the documents whose text is
to be erased by the services that keep copies of it: the logs of runs quote what they found."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from kit.access.tokens import TokenSigner, TokenVerifier
from kit.jetstream import Nats, WorkQueue
from kit.jetstream.queues.backlog import Backlog
from kit.jetstream.queues.turns import bulk_lane
from kit.jetstream.reading import last_position
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source
from services.ingest.documents import records
from services.ingest.documents.models import IngestJob, Lane
from services.ingest.state import JOBS


class NatsJobQueue:
    """Publishes jobs; `queue` is what the worker consumes."""

    def __init__(self, nats: Nats, queue: WorkQueue) -> None:
        self._nats = nats
        self.queue = queue

    @classmethod
    async def open(cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier) -> "NatsJobQueue":
        return cls(nats, await WorkQueue.open(nats, JOBS, signer, verifier))

    async def publish(self, job: IngestJob) -> None:
        await self.queue.publish(_suffix(job), records.encode_job(job), job_id=job.revision_id)

    async def has_job(self, job: IngestJob) -> bool:
        """In either lane: a version before lanes knows one only, and a record may have been rewritten by it."""
        for lane in Lane:
            subject = f"{JOBS.subject}.{_suffix(replace(job, lane=lane))}"
            if await last_position(self._nats, JOBS.stream, subject) > 0:
                return True
        return False

    async def backlog(self) -> Backlog:
        return await self.queue.backlog()


class NatsForgetting:
    """Forgetting over the queue FORGET."""

    def __init__(self, queue: ForgetQueue, now: Callable[[], datetime]) -> None:
        self._queue = queue
        self._now = now

    @classmethod
    async def open(
        cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier, now: Callable[[], datetime]
    ) -> "NatsForgetting":
        return cls(await ForgetQueue.open(nats, signer, verifier), now)

    async def forget(self, document_id: str) -> None:
        await self._queue.request(ForgetRequest(Source.document(document_id), self._now()))


def _suffix(job: IngestJob) -> str:
    lane = bulk_lane(job.tenant_id) if job.lane is Lane.BULK else job.tenant_id
    return f"{lane}.{job.document_id}.{job.revision_id}"
