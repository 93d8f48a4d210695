"""What is replaced or removed leaves the block files of a real nats-server at once, where a store is declared so."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from nats.js import api
from structlog.testing import capture_logs

from kit.access.principal import Principal, use_principal
from kit.errors import Unavailable
from kit.jetstream import Job, KeyValue, Nats, ObjectStore, WorkQueue, erasing, kv
from kit.jetstream.erasing import erase_messages, erase_superseded
from kit.jetstream.reading import all_messages
from kit.state import Queue
from kit.testing.harness import make_signer, make_verifier
from kit.testing.nats import NatsServer

FIRST, SECOND, KEPT = b"zqvorluxburg", b"kwyjimandel", b"xanthoport"


def words_in_files(server: NatsServer) -> set[bytes]:
    """Which of the words the files of the server hold."""
    contents = [path.read_bytes() for path in Path(server.store).rglob("*") if path.is_file()]
    return {word for word in (FIRST, SECOND, KEPT) if any(word in content for content in contents)}


async def bucket_of(nats: Nats, **options: bool) -> KeyValue:
    """With an entry that stays."""
    bucket = await KeyValue.open(nats, "SAID", **options)
    await bucket.put("b.1", KEPT)
    return bucket


async def test_replaced_value_is_overwritten(nats: NatsServer, jetstream: Nats) -> None:
    bucket = await bucket_of(jetstream, erases=True)
    revision = await bucket.create("a.1", FIRST)
    assert words_in_files(nats) == {FIRST, KEPT}
    await bucket.update("a.1", SECOND, revision)
    assert words_in_files(nats) == {SECOND, KEPT}
    await bucket.put("a.1", b"third")
    assert words_in_files(nats) == {KEPT}
    assert {entry.key: entry.value async for entry in bucket.entries(">")} == {"a.1": b"third", "b.1": KEPT}


@pytest.mark.parametrize("remove", ["purge", "delete", "purge_matching"])
async def test_removed_value_is_overwritten(nats: NatsServer, jetstream: Nats, remove: str) -> None:
    bucket = await bucket_of(jetstream, erases=True)
    await bucket.create("a.1", FIRST)
    await getattr(bucket, remove)("a.1")
    assert words_in_files(nats) == {KEPT}
    assert await bucket.get("a.1") is None
    assert await bucket.was_deleted("a.1") is (remove != "purge_matching")
    await bucket.create("a.1", SECOND)
    assert [entry.value async for entry in bucket.entries("a.*")] == [SECOND]


async def test_what_a_killed_writer_left_is_overwritten_when_the_bucket_is_opened(
    nats: NatsServer, jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await bucket_of(jetstream, erases=True)
    revision = await bucket.create("a.1", FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(Nats, "delete", _nothing)
        await bucket.update("a.1", SECOND, revision)
    assert words_in_files(nats) == {FIRST, SECOND, KEPT}
    await KeyValue.open(jetstream, "SAID", erases=True)
    assert words_in_files(nats) == {SECOND, KEPT}
    await erase_superseded(jetstream, "KV_SAID", "$KV.SAID.>")  # finds nothing more
    assert words_in_files(nats) == {SECOND, KEPT}


async def test_what_was_purged_does_not_come_back_when_its_marker_expires_though_nothing_was_overwritten(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv, "_MARKER_TTL_S", 1)
    bucket = await bucket_of(jetstream, erases=True)
    await bucket.create("a.1", FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(Nats, "delete", _fails)
        with pytest.raises(Unavailable):
            await bucket.purge("a.1")
    await bucket.create("gone.1", SECOND)
    await bucket.purge("gone.1")
    async with asyncio.timeout(30):
        while await bucket.was_deleted("gone.1"):
            await asyncio.sleep(0.05)
    assert await bucket.get("a.1") is None
    await bucket.purge("a.1")  # as it is asked again
    async with asyncio.timeout(30):
        while await bucket.keys("a.*"):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("with_revision", [True, False])
async def test_purging_overwrites_also_what_earlier_writers_left(
    nats: NatsServer, jetstream: Nats, monkeypatch: pytest.MonkeyPatch, with_revision: bool
) -> None:
    bucket = await bucket_of(jetstream, erases=True)
    revision = await bucket.create("a.1", FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(Nats, "delete", _nothing)
        revision = await bucket.update("a.1", SECOND, revision)
    await bucket.purge("a.1", revision if with_revision else None)
    assert words_in_files(nats) == {KEPT}
    assert await bucket.was_deleted("a.1")
    assert (await jetstream.state("KV_SAID"))["messages"] == 2


async def test_replaced_value_that_could_not_be_overwritten_is_with_the_next_write(
    nats: NatsServer, jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = await bucket_of(jetstream, erases=True)
    revision = await bucket.create("a.1", FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(Nats, "delete", _fails)
        await bucket.update("a.1", SECOND, revision)
    assert words_in_files(nats) == {FIRST, SECOND, KEPT}
    with monkeypatch.context() as patch:
        patch.setattr(kv, "erase_messages", _fails_given)
        await bucket.update("c.1", b"of another key", await bucket.create("c.1", b"other"))
    await bucket.update("d.1", b"of another key", await bucket.create("d.1", b"other"))
    assert words_in_files(nats) == {SECOND, KEPT}
    assert (await jetstream.state("KV_SAID"))["messages"] == 4


async def test_opening_a_bucket_lists_its_keys_only_where_something_was_left(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bucket_of(jetstream, erases=True)
    monkeypatch.setattr(erasing, "subject_counts", _fails)
    await KeyValue.open(jetstream, "SAID", erases=True)


async def test_what_is_left_when_erasing_newest_first_is_cut_off_has_no_gap(
    jetstream: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    await jetstream.ensure_stream(api.StreamConfig(name="LOG", subjects=["log.>"], allow_direct=True))
    for word in (FIRST, SECOND, KEPT):
        await jetstream.store("LOG", "log.1", word)
    monkeypatch.setattr(erasing, "_AT_ONCE", 1)
    delete, calls = Nats.delete, 0

    async def once(nats: Nats, stream: str, position: int) -> None:
        nonlocal calls
        calls += 1
        await (delete if calls == 1 else _fails)(nats, stream, position)

    monkeypatch.setattr(Nats, "delete", once)
    with pytest.raises(Unavailable):
        await erase_messages(jetstream, "LOG", "log.1", newest_first=True)
    assert [message.data async for message in all_messages(jetstream, "LOG", "log.1")] == [FIRST, SECOND]


async def test_bucket_that_was_made_without_erasing_goes_on_without_and_says_so(
    nats: NatsServer, jetstream: Nats
) -> None:
    await jetstream.ensure_stream(api.StreamConfig(name="KV_SAID", subjects=["$KV.SAID.>"], deny_delete=True))
    await bucket_of(jetstream)
    with capture_logs() as logs:
        bucket = await KeyValue.open(jetstream, "SAID", erases=True)
    assert [(entry["event"], entry["bucket"]) for entry in logs] == [("bucket_cannot_erase", "SAID")]
    revision = await bucket.create("a.1", FIRST)
    await bucket.update("a.1", SECOND, revision)
    await bucket.purge("a.1")
    assert await bucket.get("a.1") is None
    assert (await jetstream.state("KV_SAID"))["messages"] == 2


async def test_job_that_is_done_is_overwritten_in_its_queue(nats: NatsServer, jetstream: Nats) -> None:
    said = Queue("SAID", "said", is_erased=True)
    queue = await WorkQueue.open(jetstream, said, make_signer(), make_verifier())
    with use_principal(Principal("acme", "ann")):
        for number, word in enumerate((KEPT, FIRST)):
            await queue.publish(f"acme.{number}", word, job_id=f"job-{number}")
    done = []

    async def do(job: Job) -> float | None:
        done.append(job.data)
        return None if job.data == FIRST else 3600.0

    worker = asyncio.create_task(queue.consume(do, concurrency=2))
    async with asyncio.timeout(30):
        while await queue.pending() > 1:
            await asyncio.sleep(0.01)
    assert words_in_files(nats) == {KEPT}
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)
    assert FIRST in done


async def test_pieces_of_a_removed_file_are_overwritten(nats: NatsServer, jetstream: Nats) -> None:
    store = await ObjectStore.open(jetstream, "FILES")

    async def pieces(word: bytes) -> AsyncIterator[bytes]:
        yield word

    await store.put("gone", pieces(FIRST))
    await store.put("kept", pieces(KEPT))
    await store.delete("gone")
    assert words_in_files(nats) == {KEPT}


async def _nothing(nats: Nats, stream: str, position: int) -> None:
    """As if the process had been killed before."""


async def _fails(*_: object) -> None:
    raise Unavailable("the store is away")


async def _fails_given(*_: object, before: int) -> None:
    raise Unavailable(f"the store is away from what is before {before}")
