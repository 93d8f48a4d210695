"""Files that are kept, and copied into collections."""

import asyncio
from pathlib import Path

import pytest

from kit.errors import GroundworkError
from services.ingest.documents.copying import Copying
from services.ingest.documents.listing import Page
from services.ingest.documents.models import Document, Status
from services.ingest.errors import BadPageToken, DocumentNotFound, NameTaken
from tests.unit.ingest.world import ANN, BOB, TENANT, World


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for collection_id in ("files", "store", "other"):
        await world.catalog.create(ANN, collection_id, "")
    return world


@pytest.fixture
def copying(world: World) -> Copying:
    return Copying(world.store, world.listing, world.catalog, world.uploads)


async def keep(world: World, text: str = "Four weeks.", name: str = "1/notice.txt") -> Document:
    return await world.upload(text, name=name, collection_id="files", keep=True)


async def test_kept_file_is_stored_and_not_read(world: World) -> None:
    kept = await keep(world)
    assert (kept.status, kept.pending) == (Status.KEPT, None)
    assert world.files.files == {(TENANT, kept.content.sha256): b"Four weeks."}
    assert not world.jobs.jobs


async def test_copy_is_a_document_of_its_own_that_shares_the_bytes(world: World, copying: Copying) -> None:
    kept = await keep(world)
    copy = await world.ingest(await copying.copy(ANN, kept.document_id, "store", {"year": "2026"}, "b1"))
    assert (copy.status, copy.name, copy.metadata, copy.copy_of) == (
        Status.READY,
        "notice.txt",
        {"year": "2026"},
        kept.document_id,
    )
    assert len(world.files.files) == 1
    assert (await world.listing.get(ANN, kept.document_id)).copies == {"store": copy.document_id}


async def test_copy_is_made_once_and_read_again_with_other_metadata(world: World, copying: Copying) -> None:
    kept = await keep(world)
    first = await world.ingest(await copying.copy(ANN, kept.document_id, "store", {}))
    again = await copying.copy(ANN, kept.document_id, "store", {}, "b2")
    assert (again.document_id, again.status, again.batch) == (first.document_id, Status.READY, "b2")
    changed = await copying.copy(ANN, kept.document_id, "store", {"year": "2026"})
    assert (changed.document_id, changed.status) == (first.document_id, Status.QUEUED)


async def test_files_of_one_name_are_both_in_the_store(world: World, copying: Copying) -> None:
    first, second = await keep(world), await keep(world, "Six weeks.", "2/notice.txt")
    copies = [await copying.copy(ANN, each.document_id, "store", {}) for each in (first, second)]
    assert copies[0].document_id != copies[1].document_id
    assert [each.name for each in copies] == ["notice.txt", f"{second.document_id[:8]}/notice.txt"]
    again = [await copying.copy(ANN, each.document_id, "store", {}) for each in (first, second)]
    assert [each.document_id for each in again] == [each.document_id for each in copies]


async def test_copy_that_was_cut_off_before_it_was_noted_is_found_again(world: World, copying: Copying) -> None:
    kept = await keep(world)
    copy = await copying.copy(ANN, kept.document_id, "store", {})
    stored = await world.store.get(TENANT, kept.document_id)
    assert stored is not None
    await world.store.update(kept, stored.version)  # as it was before
    again = await copying.copy(ANN, kept.document_id, "store", {})
    assert again.document_id == copy.document_id
    assert (await world.listing.get(ANN, kept.document_id)).copies == {"store": copy.document_id}


async def test_copies_into_two_collections_at_once_are_both_noted(world: World, copying: Copying) -> None:
    kept = await keep(world)
    await asyncio.gather(*(copying.copy(ANN, kept.document_id, each, {}) for each in ("store", "other")))
    assert set((await world.listing.get(ANN, kept.document_id)).copies) == {"store", "other"}


async def test_removed_copy_leaves_the_file_and_is_made_again(world: World, copying: Copying) -> None:
    kept = await keep(world)
    copy = await copying.copy(ANN, kept.document_id, "store", {})
    await world.deletion.delete(TENANT, copy.document_id)
    assert (TENANT, kept.content.sha256) in world.files.files
    again = await copying.copy(ANN, kept.document_id, "store", {})
    assert again.document_id != copy.document_id
    assert (await world.ingest(again)).status is Status.READY


async def test_document_of_the_collection_is_its_own_copy(world: World, copying: Copying) -> None:
    document = await world.ingest(await world.upload("Four weeks.", name="a.txt", collection_id="store"))
    assert (await copying.copy(ANN, document.document_id, "store", {})).document_id == document.document_id


async def test_kept_files_name_is_no_other_uploads(world: World) -> None:
    await keep(world)
    with pytest.raises(NameTaken, match=r"1/notice\.txt"):
        await world.upload("Six weeks.", name="1/notice.txt", collection_id="files")


async def test_others_neither_copy_the_file_nor_fill_the_store(world: World, copying: Copying) -> None:
    kept = await keep(world)
    with pytest.raises(DocumentNotFound):
        await copying.copy(BOB, kept.document_id, "default", {})
    theirs = await world.upload("Six weeks.", name="b.txt", caller=BOB, collection_id="default")
    with pytest.raises(GroundworkError, match="store"):
        await copying.copy(BOB, theirs.document_id, "store", {})


async def test_pages_go_on_after_a_document_in_either_order(world: World, copying: Copying) -> None:
    copies = []
    for number in range(3):
        kept = await keep(world, f"Text {number}.", f"{number}/t{number}.txt")
        copies.append((await copying.copy(ANN, kept.document_id, "store", {}, "b1")).document_id)
    oldest = Page("store", oldest_first=True, page_size=2, batch="b1")
    page, token, counts = await world.listing.page(ANN, oldest)
    assert ([each.document_id for each in page], bool(token), counts.on_their_way) == (copies[:2], True, 3)
    newest, _, _ = await world.listing.page(ANN, Page("store", after_document_id=copies[2]))
    assert [each.document_id for each in newest] == [copies[1], copies[0]]
    with pytest.raises(BadPageToken):
        await world.listing.page(ANN, Page("store", after_document_id="ab" * 16))
    assert (await world.listing.counts(ANN))["store"].total == 3
