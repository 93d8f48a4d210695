"""Asking for a text to be forgotten. A service that deletes a document or a thread puts a request into the work queue FORGET, as a
step of the deletion that is repeated until the request is queued; the service that keeps copies of the text consumes it, and
answers for the rest.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kit.access.principal import current_principal
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.jetstream import Job, Nats, WorkQueue
from kit.shared_state import FORGET


class SourceKind(StrEnum):
    """What text comes from."""

    DOCUMENT = "document"
    THREAD = "thread"
    RUN = "run"
    FACT = "fact"


@dataclass(frozen=True)
class Source:
    """Something that is the source of text elsewhere. `item_id` is unique within tenant and kind, and part of a subject."""

    kind: SourceKind
    item_id: str

    @classmethod
    def document(cls, document_id: str) -> "Source":
        return cls(SourceKind.DOCUMENT, document_id)

    @classmethod
    def thread(cls, subject: str, thread_id: str) -> "Source":
        """A thread of `subject`. The owner is part of the name: nobody forgets another's thread by its id."""
        return cls(SourceKind.THREAD, hashlib.sha256(f"{subject}\0{thread_id}".encode()).hexdigest()[:32])

    @classmethod
    def fact(cls, subject: str, fact_id: str) -> "Source":
        """A fact that is remembered of `subject`, who is part of the name as with a thread."""
        return cls(SourceKind.FACT, hashlib.sha256(f"{subject}\0{fact_id}".encode()).hexdigest()[:32])

    @classmethod
    def run(cls, run_id: str) -> "Source":
        return cls(SourceKind.RUN, run_id)


@dataclass(frozen=True)
class ForgetRequest:
    """All text from `source` is to be erased; the tenant is the caller's."""

    source: Source
    requested_at: datetime


class ForgetQueue:
    """The queue. It may be asked the same twice: what is forgotten stays so."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue = queue

    @classmethod
    async def open(cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier) -> "ForgetQueue":
        return cls(await WorkQueue.open(nats, FORGET, signer, verifier))

    async def request(self, request: ForgetRequest) -> None:
        """Returns once the request is on disk. Raises Unavailable."""
        source = request.source
        name = f"{current_principal().tenant_id}.{source.kind}.{source.item_id}"
        await self.queue.publish(name, encode(request), job_id=name)


def encode(request: ForgetRequest) -> bytes:
    source = request.source
    record = {"kind": source.kind, "item_id": source.item_id, "requested_at": request.requested_at.isoformat()}
    return json.dumps(record).encode()


def decode(job: Job) -> ForgetRequest:
    """Raises one of kit.records.UNREADABLE for what this version does not understand, and for a request of another kind than the
    job's, which its key may not be good for."""
    record = json.loads(job.data)
    if record["kind"] != job.kind:
        raise ValueError(f"a job of kind {job.kind} asks for a {record['kind']} to be forgotten")
    source = Source(SourceKind(record["kind"]), record["item_id"])
    return ForgetRequest(source, datetime.fromisoformat(record["requested_at"]))
