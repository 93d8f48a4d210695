"""Stored files are read now and then, so that a bit that flipped is found before the file is needed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kit.errors import DataLoss
from services.ingest.spool import Spool
from services.ingest.upkeep.scrub import SOURCE, Scrub
from tests.unit.ingest.fakes import FakeCondition, FakeFileStore
from tests.unit.ingest.world import TENANT, World


class CountingFiles(FakeFileStore):
    """Remembers what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    async def get_to_file(self, tenant_id: str, sha256: str, path: Path) -> None:
        self.read.append(sha256)
        await super().get_to_file(tenant_id, sha256, path)


async def no_sleep(_: float) -> None:
    """Pauses are for the disk's sake."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def condition() -> FakeCondition:
    return FakeCondition()


MakeScrub = Callable[..., Scrub]


@pytest.fixture
def make_scrub(world: World, condition: FakeCondition, tmp_path: Path) -> MakeScrub:
    def make(bytes_a_round: int = 2**30) -> Scrub:
        return Scrub(
            world.store,
            world.files,
            world.leases,
            Spool(tmp_path),
            condition,
            world.clock,
            interval_s=1.0,
            bytes_a_round=bytes_a_round,
            sleep=no_sleep,
        )

    return make


async def test_a_damaged_file_is_told_and_the_same_upload_mends_it(
    world: World, make_scrub: MakeScrub, condition: FakeCondition
) -> None:
    document = await world.ingest(await world.upload("Some text."))
    scrub = make_scrub()
    await scrub.scrub()
    assert condition.kept == {SOURCE: ()}
    world.files.files[TENANT, document.content.sha256] = b"Sone text."
    for _ in range(2):
        await scrub.scrub()
        (finding,) = condition.kept[SOURCE]
        assert (finding.kind, finding.count) == ("files_damaged", 1)
        assert finding.examples == (f"default/notes.txt ({document.document_id})",)
    again = await world.upload("Some text.")
    assert (again.document_id, again.status) == (document.document_id, document.status)
    await scrub.scrub()
    assert condition.kept == {SOURCE: ()}


async def test_a_file_that_is_gone_is_told_until_its_document_is_deleted(
    world: World, make_scrub: MakeScrub, condition: FakeCondition
) -> None:
    document = await world.ingest(await world.upload("Some text."))
    world.files.files.clear()
    scrub = make_scrub()
    await scrub.scrub()
    assert [finding.count for finding in condition.kept[SOURCE]] == [1]
    await world.deletion.delete(TENANT, document.document_id)
    await scrub.scrub()
    assert condition.kept == {SOURCE: ()}


async def test_rounds_go_through_all_files_a_piece_at_a_time_and_then_begin_again(
    world: World, make_scrub: MakeScrub
) -> None:
    world.files = counting = CountingFiles()
    documents = [await world.upload(f"Text number {n}.", f"{n}.txt") for n in range(5)]
    files = sorted(document.content.sha256 for document in documents)
    for document in documents:
        counting.files[TENANT, document.content.sha256] = f"Text number {document.name[0]}.".encode()
    scrub = make_scrub(bytes_a_round=2 * documents[0].content.size_bytes)
    for expected in (files[:2], files[2:4], files[4:], files[:2]):
        counting.read.clear()
        await scrub.scrub()
        assert counting.read == expected


async def test_a_read_that_fails_once_removes_nothing(
    world: World, make_scrub: MakeScrub, condition: FakeCondition, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await world.upload("Some text.")
    real, calls = world.files.get_to_file, []

    async def flaky(tenant_id: str, sha256: str, path: Path) -> None:
        calls.append(sha256)
        if len(calls) == 1:
            raise DataLoss("damaged", reason="OBJECT_DAMAGED")
        await real(tenant_id, sha256, path)

    monkeypatch.setattr(world.files, "get_to_file", flaky)
    await make_scrub().scrub()
    assert condition.kept == {SOURCE: ()}
    assert (TENANT, document.content.sha256) in world.files.files
