"""Collections: made, filled and deleted, also while files arrive in them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.ingest.documents.models import Collection, Document, Status, StoredDocument
from services.ingest.errors import (
    BadName,
    CollectionExists,
    CollectionNotFound,
    CollectionProtected,
)
from services.ingest.spool import SpooledFile
from services.ingest.upkeep import clearing as clearing_module
from tests.unit.ingest.world import ANN, TENANT, Crash, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_default_collection_exists_unmade_and_cannot_be_removed(world: World) -> None:
    assert [c.collection_id for c in await world.catalog.all_of(ANN)] == ["default"]
    with pytest.raises(CollectionProtected):
        await world.catalog.delete(ANN, "default")
    with pytest.raises(CollectionExists):
        await world.catalog.create(ANN, "default", "")


async def test_collection_id_is_made_from_its_name(world: World) -> None:
    made = await world.catalog.create(ANN, "", "Annual Reports 2024 (Draft)")
    assert (made.collection_id, made.name) == ("annual-reports-2024-draft", "Annual Reports 2024 (Draft)")


async def test_name_that_holds_nothing_of_an_id_gets_one_of_its_own(world: World) -> None:
    first = await world.catalog.create(ANN, "", "合同", free_mark="1a2b3c4d")
    second = await world.catalog.create(ANN, "", "報告", free_mark="5e6f7a8b")
    assert first.collection_id != second.collection_id
    assert [(await world.catalog.get(ANN, each.collection_id)).name for each in (first, second)] == ["合同", "報告"]
    with pytest.raises(BadName):
        await world.catalog.create(ANN, "", "", free_mark="1a2b3c4d")


@pytest.fixture
async def clearing(world: World) -> AsyncIterator[None]:
    running = asyncio.create_task(world.clearing.run())
    yield
    running.cancel()


async def test_names_of_which_an_id_keeps_the_same_make_two_collections(world: World) -> None:
    first = await world.catalog.create(ANN, "", "Договоры 2026", free_mark="1a2b3c4d")
    second = await world.catalog.create(ANN, "", "Счета 2026", free_mark="5e6f7a8b")
    assert (first.collection_id, second.collection_id) == ("2026", "2026-5e6f7a8b")
    with pytest.raises(CollectionExists):
        await world.catalog.create(ANN, "", "договоры 2026", free_mark="9a9b9c9d")


@pytest.mark.usefixtures("clearing")
async def test_deleting_a_collection_deletes_its_documents(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    document = await world.ingest(await world.upload("hello", collection_id="papers"))
    kept = await world.upload("hello", name="kept.txt")
    assert await world.catalog.delete(ANN, "papers")
    with pytest.raises(CollectionNotFound):
        await world.catalog.get(ANN, "papers")
    assert world.index.searchable(document.document_id) == []
    assert await world.listing.get(ANN, kept.document_id) == kept
    await world.catalog.create(ANN, "papers", "Papers")


async def test_upload_asks_the_store_once_whether_its_collection_is_there(world: World) -> None:
    """Before its job is queued; beforehand what is known here is enough."""
    await world.catalog.create(ANN, "notes", "Notes")
    reads: list[str] = []
    get = world.collections.get

    async def counted(tenant_id: str, collection_id: str) -> Collection | None:
        reads.append(collection_id)
        return await get(tenant_id, collection_id)

    world.collections.get = counted  # type: ignore[method-assign]
    for name in ("a.txt", "b.txt", "c.txt"):
        await world.upload(name, name, collection_id="notes")
    assert len(reads) == 3


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_collection_deleted_a_moment_after_an_upload_takes_no_more(
    world: World, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing_module, "PATIENCE_S", 0.0)
    await world.catalog.create(ANN, "notes", "Notes")
    before = await world.upload("a", "a.txt", collection_id="notes")
    if where == "elsewhere":
        alive = world.collections.collections[TENANT, "notes"]
        world.collections.known = lambda *_: alive  # type: ignore[method-assign]
    await world.catalog.delete(ANN, "notes")
    with pytest.raises(CollectionNotFound, match="being deleted" if where == "here" else "was deleted while"):
        await world.upload("b", "b.txt", collection_id="notes")
    later = [stored.document for stored in world.store.records.values() if stored.document.name == "b.txt"]
    assert [document.status for document in later] == ([] if where == "here" else [Status.DELETED])
    assert [job.document_id for job in world.jobs.jobs.values()] == [before.document_id]
    assert set(world.files.files) == {(TENANT, before.content.sha256)}


async def test_collection_that_takes_long_to_empty_is_gone_at_once_and_emptied_by_the_sweep(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing_module, "PATIENCE_S", 0.0)
    await world.catalog.create(ANN, "papers", "Papers")
    document = await world.ingest(await world.upload("hello", collection_id="papers"))
    assert not await world.catalog.delete(ANN, "papers")
    with pytest.raises(CollectionNotFound):
        await world.upload("hello", collection_id="papers")
    with pytest.raises(CollectionExists, match="still being deleted"):
        await world.catalog.create(ANN, "papers", "Papers")
    await world.sweeper.sweep()
    assert world.index.searchable(document.document_id) == []
    await world.catalog.create(ANN, "papers", "Papers")


async def test_collection_deleted_during_an_upload_takes_the_document_with_it(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")

    real = world.files.put

    async def put_while_the_collection_is_deleted(tenant_id: str, file: SpooledFile) -> None:
        await real(tenant_id, file)
        await world.collections.delete(TENANT, "papers")

    world.files.put = put_while_the_collection_is_deleted  # type: ignore[method-assign]
    with pytest.raises(CollectionNotFound, match=r"papers was deleted while notes.txt was uploaded"):
        await world.upload("hello", collection_id="papers")
    assert [stored.document.status for stored in world.store.records.values()] == [Status.DELETED]
    assert world.files.files == {}


async def test_upload_killed_before_it_found_its_collection_deleted_leaves_nothing(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    real = world.store.create

    async def killed_while_the_collection_is_deleted(document: Document) -> StoredDocument:
        await real(document)
        await world.collections.delete(TENANT, "papers")
        raise Crash("create")

    world.store.create = killed_while_the_collection_is_deleted  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await world.upload("hello", collection_id="papers")
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert [stored.document.status for stored in world.store.records.values()] == [Status.DELETED]
    assert world.files.files == world.jobs.jobs == {}


async def test_upload_killed_in_a_collection_whose_record_was_lost_is_not_taken_for_deleted(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    document = await world.upload("hello", collection_id="papers")
    world.jobs.jobs.clear()
    world.collections.collections.clear()
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert (await world.ingest(document)).status is Status.READY


@pytest.mark.usefixtures("clearing")
async def test_deleting_a_large_collection_reads_each_record_a_few_times_only(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    shared = await world.upload("Text 7.", name="kept.txt")
    for n in range(250):
        await world.upload(f"Text {n}.", name=f"{n}.txt", collection_id="papers")
    records = 0
    everything, changes = world.store.all_of, world.store.changed_since

    async def counting(found: AsyncIterator[StoredDocument]) -> AsyncIterator[StoredDocument]:
        nonlocal records
        async for each in found:
            records += 1
            yield each

    world.store.all_of = lambda tenant_id: counting(everything(tenant_id))  # type: ignore[method-assign]
    world.store.changed_since = lambda version: counting(changes(version))  # type: ignore[method-assign]
    await world.catalog.delete(ANN, "papers")
    assert records <= 3 * 251 + 100, "the records once, each as it changed, once more to find the collection's"
    assert list(world.files.files) == [(TENANT, shared.content.sha256)]
    assert {stored.document.status for stored in world.store.records.values()} == {Status.QUEUED, Status.DELETED}
    assert all(stored.document.swept for stored in world.store.records.values() if stored.document != shared)
