"""The queue of documents to read: work-queue stream INGEST, one subject a revision, so that a lost job can be told from a waiting
one by asking the server for the subject's message."""

from nats.js.errors import NotFoundError

from kit.jetstream import Nats, WorkQueue, WorkQueueConfig
from kit.jetstream.connection import translated_errors
from kit.tokens import TokenSigner, TokenVerifier
from services.ingest.documents import records
from services.ingest.models import IngestJob

CONFIG = WorkQueueConfig(stream="INGEST", subject="ingest", refills_itself=True)


class NatsJobQueue:
    """Publishes jobs; `queue` is what the worker consumes."""

    def __init__(self, nats: Nats, queue: WorkQueue) -> None:
        self._nats = nats
        self.queue = queue

    @classmethod
    async def open(cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier) -> "NatsJobQueue":
        return cls(nats, await WorkQueue.open(nats, CONFIG, signer, verifier))

    async def publish(self, job: IngestJob) -> None:
        await self.queue.publish(_suffix(job), records.encode_job(job), job_id=job.revision_id)

    async def has_job(self, job: IngestJob) -> bool:
        with translated_errors(CONFIG.stream):
            try:
                await self._nats.js.get_last_msg(CONFIG.stream, f"{CONFIG.subject}.{_suffix(job)}")
            except NotFoundError:
                return False
        return True

    async def depth(self) -> int:
        return await self.queue.pending()


def _suffix(job: IngestJob) -> str:
    return f"{job.tenant_id}.{job.document_id}.{job.revision_id}"
