"""A retriever that does not hear of deletions shows nothing, and goes on when it hears of them again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kit.errors import Unavailable
from services.retriever.errors import RevisionsStale
from services.retriever.models import Pointer, PointerEntry, PointerRemoved, RevisionKey
from services.retriever.revisions.freshness import Freshness
from services.retriever.revisions.revision_map import RevisionMap
from tests.unit.retriever.core_over_fakes import OPTIONS, Core, texts
from tests.unit.retriever.fakes import FakeRevisions

R1 = RevisionKey("local", "d1", "r1")
BOUND_S = 30.0


@pytest.fixture
async def core() -> Core:
    made = Core(revisions=RevisionMap(staleness_s=BOUND_S, clock=lambda: made.now_s))
    made.revisions.confirm(made.now_s)
    return made


@asynccontextmanager
async def _following(store: FakeRevisions, revisions: RevisionMap) -> AsyncIterator[None]:
    task = asyncio.create_task(revisions.follow(store, retry_s=0.01, resync_s=60))
    try:
        await revisions.wait_loaded()
        yield
    finally:
        task.cancel()


async def test_search_fails_closed_past_the_bound_also_what_is_remembered(core: Core) -> None:
    core.options = replace(OPTIONS, cache_bytes=1_000_000)
    await core.publish(R1, ["solar"])
    assert texts(await core.search("solar")) == ["solar"]
    core.now_s += BOUND_S
    assert texts(await core.search("solar")) == ["solar"]
    core.now_s += 1
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: core.search("solar"),
        lambda: core.reader.fetch("local", ["r1-0"], 0),
        lambda: core.revision_reader.check([R1]),
    ]
    for call in calls:
        with pytest.raises(RevisionsStale) as caught:
            await call()
        assert caught.value.reason == "REVISIONS_STALE"
        assert caught.value.retryable
    core.revisions.confirm(core.now_s)
    assert texts(await core.search("solar")) == ["solar"]


async def test_map_is_confirmed_only_when_every_stored_change_has_arrived() -> None:
    store, revisions = FakeRevisions(), RevisionMap(staleness_s=0.5)
    freshness = Freshness(store, revisions, staleness_s=0.5)
    await store.put("local", "d1", Pointer("r1", 1, "default", 1, 5), None)
    checking = asyncio.create_task(freshness.run())
    try:
        for _ in range(20):
            await asyncio.sleep(0)
        assert revisions.is_stale
        async with _following(store, revisions):
            assert freshness.troubles() == ()  # a start is not an outage
            await freshness.wait_confirmed()
            assert not revisions.is_stale
            assert freshness.troubles() == ()
    finally:
        checking.cancel()


async def test_pointer_that_changes_while_all_are_read_again_stays_and_one_that_is_gone_goes() -> None:
    store, revisions = FakeRevisions(), RevisionMap()
    entry = await store.put("local", "d1", Pointer("r1", 1, "default", 1, 5), None)
    await store.put("local", "d2", Pointer("r1", 1, "default", 1, 5), None)
    async with _following(store, revisions):
        assert revisions.visible("local") == ["d1", "d2"]
    await store.put("local", "d1", Pointer("r2", 2, "default", 1, 5), entry.version)
    del store.entries["local", "d2"]  # and the mark of its removal is gone
    last = await store.put("local", "d3", Pointer("r1", 1, "default", 1, 5), None)
    seen: list[list[str]] = []

    async def watch() -> AsyncGenerator[PointerEntry | PointerRemoved | None]:
        """Ends its list before the change of d1 has come."""
        yield last
        yield None
        seen.append(revisions.visible("local"))
        await asyncio.Event().wait()

    store.watch = watch  # type: ignore[method-assign]
    async with _following(store, revisions):
        while not seen:
            await asyncio.sleep(0)
    assert sorted(seen[0]) == ["d1", "d3"]
    assert revisions.is_active("local", "d1", "r2")


async def test_store_that_does_not_answer_confirms_nothing(core: Core) -> None:
    freshness = Freshness(core.store, core.revisions, staleness_s=BOUND_S)
    checking = asyncio.create_task(freshness.run())
    try:
        await freshness.wait_confirmed()
        core.store.error = Unavailable("NATS is away")
        core.now_s += BOUND_S + 1
        for _ in range(20):
            await asyncio.sleep(0)
        assert core.revisions.is_stale
        (trouble,) = freshness.troubles()
        assert (trouble.part, trouble.stops_service) == ("revisions", True)
    finally:
        checking.cancel()


async def test_pointer_that_was_removed_from_the_store_is_forgotten(core: Core) -> None:
    entry = await core.store.put("local", "d1", Pointer("r1", 1, "default", 1, 5), None)
    async with _following(core.store, core.revisions):
        assert core.revisions.is_active("local", "d1", "r1")
        await core.store.remove("local", "d1")
        await core.revisions.wait_followed(entry.version + 1)
    assert core.revisions.get("local", "d1") is None
    assert core.revisions.stats("local", []) == []
    assert core.revisions.chunk_count("local", ["default"]) == 0


async def test_pointer_that_was_removed_while_nobody_listened_is_forgotten(core: Core) -> None:
    core.revisions.apply(await core.store.put("local", "d1", Pointer("r1", 1, "default", 1, 5), None))
    core.revisions.apply(await core.store.put("local", "d2", Pointer("r2", 1, "default", 1, 5), None))
    del core.store.entries["local", "d1"]
    async with _following(core.store, core.revisions):
        assert core.revisions.get("local", "d1") is None
        assert core.revisions.is_active("local", "d2", "r2")


async def test_older_word_of_a_removal_does_not_undo_what_was_stored_since(core: Core) -> None:
    entry = await core.store.put("local", "d1", Pointer("r1", 1, "default", 1, 5), None)
    core.revisions.apply(entry)
    core.revisions.forget(PointerRemoved("local", "d1", entry.version - 1))
    assert core.revisions.is_active("local", "d1", "r1")
