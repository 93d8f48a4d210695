"""Files that are kept, and copied into collections."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kit.errors import GroundworkError
from kit.stores.collections import Member, Visibility
from kit.stores.document_access import DocumentAccess
from services.ingest.documents.listing import Page
from services.ingest.documents.models import Document, Status
from services.ingest.documents.uploads.copying import Copying
from services.ingest.errors import BadAccess, BadPageToken, BadUpload, DocumentNotFound, NameTaken
from tests.unit.ingest.world import ANN, BOB, TENANT, World


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for collection_id in ("files", "store", "other"):
        await world.catalog.create(ANN, collection_id, "")
    return world


@pytest.fixture
def copying(world: World) -> Copying:
    return Copying(world.store, world.access, world.lists, world.listing, world.catalog, world.uploads)


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


@pytest.fixture
async def shared(world: World) -> None:
    """Everybody reads the files and the store, and Bob is an editor of the store."""
    for collection_id in ("files", "store"):
        await world.catalog.update(ANN, collection_id, visibility=Visibility.TENANT)
    await world.catalog.set_member(ANN, "store", Member("subject", "bob", "editor"))


@pytest.mark.usefixtures("shared")
async def test_copy_begins_with_the_access_list_of_its_original_and_keeps_its_own(
    world: World, copying: Copying
) -> None:
    kept = await keep(world)
    await world.lists.put(TENANT, kept.document_id, DocumentAccess("files", groups=frozenset({"legal"})))
    copy = await copying.copy(ANN, kept.document_id, "store", {})
    assert await world.lists.get(TENANT, copy.document_id) == DocumentAccess("store", groups=frozenset({"legal"}))
    with pytest.raises(DocumentNotFound):
        await world.listing.get(BOB, copy.document_id)
    own = DocumentAccess("store", groups=frozenset({"board"}))
    await world.lists.put(TENANT, copy.document_id, own)
    again = await copying.copy(ANN, kept.document_id, "store", {"year": "2026"})
    assert again.document_id == copy.document_id
    assert await world.lists.get(TENANT, copy.document_id) == own


async def test_listed_file_is_not_copied_to_where_a_list_hides_nothing(world: World, copying: Copying) -> None:
    kept = await keep(world)
    await world.lists.put(TENANT, kept.document_id, DocumentAccess("files", groups=frozenset({"legal"})))
    await world.collections.put(replace(world.collections.collections[TENANT, "store"], owner=""))
    with pytest.raises(BadAccess, match="has no owner"):
        await copying.copy(ANN, kept.document_id, "store", {})


@pytest.mark.usefixtures("shared")
async def test_copy_that_is_hidden_from_an_editor_is_not_changed_by_them(world: World, copying: Copying) -> None:
    kept = await keep(world)
    hidden = await copying.copy(ANN, kept.document_id, "store", {"year": "2026"})
    await world.lists.put(TENANT, hidden.document_id, DocumentAccess("store"))
    theirs = await copying.copy(BOB, kept.document_id, "store", {"year": "1999"})
    assert theirs.document_id != hidden.document_id
    assert (await world.record(hidden)).metadata == {"year": "2026"}
    assert (await copying.copy(BOB, kept.document_id, "store", {})).document_id == theirs.document_id


async def test_file_is_in_so_many_collections_and_deleted_copies_do_not_count(world: World, copying: Copying) -> None:
    kept = await keep(world)
    places = [f"store-{number}" for number in range(101)]
    for place in places:
        await world.catalog.create(ANN, place, "")
    first, *_ = [await copying.copy(ANN, kept.document_id, place, {}) for place in places[:100]]
    with pytest.raises(BadUpload, match="100 collections"):
        await copying.copy(ANN, kept.document_id, places[100], {})
    await copying.copy(ANN, kept.document_id, places[99], {"year": "2026"})
    await world.deletion.delete(TENANT, first.document_id)
    await copying.copy(ANN, kept.document_id, places[100], {})
    assert set((await world.record(kept)).copies) == set(places[1:])
