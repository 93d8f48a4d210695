"""Buckets and streams on a real nats-server. Elsewhere: test_connection, test_work_queue, test_objects (files)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nats.js import api

from kit import deadline
from kit.errors import Aborted, AlreadyExists, Unavailable
from kit.jetstream import Entry, KeyValue, Nats, connect
from kit.jetstream.reading import stored_messages
from kit.testing.nats import NatsServer
from tests.service.kit.test_connection import eventually


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


async def test_keys_are_listed_by_pattern_while_they_are_being_rewritten(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "KEYS")
    assert await bucket.keys(">") == []
    wanted = {f"a.{number}" for number in range(50)}
    for key in [*wanted, "b.1"]:
        await bucket.put(key, b"1")

    async def rewrite() -> None:
        while True:
            for key in wanted:
                await bucket.put(key, b"2")

    rewriting = asyncio.create_task(rewrite())
    for _ in range(20):
        assert set(await bucket.keys("a.>")) == wanted
    rewriting.cancel()
    await asyncio.gather(rewriting, return_exceptions=True)
    assert set(await bucket.keys(">")) == {*wanted, "b.1"}


async def test_entries_that_are_being_rewritten_are_listed_once_each(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "ENTRIES")
    wanted = {f"a.{number}" for number in range(300)}
    for key in [*wanted, "b.1"]:
        await bucket.put(key, b"1")

    async def rewrite(keys: set[str]) -> None:
        while True:
            for key in keys:
                await bucket.put(key, b"2")

    async with asyncio.TaskGroup() as group:
        writers = [group.create_task(rewrite({key for key in wanted if int(key[2:]) % 4 == own})) for own in range(4)]
        for _ in range(20):
            listed = [entry.key async for entry in bucket.entries("a.*")]
            assert set(listed) == wanted
            assert len(listed) == len(wanted)
        for writer in writers:
            writer.cancel()
    assert {entry.key for entry in [each async for each in bucket.entries(">")]} == {*wanted, "b.1"}


async def test_listing_that_goes_on_from_where_the_last_began_misses_nothing(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "ENTRIES")
    for number in range(50):
        await bucket.put(f"a.{number}", b"0")
    last: dict[str, Entry] = {}
    place = 0

    async def read_on() -> None:
        nonlocal place
        begin = await bucket.last_revision()
        last.update({entry.key: entry async for entry in bucket.entries(">", after=place)})
        place = begin

    async def rewrite() -> None:
        for turn in range(20):
            for number in range(50):
                await bucket.put(f"a.{number}", str(turn).encode())

    async with asyncio.TaskGroup() as group:
        writer = group.create_task(rewrite())
        while not writer.done():
            await read_on()
    await read_on()
    assert {entry.value for entry in last.values()} == {b"19"}
    assert len(last) == 50


async def test_stored_messages_are_read_in_batches_from_any_position(jetstream: Nats) -> None:
    await jetstream.ensure_stream(api.StreamConfig(name="THINGS", subjects=["things.*"], allow_direct=True))
    for number in range(600):
        await jetstream.js.publish("things.a", str(number).encode(), headers={"Number": str(number)})
        await jetstream.js.publish("things.b", b"other")
    whole = [message async for message in stored_messages(jetstream, "THINGS", "things.a")]
    assert [int(message.data) for message in whole] == list(range(600))
    assert {message.subject for message in whole} == {"things.a"}
    assert whole[7].headers["Number"] == "7"
    rest = [message async for message in stored_messages(jetstream, "THINGS", "things.a", after=whole[299].position)]
    assert rest == whole[300:]
    assert [each async for each in stored_messages(jetstream, "THINGS", "things.none")] == []
    with pytest.raises(Unavailable), deadline.within(0.5):
        [each async for each in stored_messages(jetstream, "LATER", "later.a")]


async def test_stream_that_no_server_has_at_the_moment_is_read_when_one_has_it(jetstream: Nats) -> None:
    """As one whose only server is being restarted, in a cluster."""
    asked = asyncio.Event()
    real = jetstream.nc.publish

    async def publish(subject: str, *args: Any, **more: Any) -> None:
        await real(subject, *args, **more)
        asked.set()

    async def read() -> list[bytes]:
        return [message.data async for message in stored_messages(jetstream, "LATER", "later.a")]

    jetstream.nc.publish = publish
    reading = asyncio.create_task(read())
    await asked.wait()
    await jetstream.ensure_stream(api.StreamConfig(name="LATER", subjects=["later.*"], allow_direct=True))
    await reading


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
    await bucket.put("a.1", b"old")
    read = jetstream.js.get_msg

    async def expired_when_read(*args: object, **more: object) -> api.RawStreamMsg:
        await bucket.purge_matching("a.1")
        return await read(*args, **more)

    monkeypatch.setattr(jetstream.js, "get_msg", expired_when_read)
    assert await bucket.create("a.1", b"one") == 2


async def test_deleted_key_is_absent_and_can_be_made_again(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    await bucket.create("a.1", b"one")
    await bucket.delete("a.1")
    assert await bucket.get("a.1") is None
    await bucket.create("a.1", b"again")


async def test_leader_tells_what_is_stored_now(jetstream: Nats) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    assert (await bucket.get("a.1"), await bucket.last_revision()) == (None, 0)
    revision = await bucket.create("a.1", b"one")
    assert await bucket.get("a.1") == Entry("a.1", b"one", revision)
    await bucket.put("a.2", b"other")
    assert await bucket.last_revision() == revision + 1
    for remove in (bucket.delete, bucket.purge):
        await remove("a.1")
        assert await bucket.get("a.1") is None
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


async def next_change(updates: AsyncIterator[Entry | None], seconds: float = 60.0) -> Entry | None:
    async with asyncio.timeout(seconds):
        return await anext(updates)


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


async def test_write_whose_answer_was_lost_is_known_as_ones_own_and_not_another_writers(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await KeyValue.open(jetstream, "THINGS")
    real, lost = jetstream.js.publish, 0

    async def answer_lost(*args: Any, **more: Any) -> api.PubAck:
        nonlocal lost
        ack = await real(*args, **more)
        lost += 1
        if lost % 2:
            raise TimeoutError
        return ack

    monkeypatch.setattr(jetstream.js, "publish", answer_lost)
    revision = await bucket.create("a", b"one")
    revision = await bucket.update("a", b"two", revision)
    assert await bucket.get("a") == Entry("a", b"two", revision)
    with pytest.raises(AlreadyExists):
        await bucket.create("a", b"three")
    assert await bucket.put("b", b"one") == revision + 1
    await bucket.purge("a", revision)
    assert await bucket.last_revision() == revision + 2
