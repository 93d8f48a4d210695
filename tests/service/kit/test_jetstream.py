"""kit.jetstream against a real nats-server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from nats.js.errors import KeyNotFoundError
from opentelemetry import trace
from structlog.testing import capture_logs

from kit.errors import Aborted, AlreadyExists, Unavailable
from kit.jetstream import Entry, Job, KeyValue, Nats, WorkQueue, WorkQueueConfig, connect, work_queue
from kit.jetstream.connection import cancellation_kept
from kit.jetstream.work_queue import Handler
from kit.keys import new_key
from kit.principal import Principal, current_principal, use_principal
from kit.testing.harness import make_signer, make_verifier
from kit.testing.nats import NatsServer
from kit.testing.telemetry import recorded_spans

ANN = Principal("acme", "ann")
QUEUE = WorkQueueConfig(stream="WORK", subject="work", ack_wait_s=1.0, backoff_s=(0.01,), refills_itself=True)


async def test_compare_and_set_lets_one_writer_win(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    revision = await bucket.create("a.1", b"one")
    with pytest.raises(AlreadyExists):
        await bucket.create("a.1", b"other")
    await bucket.update("a.1", b"two", revision)
    with pytest.raises(Aborted):
        await bucket.update("a.1", b"three", revision)
    with pytest.raises(Aborted):
        await bucket.delete("a.1", revision)
    entry = await bucket.get("a.1")
    assert entry is not None
    assert entry.value == b"two"


async def test_key_is_purged_only_at_the_revision_that_was_read(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "NAMES")
    first = await bucket.create("a", b"1")
    second = await bucket.update("a", b"2", first)
    with pytest.raises(Aborted):
        await bucket.purge("a", first)
    entry = await bucket.get("a")
    assert entry is not None
    assert entry.value == b"2"
    await bucket.purge("a", second)
    assert await bucket.get("a") is None
    await bucket.create("a", b"3")


async def test_deleted_key_is_told_from_one_that_never_was(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "COLLECTIONS")
    await bucket.create("a", b"1")
    assert not await bucket.was_deleted("a")
    await bucket.delete("a")
    assert await bucket.was_deleted("a")
    assert not await bucket.was_deleted("b")
    await bucket.create("a", b"2")
    assert not await bucket.was_deleted("a")


async def test_listed_entries_say_when_they_were_written(jetstream: Nats) -> None:
    bucket, began = await KeyValue.open(jetstream, "NAMES"), datetime.now(UTC) - timedelta(seconds=1)
    await bucket.create("a", b"1")
    (entry,) = [entry async for entry in bucket.entries(">")]
    assert entry.written_at is not None
    assert began < entry.written_at < datetime.now(UTC) + timedelta(seconds=1)


async def test_key_that_expires_while_it_is_made_anew_is_made(jetstream: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await KeyValue.open(jetstream, "LEASES")
    real, expired = bucket._bucket.create, [KeyNotFoundError()]

    async def create(key: str, value: bytes, **more: object) -> int:
        if expired:
            raise expired.pop()
        return int(await real(key, value, **more))

    monkeypatch.setattr(bucket._bucket, "create", create)
    assert await bucket.create("a.1", b"one") == 1
    expired[:] = [KeyNotFoundError(), KeyNotFoundError()]
    with pytest.raises(KeyNotFoundError):
        await bucket.create("a.2", b"one")


async def test_deleted_key_is_absent_and_can_be_made_again(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    await bucket.create("a.1", b"one")
    await bucket.delete("a.1")
    assert await bucket.get("a.1") is None
    await bucket.create("a.1", b"again")


async def test_leader_tells_what_is_stored_now(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    assert (await bucket.get_current("a.1"), await bucket.last_revision()) == (None, 0)
    revision = await bucket.create("a.1", b"one")
    assert await bucket.get_current("a.1") == Entry("a.1", b"one", revision)
    await bucket.put("a.2", b"other")
    assert await bucket.last_revision() == revision + 1
    for remove in (bucket.delete, bucket.purge):
        await remove("a.1")
        assert await bucket.get_current("a.1") is None
    assert await bucket.last_revision() == revision + 3


async def test_listing_is_filtered_by_subject(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    for key in ("a.1", "a.2", "b.1", "ab.1"):
        await bucket.put(key, b"x")
    await bucket.delete("a.2")
    assert [entry.key async for entry in bucket.entries("a.>")] == ["a.1"]
    assert [entry.key async for entry in bucket.entries("none.>")] == []


async def test_watch_tells_current_state_then_changes(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    await bucket.put("a.1", b"x")
    async with aclosing(bucket.watch("a.>")) as updates:
        first = await anext(updates)
        assert first is not None
        assert first.key == "a.1"
        assert await anext(updates) is None
        await bucket.delete("a.1")
        change = await anext(updates)
        assert change is not None
        assert change.value is None


async def next_change(updates: AsyncIterator[Entry | None], seconds: float = 8.0) -> Entry | None:
    async with asyncio.timeout(seconds):
        return await anext(updates)


async def eventually(write: Callable[[], Awaitable[object]], seconds: float = 10.0) -> None:
    """Writes once the server takes it again."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                await write()
            except Unavailable:
                continue
            return


async def test_watch_goes_on_after_the_server_was_restarted(nats: NatsServer) -> None:
    async with connect(nats.url, name="watcher") as connection, connect(nats.url, name="writer") as other:
        bucket, elsewhere = await KeyValue.open(connection, "THINGS"), await KeyValue.open(other, "THINGS")
        await bucket.put("a.1", b"old")
        async with aclosing(bucket.watch("a.>")) as updates:
            assert await next_change(updates) == Entry("a.1", b"old", 1)
            assert await next_change(updates) is None
            for number in (2, 3):
                await nats.stop(kill=True)
                await nats.start()
                await eventually(lambda: elsewhere.put("a.1", b"new"))
                change = await next_change(updates)
                assert change == Entry("a.1", b"new", number)
            await elsewhere.purge("a.1")
            assert await next_change(updates) == Entry("a.1", None, 4)


async def test_marker_of_a_purged_key_does_not_stay_for_ever(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    await bucket.put("a.1", b"x")
    await bucket.purge("a.1")
    marker = await jetstream.js.get_last_msg("KV_THINGS", "$KV.THINGS.a.1")
    assert (marker.headers or {})["Nats-TTL"] == "86400"


@pytest.mark.parametrize(("before", "after"), [(5.0, 300.0), (300.0, 5.0), (300.0, None), (None, 5.0)])
async def test_bucket_takes_over_a_changed_time_to_live(
    jetstream: Nats, before: float | None, after: float | None
) -> None:
    await KeyValue.open(jetstream, "THINGS", ttl_s=before)
    bucket = await KeyValue.open(jetstream, "THINGS", ttl_s=after)
    assert ((await jetstream.js.stream_info("KV_THINGS")).config.max_age or None) == after
    await bucket.put("a", b"x")


async def test_dead_server_is_unavailable_and_comes_back(nats: NatsServer) -> None:
    async with connect(nats.url, name="test") as connection:
        bucket = await KeyValue.open(connection, "THINGS")
        await bucket.put("a", b"x")
        await nats.stop(kill=True)
        with pytest.raises(Unavailable):
            await bucket.get("a")
        await nats.start()
        async with asyncio.timeout(10):
            while True:
                try:
                    entry = await bucket.get("a")
                    break
                except Unavailable:
                    continue
        assert entry is not None


async def test_cancellation_that_comes_with_the_answer_is_not_forgotten() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ask() -> int:
        with cancellation_kept():
            return await asyncio.wait_for(answer, 5)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    answer.set_result(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_cancellation_that_meets_an_error_is_not_forgotten() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ask() -> int:
        with cancellation_kept():
            return await asyncio.wait_for(answer, 5)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    answer.set_exception(ConnectionResetError())
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def open_queue(jetstream: Nats) -> WorkQueue:
    return await WorkQueue.open(jetstream, QUEUE, make_signer(), make_verifier())


async def consume_until(queue: WorkQueue, handler: Handler, done: asyncio.Event) -> None:
    worker = asyncio.create_task(queue.consume(handler, concurrency=2))
    try:
        async with asyncio.timeout(20):
            await done.wait()
            while await queue.pending():
                await asyncio.sleep(0.01)
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def test_job_runs_once_as_its_publisher_though_queued_twice(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, seen = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"data", job_id="j1")
        await queue.publish("acme.j1", b"data", job_id="j1")

    async def handler(job: Job) -> None:
        seen.append((job.job_id, job.data, job.delivery, current_principal()))
        done.set()

    await consume_until(queue, handler, done)
    assert seen == [("j1", b"data", 1, ANN)]


async def test_job_without_a_valid_token_is_dropped_and_others_go_on(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    with use_principal(ANN):
        await queue.publish("acme.seen", b"data", job_id="seen")
    real = await jetstream.js.get_last_msg(QUEUE.stream, f"{QUEUE.subject}.acme.seen")
    token = (real.headers or {})["Groundwork-Token"]
    subject = f"{QUEUE.subject}.globex.x"
    earlier_version = {"Groundwork-Tenant": "globex", "Groundwork-Subject": "bob", "Groundwork-Scopes": ""}
    await jetstream.js.publish(subject, b"data", headers={"Nats-Msg-Id": "old", **earlier_version})
    await jetstream.js.publish(subject, b"data", headers={"Nats-Msg-Id": "stolen", "Groundwork-Token": token})
    await jetstream.js.publish(subject, b"data")
    stranger = await WorkQueue.open(jetstream, QUEUE, make_signer(new_key("stranger")), make_verifier())
    with use_principal(Principal("globex", "bob")):
        await stranger.publish("globex.forged", b"data", job_id="forged")
        await queue.publish("globex.last", b"last", job_id="last")
    done, seen = asyncio.Event(), []

    async def handler(job: Job) -> None:
        seen.append((job.job_id, job.principal.tenant_id))
        if job.job_id == "last":
            done.set()

    with capture_logs() as logs:
        await consume_until(queue, handler, done)
    assert sorted(seen) == [("last", "globex"), ("seen", "acme")]
    assert len([each for each in logs if each["event"] == "job_refused"]) == 4


async def test_job_comes_back_when_its_handler_says_so_and_after_every_error(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, deliveries = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> float | None:
        deliveries.append(job.delivery)
        if job.delivery == 1:
            return 0.01
        if job.delivery < 25:
            raise ZeroDivisionError
        done.set()
        return None

    await consume_until(queue, handler, done)
    assert deliveries == list(range(1, 26)), "the queue gives no job up of its own accord"


async def test_long_job_is_not_given_to_another_worker(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, starts = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        starts.append(job.delivery)
        await asyncio.sleep(2.5 * QUEUE.ack_wait_s)
        done.set()

    await consume_until(queue, handler, done)
    assert starts == [1]


async def test_job_of_a_stopped_worker_goes_to_another_at_once(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    started, done = asyncio.Event(), asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def hang(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    async def finish(job: Job) -> None:
        done.set()

    first = asyncio.create_task(queue.consume(hang, concurrency=1))
    await started.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    async with asyncio.timeout(QUEUE.ack_wait_s * 0.8):
        await consume_until(queue, finish, done)


async def test_queue_that_an_operator_removed_is_made_anew(jetstream: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "_RETRY_AFTER_S", 0.05)
    queue = await open_queue(jetstream)
    done, first = asyncio.Event(), asyncio.Event()

    async def handler(job: Job) -> None:
        (first if job.job_id == "j1" else done).set()

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    try:
        async with asyncio.timeout(10):
            with use_principal(ANN):
                await queue.publish("acme.j1", b"", job_id="j1")
                await first.wait()
                await jetstream.js.delete_stream(QUEUE.stream)
                await queue.publish("acme.j2", b"", job_id="j2")
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def test_failing_jobs_of_one_tenant_do_not_hold_up_anothers(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, order = asyncio.Event(), []
    with use_principal(ANN):
        for n in range(200):
            await queue.publish(f"acme.j{n}", b"acme", job_id=f"j{n}")

    async def handler(job: Job) -> float | None:
        order.append(job.data)
        if len(order) == 20:
            with use_principal(ANN):
                await queue.publish("bee.k1", b"bee", job_id="k1")
        if job.data == b"bee":
            done.set()
            return None
        return 0.01  # each of them comes back for ever

    worker = asyncio.create_task(queue.consume(handler, concurrency=2))
    try:
        async with asyncio.timeout(30):
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    assert len(order) < 30, "it was its turn after one or two of the others"


async def test_cancellation_that_nobody_asked_for_is_a_failure_and_waits_its_turn(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, deliveries = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        deliveries.append(job.delivery)
        if job.delivery == 1:
            raise asyncio.CancelledError
        done.set()

    with capture_logs() as logs:
        await consume_until(queue, handler, done)
    assert deliveries == [1, 2]
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["job_handler_failed"]


async def test_job_that_cannot_be_made_again_is_kept_when_its_token_is_not_valid(jetstream: Nats) -> None:
    queue = await WorkQueue.open(jetstream, replace(QUEUE, refills_itself=False), make_signer(), make_verifier())
    await jetstream.js.publish(f"{QUEUE.subject}.acme.old", b"")
    done = asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        done.set()

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    async with asyncio.timeout(20):
        await done.wait()
        while await queue.pending() != 1:
            await asyncio.sleep(0.01)
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert await queue.pending() == 1


async def test_jobs_that_rest_hold_no_place(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done, rested = asyncio.Event(), set()
    with use_principal(ANN):
        for n in range(5):
            await queue.publish(f"acme.j{n}", b"", job_id=f"j{n}")
        await queue.publish("acme.last", b"", job_id="last")

    async def handler(job: Job) -> float | None:
        if job.job_id == "last":
            done.set()
            return None
        rested.add(job.job_id)
        return 3600.0

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    try:
        async with asyncio.timeout(30):
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    assert len(rested) == 5


async def test_consumer_of_an_older_version_is_replaced_and_its_jobs_are_done(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    old = await jetstream.js.pull_subscribe(f"{QUEUE.subject}.>", durable="workers", stream=QUEUE.stream)
    done = asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme.j1", b"", job_id="j1")
    await old.fetch(1)  # in the hands of the older version

    async def handler(job: Job) -> None:
        done.set()

    await consume_until(queue, handler, done)
    await old.unsubscribe()


async def test_tenant_whose_name_is_no_name_for_a_consumer_has_one_all_the_same(jetstream: Nats) -> None:
    queue = await open_queue(jetstream)
    done = asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme/de.j1", b"", job_id="j1")

    async def handler(job: Job) -> None:
        done.set()

    await consume_until(queue, handler, done)


async def test_reader_ends_when_this_process_closes_its_connection(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "closing")
    async with aclosing(bucket.watch()) as changes, asyncio.timeout(10):
        assert await anext(changes) is None
        await jetstream.nc.close()
        with pytest.raises(Unavailable):
            await anext(changes)


async def test_job_is_worked_on_in_the_trace_of_whoever_queued_it(jetstream: Nats) -> None:
    done = asyncio.Event()

    async def handler(_: Job) -> None:
        done.set()

    with recorded_spans() as spans:
        queue = await open_queue(jetstream)
        with use_principal(ANN), trace.get_tracer("test").start_as_current_span("upload") as upload:
            await queue.publish("acme.one", b"", job_id="1")
        await consume_until(queue, handler, done)
    (job,) = [span for span in spans.get_finished_spans() if span.name == "WORK job"]
    assert job.context is not None
    assert job.context.trace_id == upload.get_span_context().trace_id
