"""Records and jobs that this version cannot read, over real NATS and real gRPC: they stop nobody, and are told of."""

import asyncio
import json
from typing import Any

import prometheus_client
import pytest
from groundwork.ingest.v1 import ingest_pb2

from kit.access.principal import Principal, use_principal
from kit.errors import DataLoss, FailedPrecondition
from kit.jetstream import KeyValue, Nats, WorkQueue
from kit.testing.harness import make_signer, make_verifier
from services.ingest import app
from services.ingest.metrics import Metrics
from services.ingest.state import JOBS
from tests.service.ingest.conftest import TIMEOUT_S, System

READY, QUEUED, UNKNOWN = (
    ingest_pb2.DOCUMENT_STATUS_READY,
    ingest_pb2.DOCUMENT_STATUS_QUEUED,
    ingest_pb2.DOCUMENT_STATUS_UNKNOWN,
)
TORN = b'{"tenant_id": "local", "docum'


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch, _own_metrics: None) -> list[prometheus_client.CollectorRegistry]:
    """The registries of the processes, in the order of their starts."""
    registries: list[prometheus_client.CollectorRegistry] = []

    def made() -> Metrics:
        registries.append(prometheus_client.CollectorRegistry())
        return Metrics(registries[-1])

    monkeypatch.setattr(app, "Metrics", made)
    return registries


async def listed(system: System) -> dict[str, int]:
    request = ingest_pb2.ListDocumentsRequest(collection_id="default")
    found = await system.stub.ListDocuments(request, timeout=TIMEOUT_S)
    return {document.document_id: document.status for document in found.documents}


def logged(capsys: pytest.CaptureFixture[str], event: str) -> list[dict[str, Any]]:
    """Lines of the processes' logs."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["event"] == event]


async def change(bucket: KeyValue, key: str, **fields: Any) -> bytes:
    """Writes a record as another version would."""
    entry = await bucket.get(key)
    assert entry is not None
    data = json.dumps(json.loads(entry.value or b"") | fields).encode()
    await bucket.update(key, data, entry.revision)
    return data


async def test_torn_records_are_left_out_of_listings_and_told_of_and_everything_else_goes_on(
    metrics: list[prometheus_client.CollectorRegistry],
    system: System,
    jetstream: Nats,
    capsys: pytest.CaptureFixture[str],
) -> None:
    documents = await KeyValue.open(jetstream, "DOCUMENTS")
    torn = await system.upload(b"Torn.", "torn.txt")
    good = await system.upload(b"Good.", "good.txt")
    await documents.put(f"local.{torn.document_id}", TORN)
    await (await KeyValue.open(jetstream, "COLLECTIONS")).put("local.torn", b"\xff")
    await (await KeyValue.open(jetstream, "DEAD_LETTERS")).put(f"local.default.{'aa' * 16}.{'bb' * 16}", b"null")
    async with system.worker():
        await system.until(good.document_id, READY)
    assert await listed(system) == {good.document_id: READY}
    told = {entry["key"] for entry in logged(capsys, "record_unreadable") if entry["kind"] == "document"}
    assert told == {f"local.{torn.document_id}"}
    labels = {"kind": "document"}
    assert [each.get_sample_value("groundwork_ingest_unreadable_records", labels) for each in metrics] == [1, 1]
    with pytest.raises(DataLoss, match="cannot be read"):
        await system.stub.GetDocument(ingest_pb2.GetDocumentRequest(document_id=torn.document_id), timeout=TIMEOUT_S)
    with pytest.raises(DataLoss, match="cannot be read"):
        await system.upload(b"Again.", "torn.txt")
    collections = await system.stub.ListCollections(ingest_pb2.ListCollectionsRequest(), timeout=TIMEOUT_S)
    assert [each.collection_id for each in collections.collections] == ["default"]
    letters = await system.stub.ListDeadLetters(ingest_pb2.ListDeadLettersRequest(), timeout=TIMEOUT_S)
    assert not letters.dead_letters


async def test_document_of_a_newer_version_is_shown_and_left_alone(system: System, jetstream: Nats) -> None:
    documents = await KeyValue.open(jetstream, "DOCUMENTS")
    newer = await system.upload(b"Newer.", "newer.txt")
    key = f"local.{newer.document_id}"
    data = await change(documents, key, status="archived", colour="red")
    good = await system.upload(b"Good.", "good.txt")
    async with system.worker():
        await system.until(good.document_id, READY)
    assert await listed(system) == {newer.document_id: UNKNOWN, good.document_id: READY}
    with pytest.raises(FailedPrecondition, match="'archived', which a newer version"):
        await system.stub.Reindex(ingest_pb2.ReindexRequest(document_id=newer.document_id), timeout=TIMEOUT_S)
    with pytest.raises(FailedPrecondition, match="newer version"):
        await system.upload(b"Newer still.", "newer.txt")
    entry = await documents.get(key)
    assert entry is not None
    assert entry.value == data
    request = ingest_pb2.DeleteDocumentRequest(document_id=newer.document_id)
    await system.stub.DeleteDocument(request, timeout=TIMEOUT_S)
    assert await listed(system) == {good.document_id: READY}


async def test_newer_fields_outlive_the_work_of_this_version(system: System, jetstream: Nats) -> None:
    documents = await KeyValue.open(jetstream, "DOCUMENTS")
    queued = await system.upload(b"Some text.", "a.txt")
    await change(documents, f"local.{queued.document_id}", colour="red")
    async with system.worker():
        await system.until(queued.document_id, READY)
    entry = await documents.get(f"local.{queued.document_id}")
    assert entry is not None
    assert json.loads(entry.value or b"")["colour"] == "red"


@pytest.mark.parametrize("data", [b"", b"null", b"[1]", b"\xff", b'{"tenant_id": 7}'], ids=repr)
async def test_job_that_cannot_be_read_is_dropped_and_told_of(
    metrics: list[prometheus_client.CollectorRegistry],
    system: System,
    jetstream: Nats,
    capsys: pytest.CaptureFixture[str],
    data: bytes,
) -> None:
    queue = await WorkQueue.open(jetstream, JOBS, make_signer(), make_verifier())
    with use_principal(Principal("local", "tester")):
        await queue.publish("local.x.y", data, job_id="x")
    good = await system.upload(b"Good.", "good.txt")
    async with system.worker():
        await system.until(good.document_id, READY)
        while (await jetstream.js.stream_info("INGEST")).state.messages:
            await asyncio.sleep(0.01)
    assert len(logged(capsys, "job_unreadable")) == 1
    assert metrics[-1].get_sample_value("groundwork_ingest_unreadable_jobs_total") == 1
