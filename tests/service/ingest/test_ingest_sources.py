"""A watched folder over real NATS and real gRPC: what is done in the folder is done to its documents, also by another process."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.access.principal import use_principal
from kit.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from kit.testing.harness import TEST_PRINCIPAL
from tests.service.ingest.conftest import TIMEOUT_S, System
from tests.service.ingest.source_user import FAILED, PAUSED, WAITING, SourceUser, source_user


class Folder(SourceUser):
    """A folder that a source watches. Its files are old enough for their times to tell every change."""

    def __init__(self, stub: ingest_pb2_grpc.IngestServiceStub, path: Path) -> None:
        super().__init__(stub)
        self.path = path

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    async def make(self, **wanted: Any) -> ingest_pb2.Source:
        return await super().make(**{"kind": "folder", "settings": {"folder": "notes"}, **wanted})

    async def in_step(self) -> ingest_pb2.Source:
        """The source once it has a document in its present version for each file, and no other."""
        texts = {
            file.relative_to(self.path).as_posix(): len(file.read_bytes())
            for file in self.path.rglob("*")
            if file.is_file() and not file.name.startswith(".")
        }

        async def agrees() -> bool:
            found = await self.documents()
            return {path: document.size_bytes for path, document in found.items()} == texts and all(
                document.status == ingest_pb2.DOCUMENT_STATUS_READY for document in found.values()
            )

        async with asyncio.timeout(TIMEOUT_S):
            while not await agrees():
                await asyncio.sleep(0.05)
        return await self.until(lambda source: source.state == WAITING)


@pytest.fixture
async def folder(system: System, tmp_path: Path) -> AsyncIterator[Folder]:
    path = tmp_path / "watched"
    path.mkdir()
    (tmp_path / "watched-folders.json").write_text(json.dumps({"local/notes": str(path), "acme/theirs": str(path)}))
    async with source_user(system) as user:
        yield Folder(user.stub, path)


async def test_what_is_done_in_the_folder_is_done_to_its_documents(folder: Folder, system: System) -> None:
    folder.write("plan.md", "The tower is to be painted green.")
    folder.write("2024/budget.md", "The paint costs 400 crowns.")
    folder.write(".hidden.md", "Nobody reads this.")
    made = await folder.make()
    assert (made.name, made.kind, made.owner) == ("notes", "folder", "tester")
    source = await folder.in_step()
    assert (source.file_count, source.failing_count, source.sync.added_count) == (2, 0, 2)
    before = await folder.documents()
    assert {document.name for document in before.values()} == {"notes/plan.md", "notes/2024/budget.md"}

    folder.write("plan.md", "The tower is to be painted blue, not green.")
    await folder.in_step()
    edited = await folder.documents()
    assert edited["plan.md"].document_id == before["plan.md"].document_id

    embedded = system.reranker.embed_calls
    (folder.path / "2024/budget.md").rename(folder.path / "costs.md")
    source = await folder.in_step()
    moved = await folder.documents()
    assert moved["costs.md"].document_id == before["2024/budget.md"].document_id
    assert moved["costs.md"].name == "notes/costs.md"
    assert source.sync.moved_count == 1

    (folder.path / "plan.md").unlink()
    source = await folder.in_step()
    assert set(await folder.documents()) == {"costs.md"}
    assert before["plan.md"].document_id in system.retriever.deleted
    assert embedded <= system.reranker.embed_calls


async def test_failing_file_is_named_and_stops_no_other_until_it_is_mended(folder: Folder) -> None:
    folder.write("big.txt", "x" * 6 * 1024 * 1024)
    folder.write("broken.pdf", "%PDF-1.7 this is no PDF")
    folder.write("good.md", "The bridge is of stone.")
    await folder.make()
    source = await folder.until(lambda it: it.state == WAITING and it.pending_count == 0 and it.file_count == 2)
    failing = {file.path: file for file in source.failing}
    assert set(failing) == {"big.txt", "broken.pdf"}
    assert source.failing_count == 2
    assert failing["big.txt"].reason == "FILE_TOO_LARGE"
    assert "GROUNDWORK_UPLOAD_LIMIT_BYTES" in failing["big.txt"].message
    assert failing["broken.pdf"].document_id
    assert (await folder.documents())["good.md"].status == ingest_pb2.DOCUMENT_STATUS_READY
    folder.write("big.txt", "It is short now.")
    (folder.path / "broken.pdf").unlink()
    source = await folder.in_step()
    assert (source.failing_count, list(source.failing)) == (0, [])


async def test_links_are_not_followed(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("not for you")
    (folder.path / "key.txt").symlink_to(tmp_path / "secret" / "key.txt")
    (folder.path / "linked").symlink_to(tmp_path / "secret")
    folder.write("open.md", "For everybody.")
    await folder.make()
    await folder.until(lambda it: it.sync.HasField("ended_at"))
    assert set(await folder.documents()) == {"open.md"}


async def test_folder_that_is_empty_or_away_keeps_its_documents_until_a_person_says_so(folder: Folder) -> None:
    folder.write("plan.md", "The tower is to be painted green.")
    await folder.make()
    await folder.in_step()
    (folder.path / "plan.md").unlink()
    source = await folder.until(lambda it: it.state == FAILED)
    assert source.error.reason == "SOURCE_EMPTY"
    assert set(await folder.documents()) == {"plan.md"}
    folder.path.rename(folder.path.with_name("elsewhere"))
    await folder.run()
    source = await folder.until(lambda it: it.state == FAILED and it.error.reason == "SOURCE_AWAY")
    assert set(await folder.documents()) == {"plan.md"}
    folder.path.with_name("elsewhere").rename(folder.path)
    await folder.run(accept_empty=True)
    await folder.until(lambda it: it.state == WAITING and it.file_count == 0)
    assert await folder.documents() == {}


async def test_paused_source_stands_still_and_then_catches_up(folder: Folder) -> None:
    folder.write("plan.md", "The tower is to be painted green.")
    await folder.make()
    await folder.in_step()
    pause = ingest_pb2.UpdateSourceRequest(source_id=folder.source_id, paused=True)
    assert (await folder.stub.UpdateSource(pause, timeout=TIMEOUT_S)).source.state == PAUSED
    folder.write("late.md", "It came while nobody looked.")
    with pytest.raises(InvalidArgument, match="paused"):
        await folder.run()
    assert set(await folder.documents()) == {"plan.md"}
    go_on = ingest_pb2.UpdateSourceRequest(source_id=folder.source_id, paused=False)
    await folder.stub.UpdateSource(go_on, timeout=TIMEOUT_S)
    await folder.run()
    await folder.in_step()


async def test_removed_source_takes_its_documents_along_and_no_other(folder: Folder, system: System) -> None:
    folder.write("plan.md", "The tower is to be painted green.")
    await folder.make()
    await folder.in_step()
    other = await system.upload(b"By hand.", "hand.md")
    request = ingest_pb2.DeleteSourceRequest(source_id=folder.source_id)
    await folder.stub.DeleteSource(request, timeout=TIMEOUT_S)
    with pytest.raises(NotFound):
        await folder.get()
    async with asyncio.timeout(TIMEOUT_S):
        while [each.document_id for each in (await folder.documents()).values()] != [other.document_id]:
            await asyncio.sleep(0.05)
        while (await folder.stub.ListSources(ingest_pb2.ListSourcesRequest(), timeout=TIMEOUT_S)).sources:
            await asyncio.sleep(0.05)


async def test_source_of_a_deleted_collection_goes_with_it(folder: Folder) -> None:
    create = ingest_pb2.CreateCollectionRequest(collection_id="towers")
    await folder.stub.CreateCollection(create, timeout=TIMEOUT_S)
    folder.write("plan.md", "The tower is to be painted green.")
    await folder.make(collection_id="towers")
    await folder.until(lambda it: it.file_count == 1 and it.state == WAITING)
    delete = ingest_pb2.DeleteCollectionRequest(collection_id="towers")
    await folder.stub.DeleteCollection(delete, timeout=TIMEOUT_S)
    await folder.stub.CreateCollection(create, timeout=TIMEOUT_S)
    folder.write("second.md", "It is not for the new collection.")
    listed = ingest_pb2.ListDocumentsRequest(collection_id="towers")
    async with asyncio.timeout(TIMEOUT_S):
        while (await folder.stub.ListSources(ingest_pb2.ListSourcesRequest(), timeout=TIMEOUT_S)).sources:
            await asyncio.sleep(0.05)
    assert not (await folder.stub.ListDocuments(listed, timeout=TIMEOUT_S)).documents


async def test_what_a_person_uploads_in_the_place_of_a_file_gives_way_to_the_file(
    folder: Folder, system: System
) -> None:
    mine = await system.upload(b"By hand.", "notes/plan.md")
    folder.write("plan.md", "The tower is to be painted green.")
    folder.write("other.md", "Another file.")
    await folder.make()
    source = await folder.until(lambda it: it.state == WAITING and it.file_count == 1)
    assert [(file.path, file.reason) for file in source.failing] == [("plan.md", "NAME_TAKEN")]
    assert (await folder.documents())[""].document_id == mine.document_id
    delete = ingest_pb2.DeleteDocumentRequest(document_id=mine.document_id)
    await system.stub.DeleteDocument(delete, timeout=TIMEOUT_S)
    await folder.run()
    await folder.in_step()
    await system.upload(b"By hand again.", "notes/other.md")
    await folder.run()
    await folder.in_step()


async def test_only_listed_folders_are_watched_and_only_by_who_may(folder: Folder, system: System) -> None:
    for settings, reason in (
        ({"folder": "theirs"}, "the operator lists no folder 'theirs' for you; there are: notes"),
        ({"folder": "/etc"}, "the operator lists no folder"),
        ({"folder": "notes", "path": "../.."}, "below the listed one"),
        ({"folder": "notes", "path": "/etc"}, "below the listed one"),
        ({}, "needs folder"),
        ({"folder": "notes", "depth": "3"}, "no setting 'depth'"),
    ):
        with pytest.raises(InvalidArgument, match=reason):
            await folder.make(settings=settings)
    with pytest.raises(FailedPrecondition, match="there is no folder"):
        await folder.make(settings={"folder": "notes", "path": "2023"})
    with pytest.raises(InvalidArgument, match=r"no kind of source 'ftp'; there are: .*folder"):
        await folder.make(kind="ftp")
    request = ingest_pb2.CreateSourceRequest(kind="folder", collection_id="default", settings={"folder": "notes"})
    with use_principal(TEST_PRINCIPAL), pytest.raises(PermissionDenied, match="admin"):
        await system.stub.CreateSource(request, timeout=TIMEOUT_S)
    made = await folder.make(idempotency_key="once")
    assert (await folder.make(idempotency_key="once")).source_id == made.source_id
    with pytest.raises(InvalidArgument, match="a source notes already"):
        await folder.make()
