"""Requests to forget, through the queue."""

import asyncio
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from kit.access.keys import new_key, public_half
from kit.access.principal import Principal, use_principal
from kit.jetstream import Job, Nats
from kit.records import UNREADABLE
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source, decode
from kit.testing.harness import make_signer, make_verifier

ANN = Principal("acme", "ann")
AT = datetime(2026, 1, 1, tzinfo=UTC)


async def test_request_arrives_with_its_tenant_and_once(jetstream: Nats) -> None:
    queue = await ForgetQueue.open(jetstream, make_signer(), make_verifier())
    requests = [ForgetRequest(source, AT) for source in (Source.document("d1"), Source.thread("ann", "t1"))]
    with use_principal(ANN):
        for request in requests * 2:
            await queue.request(request)
    assert await queue.queue.pending() == len(requests)
    arrived: asyncio.Queue[tuple[str, ForgetRequest]] = asyncio.Queue()

    async def note(job: Job) -> None:
        arrived.put_nowait((job.principal.tenant_id, decode(job)))

    consumer = asyncio.create_task(queue.queue.consume(note, concurrency=1))
    async with asyncio.timeout(60):
        assert [await arrived.get() for _ in requests] == [("acme", request) for request in requests]
    consumer.cancel()
    await asyncio.gather(consumer, return_exceptions=True)


async def test_request_for_a_kind_that_the_key_does_not_sign_for_is_not_done(jetstream: Nats) -> None:
    private = new_key("memory")
    verifier = make_verifier(public_half(private, ["jobs/FORGET.thread"]))
    queue = await ForgetQueue.open(jetstream, make_signer(private), verifier)
    threads = ForgetRequest(Source.thread("ann", "t1"), AT)
    with use_principal(ANN), capture_logs() as logs:
        await queue.request(ForgetRequest(Source.document("d1"), AT))
        await queue.request(threads)
        arrived: asyncio.Queue[ForgetRequest] = asyncio.Queue()

        async def note(job: Job) -> None:
            arrived.put_nowait(decode(job))

        consumer = asyncio.create_task(queue.queue.consume(note, concurrency=1))
        async with asyncio.timeout(60):
            assert await arrived.get() == threads
            while not (refused := [each for each in logs if each["event"] == "job_refused"]):
                await asyncio.sleep(0.01)
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)
    assert refused[0]["subject"] == "forget.acme.document.d1"
    assert arrived.empty()


def test_thread_is_named_with_its_owner() -> None:
    names = {Source.thread(subject, thread).item_id for subject, thread in (("a", "t"), ("b", "t"), ("a", "u"))}
    assert len(names) == 3
    assert all(name.isalnum() for name in names)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"kind": "dream", "item_id": "x", "requested_at": "2026-01-01"}',
        b'{"kind": "document", "item_id": "x", "requested_at": "soon"}',
        b'{"kind": "thread", "item_id": "x", "requested_at": "2026-01-01"}',
    ],
)
def test_what_is_no_request_is_told_by_an_error(data: bytes) -> None:
    with pytest.raises(UNREADABLE):
        decode(Job("id", data, 1, ANN, kind="document"))
