"""Which document a name leads to: never to an id that was another document's, and to one however many upload it at once."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.ingest.documents.models import Document, Status
from tests.unit.ingest.world import ANN, TENANT, Crash, World

PLACE = (TENANT, "default", "notes.txt")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def delete_and_forget(world: World, document: Document) -> None:
    await world.deletion.delete(TENANT, document.document_id)
    world.clock.now += timedelta(hours=2)
    await world.sweeper.sweep()
    assert await world.store.get(TENANT, document.document_id) is None


async def assert_searchable(world: World, document: Document, text: str) -> None:
    assert (await world.ingest(document)).status is Status.READY
    assert world.index.searchable(document.document_id) == [text]


async def test_name_is_forgotten_with_its_deleted_document_and_given_to_a_fresh_one(world: World) -> None:
    first = await world.ingest(await world.upload("Some text."))
    await delete_and_forget(world, first)
    assert world.store.names == {}
    again = await world.upload("Some text.")
    assert again.document_id != first.document_id
    await assert_searchable(world, again, "Some text.")


async def test_name_that_outlived_its_document_leads_to_a_fresh_id(world: World) -> None:
    """As earlier versions left them behind."""
    first = await world.ingest(await world.upload("Some text."))
    claim = dict(world.store.names)
    await delete_and_forget(world, first)
    world.store.names = claim
    again = await world.upload("Some text.")
    assert again.document_id != first.document_id
    await assert_searchable(world, again, "Some text.")


async def test_collection_made_anew_takes_files_of_the_same_names(world: World) -> None:
    await world.catalog.create(ANN, "papers", "Papers")
    names = [f"{n}.txt" for n in range(3)]
    old = [await world.ingest(await world.upload("Old text.", name, collection_id="papers")) for name in names]
    await world.collections.put(replace(await world.catalog.get(ANN, "papers"), deleting=True))
    await world.clearing.finish(TENANT, "papers")
    await world.catalog.create(ANN, "papers", "Papers")
    world.clock.now += timedelta(hours=2)
    await world.sweeper.sweep()
    new = [await world.upload("New text.", name, collection_id="papers") for name in names]
    assert not {each.document_id for each in old} & {each.document_id for each in new}
    for each in new:
        await assert_searchable(world, each, "New text.")


async def test_name_that_passed_to_a_new_document_stays_with_it_when_the_old_one_is_forgotten(world: World) -> None:
    first = await world.upload("Some text.")
    await world.deletion.delete(TENANT, first.document_id)
    second = await world.upload("Some text.")
    world.clock.now += timedelta(hours=2)
    await world.sweeper.sweep()
    assert await world.store.get(TENANT, first.document_id) is None
    assert world.store.names[PLACE].document_id == second.document_id


async def test_upload_killed_after_it_claimed_the_name_does_not_keep_it(world: World) -> None:
    real = world.store.create

    async def killed(document: Document) -> Any:
        raise Crash("create")

    world.store.create = killed  # type: ignore[method-assign, assignment]
    with pytest.raises(Crash):
        await world.upload("Some text.")
    world.store.create = real  # type: ignore[method-assign]
    document = await world.upload("Other text.")
    await assert_searchable(world, document, "Other text.")


async def test_slow_upload_whose_id_was_voided_goes_on_with_the_document_that_has_the_name(world: World) -> None:
    real = world.store.create
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def slow(document: Document) -> Any:
        if not reached.is_set():
            reached.set()
            await go_on.wait()
        return await real(document)

    world.store.create = slow  # type: ignore[method-assign]
    first = asyncio.create_task(world.upload("First text."))
    await reached.wait()
    second = await world.upload("Second text.")
    go_on.set()
    last = await first
    assert last.document_id == second.document_id
    assert last.pending is not None
    assert last.pending.number == 2
    await assert_searchable(world, last, "First text.")
    living = [each for each in world.store.records.values() if each.document.status is not Status.DELETED]
    assert len(living) == 1


async def test_uploads_of_one_name_at_once_make_one_document(world: World) -> None:
    documents = await asyncio.gather(*(world.upload(f"Text {n}.") for n in range(8)))
    assert len({document.document_id for document in documents}) == 1
    living = [each for each in world.store.records.values() if each.document.status is not Status.DELETED]
    assert len(living) == 1
    await world.ingest(living[0].document)
    assert len(world.index.active) == 1
