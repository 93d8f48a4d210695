"""Activating, deleting, and removing what is no longer visible."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kit.errors import Unavailable
from services.retriever.errors import InvalidRequest, RevisionIncomplete, RevisionSuperseded
from services.retriever.models import CollectionStats, Pointer, PointerEntry, RevisionKey
from services.retriever.revisions.written import FRESH_S, WrittenRevisions
from tests.unit.retriever.core_over_fakes import Core, texts
from tests.unit.retriever.fakes import make_chunk

R1, R2 = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d1", "r2")


@contextlib.asynccontextmanager
async def _removing(core: Core) -> AsyncIterator[None]:
    """Runs the remover; leaves when it has nothing left to do."""
    task = asyncio.create_task(core.remover.run())
    try:
        yield
        await core.remover.idle()
    finally:
        task.cancel()


async def test_activation_removes_the_older_revision_and_no_other(core: Core) -> None:
    r3 = RevisionKey("local", "d1", "r3")
    async with _removing(core):
        await core.publish(R1, ["solar"], 1)
        await core.index(r3, ["being written"])
        await core.publish(R2, ["solar new"], 2)
    assert [await core.dense.count(key) for key in (R1, R2, r3)] == [0, 1, 1]
    assert [await core.lexical.count(key) for key in (R1, R2, r3)] == [0, 1, 1]


async def test_activation_repeated_succeeds_with_the_first_time(core: Core) -> None:
    await core.index(R1, ["solar"])
    first = await core.activate(R1, 1, 1)
    core.now_s += 60
    assert await core.activate(R1, 1, 1) == first == 1_000_000_000


@pytest.mark.parametrize("engine", ["dense", "lexical"])
async def test_an_index_that_lacks_chunks_refuses_activation(core: Core, engine: str) -> None:
    await core.index(R1, ["solar", "wind"])
    getattr(core, engine).rows.pop()
    core.now_s += FRESH_S
    with pytest.raises(RevisionIncomplete) as caught:
        await core.activate(R1, 1, 2)
    assert caught.value.reason == "REVISION_INCOMPLETE"
    assert await core.store.get("local", "d1") is None


async def test_what_was_written_a_moment_ago_is_not_counted_again(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    await core.index(R1, ["solar", "wind"])
    monkeypatch.setattr(core.dense, "count", not_to_be_called)
    monkeypatch.setattr(core.lexical, "count", not_to_be_called)
    await core.activate(R1, 1, 2)
    assert core.revisions.is_active("local", "d1", "r1")


async def test_attempt_that_breaks_off_makes_the_revision_be_counted(core: Core) -> None:
    await core.index(R1, ["solar", "wind"])
    core.dense.rows.pop()
    with pytest.raises(InvalidRequest):
        await core.index_chunks(R1, [make_chunk("solar", 0, key=R1), make_chunk("solar", 0, key=R1)])
    with pytest.raises(RevisionIncomplete):
        await core.activate(R1, 1, 2)


async def test_revision_that_was_removed_as_orphaned_is_counted(core: Core) -> None:
    await core.index(R1, ["solar", "wind"])
    async with _removing(core):
        core.remover.remove_revision(R1)
    with pytest.raises(RevisionIncomplete):
        await core.activate(R1, 1, 2)


def test_written_revisions_are_remembered_for_a_minute_and_no_longer() -> None:
    now = 0.0
    written = WrittenRevisions(lambda: now)
    written.note(R1, 2)
    now = FRESH_S - 1
    written.note(R2, 3)
    assert [written.chunk_count(key) for key in (R1, R2)] == [2, 3]
    now = FRESH_S
    assert [written.chunk_count(key) for key in (R1, R2)] == [None, 3]
    written.note(RevisionKey("local", "d2", "r1"), 1)
    assert R1 not in written._written


async def not_to_be_called(key: RevisionKey) -> int:
    raise AssertionError(f"{key} was counted")


async def test_more_chunks_than_expected_refuse_activation(core: Core) -> None:
    await core.index(R1, ["solar", "wind"])
    with pytest.raises(RevisionIncomplete):
        await core.activate(R1, 1, 1)


async def test_an_older_or_equal_number_is_superseded(core: Core) -> None:
    await core.publish(R2, ["new"], 2)
    await core.index(R1, ["old"])
    for number in (1, 2):
        with pytest.raises(RevisionSuperseded) as caught:
            await core.activate(R1, number, 1)
        assert caught.value.reason == "REVISION_SUPERSEDED"
    assert texts(await core.search("new")) == ["new"]


async def test_a_writer_that_loses_the_race_decides_anew(core: Core) -> None:
    await core.index(R1, ["solar"])
    core.store.on_put.append(PointerEntry("local", "d1", Pointer("r2", 2, "default", 1, 5), 0))
    with pytest.raises(RevisionSuperseded):
        await core.activate(R1, 1, 1)
    core.store.on_put.append(PointerEntry("local", "d9", Pointer("r0", 1, "default", 1, 5), 0))
    newer = RevisionKey("local", "d9", "r9")
    await core.publish(newer, ["wind"], 2)
    assert core.revisions.is_active("local", "d9", "r9")


@pytest.mark.parametrize(("number", "chunk_count"), [(0, 1), (1, 0)])
async def test_number_and_chunk_count_start_at_one(core: Core, number: int, chunk_count: int) -> None:
    with pytest.raises(InvalidRequest):
        await core.activate(R1, number, chunk_count)


async def test_a_deleted_document_is_gone_and_stays_gone(core: Core) -> None:
    async with _removing(core):
        await core.publish(R1, ["solar"])
        await core.index(R2, ["solar new"])
        await core.switch.delete("local", "d1")
        assert texts(await core.search("solar")) == []
        with pytest.raises(RevisionSuperseded):
            await core.activate(R2, 2, 1)
        with pytest.raises(RevisionSuperseded):
            await core.index(R2, ["solar again"])
        await core.switch.delete("local", "d1")
    assert (core.dense.rows, core.lexical.rows) == ([], [])


async def test_deleting_an_unknown_document_keeps_a_running_job_from_activating(core: Core) -> None:
    await core.index(R1, ["solar"])
    await core.switch.delete("local", "d1")
    with pytest.raises(RevisionSuperseded):
        await core.activate(R1, 1, 1)


async def test_sizes_are_counted_over_active_revisions(core: Core) -> None:
    await core.publish(R1, ["a", "b"])
    await core.publish(RevisionKey("local", "d2", "x"), ["c"])
    await core.publish(RevisionKey("rival", "d3", "y"), ["c"])
    await core.index(R2, ["a", "b", "c"])
    assert core.revisions.stats("local", []) == [CollectionStats("default", 2, 3)]
    assert core.revisions.stats("local", ["other"]) == []
    await core.switch.delete("local", "d1")
    assert core.revisions.stats("local", ["default"]) == [CollectionStats("default", 1, 1)]


async def test_reconciler_removes_old_orphans_and_deleted_documents_only(core: Core) -> None:
    orphan, deleted = RevisionKey("local", "d2", "r1"), RevisionKey("local", "d3", "r1")
    await core.publish(R1, ["active"])
    await core.index(orphan, ["orphan"])
    core.now_s += 4000
    await core.index(R2, ["being written"])
    await core.index(deleted, ["deleted"])
    await core.switch.delete("local", "d3")
    async with _removing(core):
        assert await core.reconciler.reconcile() == 2
    left = {row.write.revision for row in (*core.dense.rows, *core.lexical.rows)}
    assert left == {R1, R2}


async def test_a_failed_removal_does_not_stop_the_next(core: Core) -> None:
    await core.index(R1, ["one"])
    core.lexical.error = Unavailable("down")
    async with _removing(core):
        core.remover.remove_revision(R1)
        await core.remover.idle()
        core.lexical.error = None
        core.remover.remove_revision(R1)
    assert (core.dense.rows, core.lexical.rows) == ([], [])


async def test_the_map_follows_changes_of_others_and_ignores_stale_ones(core: Core) -> None:
    task = asyncio.create_task(core.revisions.follow(core.store, retry_s=0.01, resync_s=60))
    await core.revisions.wait_loaded()
    entry = await core.store.put("local", "d7", Pointer("r7", 3, "default", 1, 5), None)
    while not core.revisions.is_active("local", "d7", "r7"):
        await asyncio.sleep(0)
    core.revisions.apply(PointerEntry("local", "d7", Pointer("r6", 2, "default", 1, 4), entry.version - 1))
    assert core.revisions.is_active("local", "d7", "r7")
    task.cancel()


async def test_map_that_lags_does_not_remove_what_is_visible(core: Core) -> None:
    await core.index(R1, ["solar"])
    await core.store.put(
        "local", "d1", Pointer("r1", 1, "default", 1, 5), None
    )  # by another retriever; no word of it here
    core.now_s += 4000
    async with _removing(core):
        assert await core.reconciler.reconcile() == 1
    assert [len(core.dense.rows), len(core.lexical.rows)] == [1, 1]
    assert texts(await core.search("solar")) == ["solar"]


async def test_nothing_is_removed_while_its_pointer_cannot_be_read(core: Core) -> None:
    await core.index(R1, ["solar"])
    core.now_s += 4000
    core.store.error = Unavailable("no store")
    async with _removing(core):
        await core.reconciler.reconcile()
    core.store.error = None
    await core.store.break_value("local", "d1")
    async with _removing(core):
        await core.reconciler.reconcile()
        core.remover.remove_document("local", "d1")
    assert [len(core.dense.rows), len(core.lexical.rows)] == [1, 1]


async def test_revision_is_not_removed_while_it_is_being_activated(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """An activation that waited for the store for an hour goes through after the reconciler has called its chunks orphans."""
    await core.index(R1, ["solar"])
    core.now_s += 4000
    putting, may_put = asyncio.Event(), asyncio.Event()
    put = core.store.put

    async def slow_put(*args: object) -> PointerEntry:
        putting.set()
        await may_put.wait()
        return await put(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(core.store, "put", slow_put)
    activation = asyncio.create_task(core.activate(R1, 1, 1))
    await putting.wait()
    async with _removing(core):
        assert await core.reconciler.reconcile() == 1
        for _ in range(100):  # time enough for a removal that does not wait
            await asyncio.sleep(0)
        may_put.set()
        await activation
    assert texts(await core.search("solar")) == ["solar"]


async def test_unreadable_pointer_hides_its_document_until_it_is_deleted_or_made_again(core: Core) -> None:
    await core.publish(R1, ["solar"])
    core.revisions.apply(await core.store.break_value("local", "d1"))
    assert texts(await core.search("solar")) == []
    await core.publish(R2, ["solar new"], 2)
    assert texts(await core.search("solar")) == ["solar new"]
    core.revisions.apply(await core.store.break_value("local", "d1"))
    await core.switch.delete("local", "d1")
    with pytest.raises(RevisionSuperseded):
        await core.activate(R1, 1, 1)


async def test_fields_of_a_newer_version_outlive_a_change_of_ours(core: Core) -> None:
    newer = Pointer("r1", 1, "default", 1, 5, newer_fields={"shard": 7})
    await core.store.put("local", "d1", newer, None)
    await core.publish(R2, ["solar"], 2)
    for _ in range(2):
        stored = await core.store.get("local", "d1")
        assert stored is not None
        assert stored.pointer is not None
        assert stored.pointer.newer_fields == {"shard": 7}
        await core.switch.delete("local", "d1")
