"""kit.jetstream against a real nats-server."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from kit.errors import Aborted, AlreadyExists, DataLoss, Unavailable
from kit.jetstream import Entry, Job, KeyValue, Nats, ObjectStore, WorkQueue, WorkQueueConfig, connect, work_queue
from kit.jetstream.connection import cancellation_kept
from kit.jetstream.objects import PIECE_BYTES
from kit.jetstream.work_queue import Handler
from kit.principal import Principal, current_principal, use_principal
from kit.testing.nats import NatsServer

ANN = Principal("acme", "ann")
QUEUE = WorkQueueConfig(stream="WORK", subject="work", ack_wait_s=1.0, backoff_s=(0.01,))


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


async def test_deleted_key_is_absent_and_can_be_made_again(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    await bucket.create("a.1", b"one")
    await bucket.delete("a.1")
    assert await bucket.get("a.1") is None
    await bucket.create("a.1", b"again")


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


CONTENT = bytes(range(256)) * 2000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def test_file_survives_the_store_and_a_missing_one_is_named(jetstream: Nats, tmp_path: Path) -> None:
    store, target = await ObjectStore.open(jetstream, "FILES"), tmp_path / "out"
    await store.put("acme/abc", pieces(CONTENT))
    assert await store.exists("acme/abc")
    assert await store.get_to_file("acme/abc", target) == DIGEST
    assert target.read_bytes() == CONTENT
    await store.delete("acme/abc")
    assert not await store.exists("acme/abc")
    with pytest.raises(DataLoss, match="upload it again"):
        await store.get_to_file("acme/abc", target)


async def test_a_file_that_lost_a_piece_is_not_there_and_can_be_stored_again(jetstream: Nats, tmp_path: Path) -> None:
    store = await ObjectStore.open(jetstream, "FILES")
    await store.put("acme/abc", pieces(CONTENT))
    await jetstream.js.delete_msg("OBJ_FILES", 1)
    assert not await store.exists("acme/abc")
    await store.put("acme/abc", pieces(CONTENT))
    assert await store.exists("acme/abc")
    assert await store.get_to_file("acme/abc", tmp_path / "out") == DIGEST


async def test_files_are_stored_as_other_clients_store_them(jetstream: Nats, tmp_path: Path) -> None:
    store, target = await ObjectStore.open(jetstream, "FILES"), tmp_path / "out"
    theirs = await jetstream.js.object_store("FILES")
    await store.put("ours", pieces(CONTENT))
    assert (await theirs.get("ours")).data == CONTENT
    await theirs.put("theirs", CONTENT)
    assert await store.get_to_file("theirs", target) == DIGEST
    await store.put("empty", pieces(b""))
    assert await store.get_to_file("empty", target) == hashlib.sha256().hexdigest()
    assert target.read_bytes() == b""


async def test_file_that_breaks_off_leaves_nothing_behind(jetstream: Nats) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT[:1000]
        raise RuntimeError("the disk is gone")

    store = await ObjectStore.open(jetstream, "FILES")
    with pytest.raises(RuntimeError):
        await store.put("broken", broken())
    assert not await store.exists("broken")
    assert (await jetstream.js.stream_info("OBJ_FILES")).state.messages == 0


async def test_stored_file_that_lost_a_piece_is_called_damaged_or_missing(jetstream: Nats, tmp_path: Path) -> None:
    store = await ObjectStore.open(jetstream, "FILES")
    await store.put("acme/abc", pieces(CONTENT))
    assert await jetstream.js.delete_msg("OBJ_FILES", 2)
    with pytest.raises(DataLoss, match="upload it again"):
        await store.get_to_file("acme/abc", tmp_path / "out")


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start : start + PIECE_BYTES]


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
    queue = await WorkQueue.open(jetstream, QUEUE)
    done, seen = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme", b"data", job_id="j1")
        await queue.publish("acme", b"data", job_id="j1")

    async def handler(job: Job) -> None:
        seen.append((job.job_id, job.data, job.delivery, current_principal()))
        done.set()

    await consume_until(queue, handler, done)
    assert seen == [("j1", b"data", 1, ANN)]


async def test_job_comes_back_when_its_handler_says_so_and_after_every_error(jetstream: Nats) -> None:
    queue = await WorkQueue.open(jetstream, QUEUE)
    done, deliveries = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme", b"", job_id="j1")

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
    queue = await WorkQueue.open(jetstream, QUEUE)
    done, starts = asyncio.Event(), []
    with use_principal(ANN):
        await queue.publish("acme", b"", job_id="j1")

    async def handler(job: Job) -> None:
        starts.append(job.delivery)
        await asyncio.sleep(2.5 * QUEUE.ack_wait_s)
        done.set()

    await consume_until(queue, handler, done)
    assert starts == [1]


async def test_job_of_a_stopped_worker_goes_to_another_at_once(jetstream: Nats) -> None:
    queue = await WorkQueue.open(jetstream, QUEUE)
    started, done = asyncio.Event(), asyncio.Event()
    with use_principal(ANN):
        await queue.publish("acme", b"", job_id="j1")

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
    monkeypatch.setattr(work_queue, "_FETCH_TIMEOUT_S", 0.2)
    monkeypatch.setattr(work_queue, "_RETRY_AFTER_S", 0.05)
    queue = await WorkQueue.open(jetstream, QUEUE)
    done, first = asyncio.Event(), asyncio.Event()

    async def handler(job: Job) -> None:
        (first if job.job_id == "j1" else done).set()

    worker = asyncio.create_task(queue.consume(handler, concurrency=1))
    try:
        async with asyncio.timeout(10):
            with use_principal(ANN):
                await queue.publish("acme", b"", job_id="j1")
                await first.wait()
                await jetstream.js.delete_stream(QUEUE.stream)
                await queue.publish("acme", b"", job_id="j2")
            await done.wait()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


async def test_reader_ends_when_this_process_closes_its_connection(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "closing")
    async with aclosing(bucket.watch()) as changes, asyncio.timeout(10):
        assert await anext(changes) is None
        await jetstream.nc.close()
        with pytest.raises(Unavailable):
            await anext(changes)
