"""Requests that are asked for again under an idempotency key, because their answer was lost."""

import asyncio

import pytest
from groundwork.ingest.v1 import ingest_pb2

from kit.errors import AlreadyExists, NotFound
from tests.service.ingest.conftest import TIMEOUT_S, System


async def test_upload_asked_for_again_does_not_bring_an_old_version_back(system: System) -> None:
    first = await system.upload(b"version one", "a.txt", idempotency_key="k1")
    newer = await system.upload(b"version two", "a.txt")
    assert newer.document_id == first.document_id
    again = await system.upload(b"version one", "a.txt", idempotency_key="k1")
    assert (again.document_id, again.sha256) == (first.document_id, newer.sha256)


async def test_key_of_an_upload_is_good_for_that_file_only(system: System) -> None:
    await system.upload(b"one", "a.txt", idempotency_key="k1")
    for data, name, metadata in ((b"two", "a.txt", {}), (b"one", "b.txt", {}), (b"one", "a.txt", {"year": "2026"})):
        with pytest.raises(AlreadyExists) as told:
            await system.upload(data, name, metadata=metadata, idempotency_key="k1")
        assert told.value.reason == "IDEMPOTENCY_KEY_REUSED"


async def test_upload_asked_for_again_after_its_deletion_makes_nothing(system: System) -> None:
    document = await system.upload(b"one", "a.txt", idempotency_key="k1")
    delete = ingest_pb2.DeleteDocumentRequest(document_id=document.document_id)
    await system.stub.DeleteDocument(delete, timeout=TIMEOUT_S)
    with pytest.raises(NotFound, match="new key"):
        await system.upload(b"one", "a.txt", idempotency_key="k1")


async def test_refused_upload_leaves_its_key_free(system: System) -> None:
    with pytest.raises(NotFound):
        await system.upload(b"one", "a.txt", collection_id="nowhere", idempotency_key="k1")
    assert await system.upload(b"one", "a.txt", idempotency_key="k1")


async def test_collection_asked_for_again_is_the_one_that_was_made(system: System) -> None:
    request = ingest_pb2.CreateCollectionRequest(name="Annual Reports", idempotency_key="k1")
    first, again = [await system.stub.CreateCollection(request, timeout=TIMEOUT_S) for _ in range(2)]
    assert first == again
    other = ingest_pb2.CreateCollectionRequest(name="Reports", idempotency_key="k1")
    with pytest.raises(AlreadyExists) as told:
        await system.stub.CreateCollection(other, timeout=TIMEOUT_S)
    assert told.value.reason == "IDEMPOTENCY_KEY_REUSED"
    taken = ingest_pb2.CreateCollectionRequest(collection_id="annual-reports", idempotency_key="k2")
    with pytest.raises(AlreadyExists) as told:
        await system.stub.CreateCollection(taken, timeout=TIMEOUT_S)
    assert told.value.reason == "COLLECTION_EXISTS"


async def test_reindex_asked_for_again_queues_nothing(system: System) -> None:
    document = await system.upload(b"one", "a.txt")
    request = ingest_pb2.ReindexRequest(document_id=document.document_id, idempotency_key="k1")
    async with system.worker():
        ready = await system.until(document.document_id, ingest_pb2.DOCUMENT_STATUS_READY)
        await system.stub.Reindex(request, timeout=TIMEOUT_S)
        while (made := await system.until(document.document_id, ingest_pb2.DOCUMENT_STATUS_READY)) == ready:
            await asyncio.sleep(0.05)
    again = (await system.stub.Reindex(request, timeout=TIMEOUT_S)).document
    assert (again.status, again.revision_id) == (ingest_pb2.DOCUMENT_STATUS_READY, made.revision_id)
