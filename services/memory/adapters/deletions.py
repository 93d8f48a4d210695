"""Deletions of threads: the work queue MEMORY, whose jobs this service gives itself, and requests to the queue FORGET for the
runs."""

import json
from datetime import datetime

from kit.access.tokens import TokenSigner, TokenVerifier
from kit.jetstream import Job, Nats, WorkQueue
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source
from services.memory.models import Deletion, Owner
from services.memory.state import DELETIONS


class NatsDeletions:
    """Deletions over the two queues. Both are called as the thread's owner, who is the principal of the job."""

    def __init__(self, queue: WorkQueue, forget_queue: ForgetQueue) -> None:
        self.queue_of_threads = queue
        self._forget_queue = forget_queue

    @classmethod
    async def open(cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier) -> "NatsDeletions":
        queue = await WorkQueue.open(nats, DELETIONS, signer, verifier)
        return cls(queue, await ForgetQueue.open(nats, signer, verifier))

    async def queue(self, deletion: Deletion) -> None:
        source = _source(deletion)
        name = f"{deletion.owner.tenant_id}.{source.item_id}"
        await self.queue_of_threads.publish(name, encode_deletion(deletion), job_id=name)

    async def fact(self, owner: Owner, fact_id: str, at: datetime) -> None:
        await self._forget_queue.request(ForgetRequest(Source.fact(owner.subject, fact_id), at))

    async def forget_runs(self, deletion: Deletion) -> None:
        await self._forget_queue.request(ForgetRequest(_source(deletion), deletion.requested_at))


def encode_deletion(deletion: Deletion) -> bytes:
    """Whose thread it is is said by the job's token."""
    record = {"thread_id": deletion.thread_id, "requested_at": deletion.requested_at.isoformat()}
    return json.dumps(record).encode()


def decode_deletion(job: Job) -> Deletion:
    """Raises one of kit.records.UNREADABLE."""
    record = json.loads(job.data)
    owner = Owner(job.principal.tenant_id, job.principal.subject)
    return Deletion(owner, record["thread_id"], datetime.fromisoformat(record["requested_at"]))


def _source(deletion: Deletion) -> Source:
    return Source.thread(deletion.owner.subject, deletion.thread_id)
