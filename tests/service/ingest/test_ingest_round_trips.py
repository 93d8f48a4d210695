"""What a small document costs in round trips: each is a third of a millisecond of CPU, and each write waits for the disk. Whoever
adds one says here why."""

import asyncio
import re
from collections import Counter

import pytest
from groundwork.ingest.v1 import ingest_pb2
from nats.aio.msg import Msg

from kit.jetstream import Nats
from services.ingest.work import tracking
from tests.service.ingest.conftest import FOREVER_S, TIMEOUT_S, System

READY, FAILED = ingest_pb2.DOCUMENT_STATUS_READY, ingest_pb2.DOCUMENT_STATUS_FAILED

UPLOAD = {
    "read the collection": 1,  # whether it is still there
    "take the lease of the file": 1,
    "ask for the file": 1,  # whether it is there
    "write the file": 1,
    "write the file's entry": 1,
    "claim the name": 1,
    "write the record": 1,  # queued
    "give a lease back": 1,
    "queue the job": 1,
}
WORK = {
    "take the lease of the document": 1,
    "read the record": 1,
    "write the record": 2,  # processing, ready
    "ask for the file": 2,  # its entry, its only piece
    "read the collection": 1,  # whether it allows local models only
    "give a lease back": 1,
    "acknowledge the job": 1,
}
"""Besides the requests for the job itself, of which a worker that waits makes more."""

STEPS = [
    (r"\$JS\.API\.STREAM\.MSG\.GET\.KV_COLLECTIONS\b", "read the collection"),
    (r"\$JS\.API\.(STREAM\.MSG|DIRECT)\.GET\.OBJ_FILES\b", "ask for the file"),
    (r"\$O\.FILES\.C\.", "write the file"),
    (r"\$O\.FILES\.M\.", "write the file's entry"),
    (r"\$KV\.DOCUMENT_NAMES\.", "claim the name"),
    (r"\$KV\.DOCUMENTS\.", "write the record"),
    (r"ingest\.", "queue the job"),
    (r"\$JS\.API\.(STREAM\.MSG|DIRECT)\.GET\.KV_DOCUMENTS\b", "read the record"),
    (r"\$JS\.ACK\.INGEST\.", "acknowledge the job"),
]
LEASES = {"file": "take the lease of the file", "document": "take the lease of the document"}


class Requests:
    """Everything that is asked of the message store for a document, by what it is for."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.acknowledged = asyncio.Event()

    async def heard(self, message: Msg) -> None:
        if not message.reply.startswith("_INBOX"):
            return  # no request: a message that the server delivers, or a sign of life
        step = _step(message)
        self.steps[step] += 1
        if step == "acknowledge the job":
            self.acknowledged.set()


def _step(message: Msg) -> str:
    if b">" in message.data and "KV_COLLECTIONS" in message.subject:
        return ""  # whether all changes of collections have been heard of: every few seconds, not for a document
    lease = re.match(r"\$KV\.INGEST_LEASES\.(file|document)\.", message.subject)
    if lease:
        return "give a lease back" if "KV-Operation" in (message.headers or {}) else LEASES[lease[1]]
    return next((step for pattern, step in STEPS if re.match(pattern, message.subject)), "")


async def _heard(system: System, jetstream: Nats, data: bytes, name: str) -> Requests:
    """What is asked of NATS until the document is ready and its job acknowledged, which is the last that is done for it."""
    requests = Requests()
    listening = await jetstream.nc.subscribe(">", cb=requests.heard)
    await jetstream.nc.flush()
    await _ready(system, data, name)
    async with asyncio.timeout(TIMEOUT_S):
        await requests.acknowledged.wait()
    await listening.unsubscribe()
    return requests


async def test_small_document_takes_these_round_trips_and_no_more(
    system: System, jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow machine tells of progress, which is not counted here."""
    monkeypatch.setattr(tracking, "REPORT_INTERVAL_S", FOREVER_S)
    await system.stub.CreateCollection(
        ingest_pb2.CreateCollectionRequest(collection_id="notes", name="Notes"), timeout=TIMEOUT_S
    )
    async with system.worker():
        await _heard(system, jetstream, b"The first starts the parser.", "first.txt")
        made = _calls(system)
        requests = await _heard(system, jetstream, b"The second is counted.", "second.txt")
    del requests.steps[""]
    assert requests.steps == Counter(UPLOAD) + Counter(WORK)
    assert _calls(system) - made == Counter({"embed": 1, "index and activate": 1})


def _calls(system: System) -> Counter[str]:
    retriever = system.retriever
    return Counter(
        {
            "embed": system.reranker.embed_calls,
            "index and activate": retriever.index_calls,
            "activate": retriever.activate_calls,
        }
    )


async def _ready(system: System, data: bytes, name: str) -> None:
    queued = await system.upload(data, name, collection_id="notes")
    done = await system.until(queued.document_id, READY, FAILED)
    assert done.status == READY, done.error
