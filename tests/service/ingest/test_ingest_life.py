"""Documents that come, go and come again, over real NATS and real gRPC, with the hours that lie between made short."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from groundwork.ingest.v1 import ingest_pb2

from kit.jetstream import KeyValue, Nats
from services.ingest.documents import life
from services.ingest.upkeep import collecting, sweeping
from tests.service.ingest.conftest import TIMEOUT_S, System

READY = ingest_pb2.DOCUMENT_STATUS_READY


@pytest.fixture
def hasty(system: System, monkeypatch: pytest.MonkeyPatch) -> System:
    """Its upkeep does at once what it otherwise does after an hour."""
    monkeypatch.setattr(life, "TOMBSTONE_LIFE", timedelta())
    monkeypatch.setattr(collecting, "TOMBSTONE_LIFE", timedelta())
    monkeypatch.setattr(sweeping, "QUIET_BEFORE_SWEEP", timedelta())
    system.settings = system.settings.model_copy(
        update={"ingest_sweep_interval_s": 0.05, "ingest_reconcile_interval_s": 0.05}
    )
    return system


async def keys(bucket: KeyValue) -> list[str]:
    return [entry.key async for entry in bucket.entries(">")]


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not await is_so():
            await asyncio.sleep(0.01)


async def test_name_of_a_forgotten_document_is_given_to_a_new_one_that_stays(hasty: System, jetstream: Nats) -> None:
    documents = await KeyValue.open(jetstream, "DOCUMENTS")
    names = await KeyValue.open(jetstream, "DOCUMENT_NAMES")

    async def all_forgotten() -> bool:
        return not await keys(documents) + await keys(names)

    async with hasty.worker():
        first = await hasty.upload(b"Some text.", "notes.txt")
        await hasty.until(first.document_id, READY)
        await hasty.stub.DeleteDocument(
            ingest_pb2.DeleteDocumentRequest(document_id=first.document_id), timeout=TIMEOUT_S
        )
        await until(all_forgotten)
        again = await hasty.upload(b"Some text.", "notes.txt")
        await hasty.until(again.document_id, READY)
    assert again.document_id != first.document_id
    assert [chunk.text for chunk in hasty.retriever.searchable(again.document_id)] == ["Some text."]


async def test_name_that_an_earlier_version_left_behind_is_given_to_a_new_document(
    system: System, jetstream: Nats
) -> None:
    documents = await KeyValue.open(jetstream, "DOCUMENTS")
    first = await system.upload(b"Some text.", "notes.txt")
    await system.stub.DeleteDocument(ingest_pb2.DeleteDocumentRequest(document_id=first.document_id), timeout=TIMEOUT_S)
    await documents.purge(f"local.{first.document_id}")
    async with system.worker():
        again = await system.upload(b"Some text.", "notes.txt")
        await system.until(again.document_id, READY)
    assert again.document_id != first.document_id


async def test_what_killed_uploads_left_in_the_store_is_collected(hasty: System, jetstream: Nats) -> None:
    names = await KeyValue.open(jetstream, "DOCUMENT_NAMES")
    files = await jetstream.js.object_store("FILES")
    kept = await hasty.upload(b"Some text.", "notes.txt")
    await names.create(f"local.default.{'ab' * 20}", b"cd" * 16)
    await files.put(f"local/{'ef' * 32}", b"a file without a document")
    await jetstream.js.publish("$O.FILES.C.cutoff", b"a piece of a file that never came whole")

    async def only_the_document_is_left() -> bool:
        state = (await jetstream.js.stream_info("OBJ_FILES", subjects_filter="$O.FILES.>")).state
        return len(await keys(names)) == 1 and len(state.subjects or {}) == 2

    async with hasty.worker():
        await hasty.until(kept.document_id, READY)
        await until(only_the_document_is_left)
        request = ingest_pb2.DownloadDocumentRequest(document_id=kept.document_id)
        parts = [part async for part in hasty.stub.DownloadDocument(request, timeout=TIMEOUT_S)]
    assert b"".join(part.data for part in parts) == b"Some text."
