"""How much a tenant may store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.ingest.documents.uploads.upload import Upload
from services.ingest.errors import StorageQuotaExceeded
from tests.unit.ingest.world import ANN, TENANT, World

MIB = 1024 * 1024


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, quota_bytes=2 * MIB)


def _file(letter: str, mib: float = 0.9) -> str:
    return letter * int(mib * MIB)


async def test_upload_beyond_the_quota_is_refused_before_its_bytes_are_taken(world: World) -> None:
    for letter in "ab":
        await world.upload(_file(letter), name=f"{letter}.txt")
    taken: list[bytes] = []

    async def pieces() -> AsyncIterator[bytes]:
        taken.append(b"c")
        yield b"c"

    with pytest.raises(StorageQuotaExceeded, match=r"1\.8 MiB of 2\.0 MiB are used"):
        await world.uploads.upload(ANN, Upload("default", "c.txt", int(0.9 * MIB), "", {}), pieces())
    assert taken == []


async def test_size_that_was_not_announced_is_checked_before_the_file_is_stored(world: World) -> None:
    for letter in "ab":
        await world.upload(_file(letter), name=f"{letter}.txt")
    with pytest.raises(StorageQuotaExceeded):
        await world.upload(_file("c"), name="c.txt")
    assert len(world.files.files) == 2


async def test_file_counts_once_and_no_longer_when_it_is_deleted(world: World) -> None:
    first = await world.upload(_file("a"), name="a.txt")
    await world.upload(_file("a"), name="same.txt")
    second = await world.upload(_file("b"), name="b.txt")
    await world.deletion.delete(TENANT, second.document_id)
    await world.upload(_file("c"), name="c.txt")
    await world.deletion.delete(TENANT, first.document_id)
    with pytest.raises(StorageQuotaExceeded):
        await world.upload(_file("d"), name="d.txt")  # same.txt still needs the file of a.txt


async def test_uploads_on_their_way_count(world: World) -> None:
    await world.upload(_file("0"), name="0.txt")
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await gate.wait()
        yield _file("a", 1).encode()

    upload = Upload("default", "a.txt", MIB, "", {})
    first = asyncio.create_task(world.uploads.upload(ANN, upload, slow()))
    await begun.wait()
    with pytest.raises(StorageQuotaExceeded):
        await world.upload(_file("b", 0.5), name="b.txt", size_bytes=MIB // 2)
    gate.set()
    await first
    await world.upload(_file("b", 0.05), name="b.txt", size_bytes=int(0.05 * MIB))


async def test_tenant_without_a_quota_is_not_bound(tmp_path: Path) -> None:
    world = World(tmp_path)
    for letter in "abc":
        await world.upload(_file(letter), name=f"{letter}.txt")
