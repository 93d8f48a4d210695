"""The map of collections over a real bucket: changes arrive, refusals are looked up, and nothing is decided by a map that is
stale."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import pytest

from kit.access.principal import ADMIN, Principal
from kit.errors import Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.shared_state import COLLECTIONS
from kit.stores.collection_map import CollectionMap, CollectionsStale
from kit.stores.collections import CollectionAccess, decode_access

ANN, BOB = Principal("acme", "ann"), Principal("acme", "bob")
ADMINISTRATOR = Principal("acme", "root", frozenset({ADMIN}))
Map = CollectionMap[CollectionAccess]


def decode(entry: Entry) -> CollectionAccess | None:
    return decode_access(entry.value or b"")


def record(**fields: object) -> bytes:
    return json.dumps({"owner": "ann", "visibility": "private", "deleting": False} | fields).encode()


@pytest.fixture
async def bucket(jetstream: Nats) -> KeyValue:
    return await KeyValue.open(jetstream, COLLECTIONS.name)


@pytest.fixture
async def known(jetstream: Nats, bucket: KeyValue) -> AsyncIterator[Map]:
    await bucket.put("acme.old", record())
    known = await Map.open_to_read(jetstream, decode)
    following = asyncio.create_task(known.run())
    await known.wait_confirmed()
    yield known
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_changes_are_known_when_they_have_been_heard_of(known: Map, bucket: KeyValue) -> None:
    assert known.known("acme", "old") == CollectionAccess("ann")
    await known.wait_written(await bucket.put("acme.new", record(visibility="tenant")))
    assert await known.readable(BOB, ["old", "new", "never"]) == ("new",)
    await known.wait_written(await bucket.put("acme.new", record()))
    assert await known.readable(BOB, ["old", "new", "never"]) == ()
    assert await known.readable(ADMINISTRATOR, ["old", "new"]) == ("old", "new")
    await known.wait_written(await bucket.put("acme.new", record(deleting=True)))
    assert await known.readable(ANN, ["old", "new"]) == ("old",)
    await bucket.delete("acme.old")
    await known.wait_written(await bucket.last_revision())
    assert known.known("acme", "old") is None


async def test_what_was_shared_a_moment_ago_elsewhere_is_read_at_once(jetstream: Nats, bucket: KeyValue) -> None:
    """A map that hears of nothing stands for one that has not heard of it yet."""
    await bucket.put("acme.papers", record())
    deaf = Map(bucket, decode)
    deaf.require_fresh = lambda: None  # type: ignore[method-assign]
    assert await deaf.readable(BOB, ["papers"]) == ()
    await bucket.put("acme.papers", record(visibility="tenant"))
    assert await deaf.readable(BOB, ["papers"]) == ("papers",)


async def test_damaged_record_closes_its_collection_to_all_but_who_sees_all(known: Map, bucket: KeyValue) -> None:
    await known.wait_written(await bucket.put("acme.old", b"torn"))
    assert await known.readable(ANN, ["old"]) == ()
    assert await known.readable(ADMINISTRATOR, ["old"]) == ("old",)


async def test_who_waits_hears_when_their_rights_change_and_of_nothing_else(known: Map, bucket: KeyValue) -> None:
    waiting = {each: asyncio.create_task(known.wait_rights_changed(each)) for each in (ANN, BOB, ADMINISTRATOR)}
    await asyncio.sleep(0)
    await bucket.put("acme.other", record())
    await bucket.put("other.old", record(visibility="tenant"))
    await known.wait_written(await bucket.put("acme.old", record(name="renamed")))
    assert not any(each.done() for each in waiting.values())
    await bucket.put("acme.old", record(visibility="tenant"))
    async with asyncio.timeout(60):
        await waiting[BOB]
    assert not waiting[ANN].done()
    await bucket.put(
        "acme.old", record(visibility="tenant", owner="bob")
    )  # she still reads it, but what has a list no more
    async with asyncio.timeout(60):
        await waiting[ANN]
    assert not waiting[ADMINISTRATOR].done()
    for each in waiting.values():
        each.cancel()
    await asyncio.gather(*waiting.values(), return_exceptions=True)


async def test_map_that_was_not_confirmed_for_long_decides_nothing(bucket: KeyValue) -> None:
    now_s = 0.0
    known = Map(bucket, decode, staleness_s=30.0, clock=lambda: now_s)
    with pytest.raises(CollectionsStale):
        known.known("acme", "papers")
    following = asyncio.create_task(known.run())
    await known.wait_confirmed()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert known.known("acme", "papers") is None
    now_s = 31.0
    with pytest.raises(CollectionsStale):
        await known.readable(ADMINISTRATOR, ["papers"])


class MadeAnew:
    """A bucket that is lost once it was read, and made anew: its numbers begin again, and its entries have not come yet."""

    def __init__(self) -> None:
        self.revision = 9
        self.is_watched_again = asyncio.Event()

    async def watch(self) -> AsyncGenerator[Entry | None, None]:
        if self.revision == 9:
            yield Entry("acme.papers", record(visibility="tenant"), 9)
            yield None
            await asyncio.sleep(0.1)
            self.revision = 2
            raise Unavailable("lost")
        self.is_watched_again.set()
        await asyncio.Event().wait()

    async def last_revision(self) -> int:
        return self.revision


async def test_numbers_of_a_lost_bucket_do_not_vouch_for_the_one_that_is_made_in_its_place() -> None:
    bucket, clock = MadeAnew(), [0.0]
    known = CollectionMap(cast("KeyValue", bucket), decode, staleness_s=0.6, clock=lambda: clock[0])
    following = asyncio.create_task(known.run())
    try:
        await known.wait_confirmed()
        assert await known.readable(BOB, ["papers"]) == ("papers",)
        await bucket.is_watched_again.wait()
        clock[0] += 0.7
        for _ in range(3):
            assert not await known._check(0.05)
        with pytest.raises(CollectionsStale):
            known.known("acme", "papers")
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
