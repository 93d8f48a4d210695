"""Two ingest APIs and several workers over one message store: a call may go to either, and finds what went through the other."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.errors import FailedPrecondition, GroundworkError, NotFound
from kit.jetstream import Nats
from kit.testing.harness import free_port, open_test_channel, running_service
from services.ingest import app
from tests.service.ingest.conftest import TIMEOUT_S, System
from tests.service.ingest.test_ingest_jobs import FILES, letters, requeue
from tests.service.ingest.test_ingest_service import FAILED, MARKDOWN, READY

PLAN = "plan"


@pytest.fixture
async def both(system: System) -> AsyncIterator[Sequence[System]]:
    """The system by its first API, and by a second one."""
    async with AsyncExitStack() as stack:
        settings = system.settings.model_copy(update={"grpc_address": f"127.0.0.1:{free_port()}"})
        address = await stack.enter_async_context(running_service(app.run_api, settings))
        channel = await stack.enter_async_context(open_test_channel(address))
        yield system, replace(system, stub=ingest_pb2_grpc.IngestServiceStub(channel), api_address=address)


async def listed(system: System, collection_id: str = "default") -> list[str]:
    request = ingest_pb2.ListDocumentsRequest(collection_id=collection_id)
    return [each.document_id for each in (await system.stub.ListDocuments(request, timeout=TIMEOUT_S)).documents]


async def test_upload_through_one_is_followed_read_and_deleted_through_the_other(both: Sequence[System]) -> None:
    async with both[0].worker():
        for taker, other in (both, both[::-1]):
            queued = await taker.upload(MARKDOWN, "handbook.md")
            assert queued.document_id in await listed(other)
            done = await other.until(queued.document_id, READY, FAILED)
            assert done.status == READY
            named = ingest_pb2.DownloadDocumentRequest(document_id=queued.document_id)
            parts = [part.data async for part in other.stub.DownloadDocument(named, timeout=TIMEOUT_S)]
            assert b"".join(parts) == MARKDOWN
            delete = ingest_pb2.DeleteDocumentRequest(document_id=queued.document_id)
            await other.stub.DeleteDocument(delete, timeout=TIMEOUT_S)
            get = ingest_pb2.GetDocumentRequest(document_id=queued.document_id)
            with pytest.raises(NotFound):
                await taker.stub.GetDocument(get, timeout=TIMEOUT_S)


async def test_collection_that_was_deleted_through_the_other_takes_no_upload(
    both: Sequence[System], jetstream: Nats
) -> None:
    """Whatever an API remembers of a collection that it has seen a moment ago."""
    one, other = both
    create = ingest_pb2.CreateCollectionRequest(collection_id=PLAN)
    await one.stub.CreateCollection(create, timeout=TIMEOUT_S)
    await one.upload(b"the first plan", "first.txt", collection_id=PLAN)
    await other.stub.DeleteCollection(ingest_pb2.DeleteCollectionRequest(collection_id=PLAN), timeout=TIMEOUT_S)
    with pytest.raises(NotFound):
        await one.upload(b"the second plan", "second.txt", collection_id=PLAN)
    await other.stub.CreateCollection(create, timeout=TIMEOUT_S)
    assert await listed(one, PLAN) == []
    assert (await jetstream.js.stream_info(FILES)).state.messages == 0
    uploaded = await one.upload(b"the third plan", "third.txt", collection_id=PLAN)
    assert await listed(other, PLAN) == [uploaded.document_id]


async def test_same_name_uploaded_through_both_at_once_is_one_document(both: Sequence[System]) -> None:
    async with both[0].worker(), both[0].worker(), both[0].worker():
        texts = [MARKDOWN + str(number).encode() for number in range(8)]
        uploads = [both[number % 2].upload(text, "handbook.md") for number, text in enumerate(texts)]
        documents = await asyncio.gather(*uploads)
        assert len({document.document_id for document in documents}) == 1
        assert await listed(both[1]) == [documents[0].document_id]
        done = await both[1].until(documents[0].document_id, READY, FAILED)
        assert done.status == READY


async def test_key_that_is_used_at_both_at_once_takes_one_upload(both: Sequence[System]) -> None:
    async def taken(system: System) -> str | None:
        """The document; None where it is in hand at the other."""
        try:
            return (await system.upload(MARKDOWN, "handbook.md", idempotency_key="k1")).document_id
        except GroundworkError as error:
            if error.reason != "IDEMPOTENCY_KEY_IN_FLIGHT":
                raise
            return None

    found = await asyncio.gather(*(taken(each) for each in both for _ in range(3)))
    assert sorted(set(found) - {None}) == await listed(both[0])


async def test_dead_letter_that_is_queued_again_through_both_at_once_is_done(both: Sequence[System]) -> None:
    one, other = both
    one.retriever.refusal = FailedPrecondition("the engine is too old", reason="ENGINE_UNSUPPORTED")
    async with one.worker(), one.worker():
        queued = await one.upload(MARKDOWN, "handbook.md")
        await other.until(queued.document_id, FAILED)
        one.retriever.refusal = None
        (letter,) = await letters(other)
        answers = await asyncio.gather(*(requeue(each, letter.dead_letter_id) for each in both))
        assert ingest_pb2.REQUEUE_OUTCOME_REQUEUED in {each.outcome for each in answers}
        await other.until(queued.document_id, READY)
    assert await letters(one) == await letters(other) == []


async def test_three_workers_do_every_job_once_whichever_api_took_it(both: Sequence[System]) -> None:
    async with both[0].worker(), both[0].worker(), both[0].worker():
        uploads = [both[n % 2].upload(MARKDOWN + str(n).encode(), f"{n}.md") for n in range(12)]
        queued = await asyncio.gather(*uploads)
        done = [await both[1].until(document.document_id, READY, FAILED) for document in queued]
    assert {(document.status, document.report.attempts) for document in done} == {(READY, 1)}
    assert both[0].retriever.index_calls == len(both[0].retriever.revisions) == 12
