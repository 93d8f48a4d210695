"""Jobs that were given up, work that is spared, and files that are damaged in the store, over real NATS and real gRPC."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from groundwork.ingest.v1 import ingest_pb2

from kit.errors import FailedPrecondition, NotFound
from kit.jetstream import Nats
from tests.service.ingest.conftest import TIMEOUT_S, System
from tests.service.ingest.test_ingest_service import FAILED, MARKDOWN, READY

FILES = "OBJ_FILES"


async def letters(system: System) -> list[ingest_pb2.DeadLetter]:
    answer = await system.stub.ListDeadLetters(ingest_pb2.ListDeadLettersRequest(), timeout=TIMEOUT_S)
    return list(answer.dead_letters)


async def requeue(system: System, dead_letter_id: str) -> ingest_pb2.RequeueDeadLetterResponse:
    request = ingest_pb2.RequeueDeadLetterRequest(dead_letter_id=dead_letter_id)
    return await system.stub.RequeueDeadLetter(request, timeout=TIMEOUT_S)


async def test_given_up_job_is_listed_and_done_after_it_was_queued_again(system: System) -> None:
    system.retriever.refusal = FailedPrecondition("the engine is too old", reason="ENGINE_UNSUPPORTED")
    async with system.worker():
        queued = await system.upload(MARKDOWN, "handbook.md")
        failed = await system.until(queued.document_id, READY, FAILED)
        assert (failed.status, failed.error.reason) == (FAILED, "ENGINE_UNSUPPORTED")
        (letter,) = await letters(system)
        assert (letter.document_id, letter.document_name) == (queued.document_id, "handbook.md")
        assert (letter.reason, letter.stage, letter.failures) == ("ENGINE_UNSUPPORTED", "index", 1)
        counts = await system.stub.GetJobCounts(ingest_pb2.GetJobCountsRequest(), timeout=TIMEOUT_S)
        assert (counts.dead_letter_count, counts.queued_count) == (1, 0)
        system.retriever.refusal = None
        again = await requeue(system, letter.dead_letter_id)
        assert again.outcome == ingest_pb2.REQUEUE_OUTCOME_REQUEUED
        assert (await system.until(queued.document_id, READY)).report.chunk_count > 5
        assert (await requeue(system, letter.dead_letter_id)).outcome == ingest_pb2.REQUEUE_OUTCOME_ALREADY_REQUEUED
    assert await letters(system) == []
    with pytest.raises(NotFound) as raised:
        await requeue(system, "ab" * 16)
    assert raised.value.reason == "DEAD_LETTER_NOT_FOUND"


async def test_unchanged_chunks_keep_their_vectors_over_the_wire(system: System) -> None:
    async with system.worker():
        queued = await system.upload(MARKDOWN, "handbook.md")
        first = await system.until(queued.document_id, READY)
        before = system.reranker.embed_calls
        await system.upload(MARKDOWN + b"\n\n## Another part\n\nIt is new.", "handbook.md")
        while (second := await system.until(first.document_id, READY)).revision_id == first.revision_id:
            await asyncio.sleep(0.01)
    assert second.report.reused_chunk_count == first.report.chunk_count
    assert second.report.chunk_count == first.report.chunk_count + 1
    assert system.reranker.embed_calls == before + 1
    vectors = system.retriever.vectors[second.document_id, second.revision_id]
    old = system.retriever.vectors[first.document_id, first.revision_id]
    assert {content_hash: vectors[content_hash] for content_hash in old} == old


async def bit_flipped(jetstream: Nats) -> None:
    """Another file lies under the name."""
    store = await jetstream.js.object_store("FILES")
    (info,) = await store.list()
    data = (await store.get(info.name)).data or b""
    await store.put(info.name, bytes([data[0] ^ 1]) + data[1:])


async def truncated(jetstream: Nats) -> None:
    """The last of its pieces is gone."""
    state = (await jetstream.js.stream_info(FILES)).state
    await jetstream.js.delete_msg(FILES, state.last_seq - 1)


async def lost(jetstream: Nats) -> None:
    """All of its pieces are gone; only its entry is left."""
    await jetstream.js.purge_stream(FILES, subject="$O.FILES.C.>")


@pytest.mark.parametrize("damage", [bit_flipped, truncated, lost])
async def test_file_damaged_in_the_store_fails_and_is_healed_by_the_next_upload(
    system: System, jetstream: Nats, damage: Callable[[Nats], Awaitable[None]]
) -> None:
    data = MARKDOWN * 60  # two pieces in the store
    queued = await system.upload(data, "handbook.md")
    await damage(jetstream)
    async with system.worker():
        failed = await system.until(queued.document_id, READY, FAILED)
        assert (failed.status, failed.error.reason) == (FAILED, "FILE_LOST")
        assert "upload it again" in failed.error.message
        assert await letters(system) == []
        again = await system.upload(data, "handbook.md")
        assert again.document_id == queued.document_id
        done = await system.until(queued.document_id, READY)
    assert done.error.reason == ""
