"""Uploads, listings and deletions."""

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest

from kit.access.principal import Principal
from kit.errors import GroundworkError
from services.ingest.documents.listing import DocumentCounts, Page
from services.ingest.documents.models import Status
from services.ingest.errors import (
    BadName,
    BadPageToken,
    CollectionNotFound,
    DocumentNotFound,
    FileTooLarge,
    UploadCorrupt,
)
from tests.unit.ingest.world import ANN, LIMIT_BYTES, TENANT, Crash, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_upload_stores_file_record_and_job(world: World) -> None:
    document = await world.upload("hello there", name="a.txt", metadata={"team": "blue"})
    assert document.status is Status.QUEUED
    assert document.content.sha256 == hashlib.sha256(b"hello there").hexdigest()
    assert document.content.media_type == "text/plain"
    assert document.metadata == {"team": "blue"}
    assert world.files.files == {(TENANT, document.content.sha256): b"hello there"}
    assert world.job(document).document_id == document.document_id


async def test_same_name_and_content_answers_with_the_existing_document(world: World) -> None:
    first = await world.upload("hello")
    assert await world.upload("hello") == first
    assert len(world.jobs.jobs) == 1


async def test_same_name_in_another_collection_is_another_document(world: World) -> None:
    await world.catalog.create(ANN, "other", "")
    first = await world.upload("hello")
    second = await world.upload("hello", collection_id="other")
    assert first.document_id != second.document_id
    assert len(world.files.files) == 1


async def test_same_name_with_other_content_is_a_new_revision_of_the_same_document(world: World) -> None:
    first = await world.upload("hello")
    second = await world.upload("goodbye")
    assert second.document_id == first.document_id
    assert second.pending is not None
    assert second.pending.number == 2


async def test_same_file_with_other_metadata_is_read_again(world: World) -> None:
    await world.ingest(await world.upload("hello", metadata={"year": "2023"}))
    again = await world.upload("hello", metadata={"year": "2024"})
    assert again.status is Status.QUEUED
    assert again.metadata == {"year": "2024"}


async def test_failed_document_is_tried_again_when_uploaded_again(world: World) -> None:
    failed = await world.ingest(await world.upload("", name="empty.txt"))
    assert failed.status is Status.FAILED
    again = await world.upload("", name="empty.txt")
    assert again.document_id == failed.document_id
    assert again.status is Status.QUEUED


async def test_name_of_a_deleted_document_is_given_to_a_new_one(world: World) -> None:
    first = await world.upload("hello")
    await world.deletion.delete(TENANT, first.document_id)
    second = await world.upload("hello")
    assert second.document_id != first.document_id
    assert (await world.ingest(second)).status is Status.READY


async def test_upload_over_the_limit_is_refused_before_its_bytes_when_announced(world: World) -> None:
    with pytest.raises(FileTooLarge, match=r"larger than 1 MiB"):
        await world.upload("x", size_bytes=LIMIT_BYTES + 1)


async def test_upload_over_the_limit_is_refused_when_it_is_reached(world: World) -> None:
    with pytest.raises(FileTooLarge):
        await world.upload(b"x" * (LIMIT_BYTES + 1))
    assert world.files.files == {}
    assert world.store.records == {}


async def test_upload_with_wrong_checksum_is_refused(world: World) -> None:
    with pytest.raises(UploadCorrupt, match="send it again"):
        await world.upload("hello", sha256="0" * 64)


async def test_upload_shorter_than_announced_is_refused(world: World) -> None:
    with pytest.raises(UploadCorrupt, match="5 bytes, announced were 9"):
        await world.upload("hello", size_bytes=9)


async def test_upload_into_an_unknown_collection_is_refused(world: World) -> None:
    with pytest.raises(CollectionNotFound):
        await world.upload("hello", collection_id="nowhere")


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\me\\report.txt", "report.txt"),
        ("/absolute/path.txt", "path.txt"),
        ("C:/Users/me/report.txt", "report.txt"),
        ("docs\\api.md", "api.md"),
        ("docs/old\\api.md", "api.md"),
        ("docs//api.md", "api.md"),
        ("./docs/api.md", "api.md"),
        ("docs/../api.md", "api.md"),
        ("naïve ☕ 報告.txt", "naïve ☕ 報告.txt"),
        ("Cafe\u0301.txt", "Café.txt"),
    ],
)
async def test_folders_that_are_no_clean_relative_path_are_cut_off_names(world: World, raw: str, kept: str) -> None:
    assert (await world.upload("x", name=raw)).name == kept


@pytest.mark.parametrize(
    ("raw", "kept"), [("docs/adr/0001.md", "docs/adr/0001.md"), ("Cafe\u0301/a.txt", "Café/a.txt")]
)
async def test_a_clean_relative_path_is_kept_as_the_name(world: World, raw: str, kept: str) -> None:
    assert (await world.upload("x", name=raw)).name == kept


async def test_files_of_the_same_name_in_two_folders_are_two_documents(world: World) -> None:
    first, second = await world.upload("a", name="a/README.md"), await world.upload("b", name="b/README.md")
    assert first.document_id != second.document_id
    assert {first.content.media_type, second.content.media_type} == {"text/markdown"}


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "..",
        "a/..",
        "docs/",
        "do\ncs/a.txt",
        "b/" * 130 + "a.txt",
        "nul\x00.txt",
        "a" * 300,
        "exe.\u202etxt",
        "line\nbreak.txt",
        "tab\t.txt",
        "\ud800.txt",
    ],
)
async def test_hostile_names_are_refused(world: World, raw: str) -> None:
    with pytest.raises(BadName):
        await world.upload("x", name=raw)


@pytest.mark.parametrize("raw", ["*", ">", "a.b", "../x", "A" * 20, "", "x" * 65])
async def test_hostile_ids_reach_no_key(world: World, raw: str) -> None:
    with pytest.raises(DocumentNotFound):
        await world.listing.get(ANN, raw)
    with pytest.raises(DocumentNotFound):
        await world.deletion.delete(TENANT, raw)
    with pytest.raises(GroundworkError):
        await world.catalog.get(ANN, raw)


async def test_crash_between_record_and_job_is_repaired_by_the_sweep(world: World) -> None:
    def crash() -> None:
        raise Crash("publish")

    world.jobs.on_publish = crash
    with pytest.raises(Crash):
        await world.upload("hello")
    world.jobs.on_publish = None
    (stored,) = world.store.records.values()
    await world.sweeper.sweep()
    assert world.jobs.jobs == {}, "the record is too young: its upload may still be running"
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert (await world.ingest(stored.document)).status is Status.READY


async def test_sweep_leaves_documents_with_a_job_alone(world: World) -> None:
    document = await world.upload("hello")
    world.clock.now += timedelta(minutes=1)
    world.jobs.on_publish = lambda: pytest.fail("queued twice")
    await world.sweeper.sweep()
    assert world.job(document)


async def test_interrupted_deletion_is_finished_by_the_sweep(world: World) -> None:
    document = await world.ingest(await world.upload("hello there"))
    real = world.index.delete

    async def crash(_: str) -> None:
        raise Crash("delete")

    world.index.delete = crash  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await world.deletion.delete(TENANT, document.document_id)
    with pytest.raises(DocumentNotFound):
        await world.listing.get(ANN, document.document_id)
    world.index.delete = real  # type: ignore[method-assign]
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert world.index.searchable(document.document_id) == []
    assert world.files.files == {}
    world.clock.now += timedelta(hours=2)
    await world.sweeper.sweep()
    assert world.store.records == {}


async def test_file_stays_while_another_document_uses_it(world: World) -> None:
    first = await world.upload("same", name="a.txt")
    second = await world.upload("same", name="b.txt")
    await world.deletion.delete(TENANT, first.document_id)
    assert len(world.files.files) == 1
    await world.deletion.delete(TENANT, second.document_id)
    assert world.files.files == {}


async def test_copies_of_a_deleted_document_s_text_are_forgotten(world: World) -> None:
    document = await world.upload("something")
    await world.deletion.delete(TENANT, document.document_id)
    assert world.forgetting.forgotten == [document.document_id]


async def test_copies_are_forgotten_by_the_sweep_when_the_deletion_was_killed_before(world: World) -> None:
    document = await world.upload("something")
    real = world.forgetting.forget

    async def crash(document_id: str) -> None:
        raise Crash("forget")

    world.forgetting.forget = crash  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await world.deletion.delete(TENANT, document.document_id)
    world.forgetting.forget = real  # type: ignore[method-assign]
    world.clock.now += timedelta(minutes=1)
    await world.sweeper.sweep()
    assert world.forgetting.forgotten == [document.document_id]
    assert (await world.record(document)).swept


async def test_deleting_twice_is_harmless(world: World) -> None:
    document = await world.upload("hello")
    await world.deletion.delete(TENANT, document.document_id)
    await world.deletion.delete(TENANT, document.document_id)
    with pytest.raises(DocumentNotFound):
        await world.listing.get(ANN, document.document_id)


async def test_foreign_tenants_document_is_unknown(world: World) -> None:
    document = await world.upload("hello")
    with pytest.raises(DocumentNotFound):
        await world.listing.get(Principal("other", "ann"), document.document_id)
    assert await world.listing.page(Principal("other", "ann"), Page("default")) == ([], "", DocumentCounts())


async def test_listing_pages_newest_first(world: World) -> None:
    made = [await world.upload(f"text {n}", name=f"{n}.txt") for n in range(5)]
    expected = [document.document_id for document in reversed(made)]
    found: list[str] = []
    token = ""
    for _ in range(3):
        documents, token, _ = await world.listing.page(ANN, Page("default", page_size=2, page_token=token))
        found += [document.document_id for document in documents]
    assert found == expected
    assert token == ""


async def test_listing_filters_by_status(world: World) -> None:
    ready = await world.ingest(await world.upload("hello", name="a.txt"))
    await world.upload("hello", name="b.txt")
    documents, _, _ = await world.listing.page(ANN, Page("default", {Status.READY}))
    assert documents == [ready]


async def test_invented_page_token_is_refused(world: World) -> None:
    for token in ("rubbish", "W10=", "eyJhIjoxfQ=="):
        with pytest.raises(BadPageToken):
            await world.listing.page(ANN, Page("default", page_token=token))


async def test_watch_sends_snapshot_then_changes_then_deletion(world: World) -> None:
    old = await world.upload("old", name="old.txt")
    gone = await world.upload("gone", name="gone.txt")
    await world.deletion.delete(TENANT, gone.document_id)
    changes = world.listing.watch(ANN, "default", ())
    assert await anext(changes) == old
    assert await anext(changes) is None
    new = await world.upload("new", name="new.txt")
    assert await anext(changes) == new
    await world.deletion.delete(TENANT, new.document_id)
    deleted = await anext(changes)
    assert deleted is not None
    assert (deleted.document_id, deleted.status) == (new.document_id, Status.DELETED)
    await changes.aclose()


async def test_file_is_kept_for_a_document_of_a_store_that_went_back_in_time(world: World) -> None:
    first = await world.upload("same", name="a.txt")
    await world.deletion.delete(TENANT, (await world.upload("other", name="b.txt")).document_id)
    world.store.versions -= 2  # a power cut took back what came last, and the store gives those versions again
    world.store.restarts += 1
    await world.upload("same", name="c.txt")
    await world.deletion.delete(TENANT, first.document_id)
    assert len(world.files.files) == 1
