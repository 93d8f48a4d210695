"""Files that are read and not kept."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.ingest.errors import FileTooLarge, FileUnreadable, ReadersBusy
from services.ingest.reading.models import Chunk, PreparedFile
from services.ingest.reading.unkept import files as unkept
from services.ingest.reading.unkept.files import UnkeptFiles
from services.ingest.spool import Spool


class HeldPreparer:
    """Reads when it is let, and gives `chunks`."""

    def __init__(self, chunks: int = 1) -> None:
        self.gate, self.reached = asyncio.Event(), 0
        self._chunks = Chunks([_chunk(number) for number in range(chunks)])

    async def prepare(self, tenant_id: str, request: Any, on_stage: Any, scratch: Any) -> PreparedFile:
        self.reached += 1
        await self.gate.wait()
        return PreparedFile(self._chunks, 1, (), "recursive", (), (), {}, "A title")


class Chunks(list[Chunk]):
    """The chunks of a file, in memory."""

    def size_bytes(self, start: int, stop: int) -> int:
        return 0

    async def read(self, start: int, stop: int) -> list[Chunk]:
        return self[start:stop]


def _chunk(number: int) -> Chunk:
    text = f"{number:010}"
    return Chunk(number, text, text, 10 * number, 10 * number + 10, 0, (), 3, "0a")


@pytest.fixture
async def spool(tmp_path: Path) -> AsyncIterator[Spool]:
    with Spool.own(tmp_path) as made:
        yield made


async def test_more_files_than_a_worker_holds_at_once_are_turned_away_at_once(spool: Spool) -> None:
    preparer = HeldPreparer()
    files = UnkeptFiles(preparer, spool)
    tenants = ["acme", "acme", "globex", "initech"]
    reading = [asyncio.create_task(files.read(tenant, "a.txt", b"A text.")) for tenant in tenants]
    while preparer.reached < 4:
        await asyncio.sleep(0)
    with pytest.raises(ReadersBusy):
        await files.read("umbrella", "a.txt", b"A text.")
    reading[0].cancel()
    preparer.gate.set()
    done = await asyncio.gather(*reading, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert (await files.read("acme", "a.txt", b"A text.")).title == "A title"


async def test_files_of_one_tenant_leave_room_for_those_of_others(spool: Spool) -> None:
    preparer = HeldPreparer()
    files = UnkeptFiles(preparer, spool)
    reading = [asyncio.create_task(files.read("acme", "a.txt", b"A text.")) for _ in range(2)]
    while preparer.reached < 2:
        await asyncio.sleep(0)
    with pytest.raises(ReadersBusy):
        await files.read("acme", "a.txt", b"A text.")
    other = asyncio.create_task(files.read("globex", "a.txt", b"A text."))
    while preparer.reached < 3:
        await asyncio.sleep(0)
    preparer.gate.set()
    await asyncio.gather(*reading, other)
    assert (await files.read("acme", "a.txt", b"A text.")).title == "A title"


async def test_long_file_is_cut_and_says_how_much_is_left(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unkept, "TEXT_CHARACTERS_MAX", 2_505)
    preparer = HeldPreparer(chunks=1_000)
    preparer.gate.set()
    file = await UnkeptFiles(preparer, spool).read("acme", "a.txt", b"A text.")
    assert [chunk.ordinal for chunk in file.chunks] == list(range(250))
    assert file.chunks_left == 750


async def test_what_cannot_be_read_is_refused_before_it_is_put_aside(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = UnkeptFiles(HeldPreparer(), spool)
    with pytest.raises(FileUnreadable, match=r"a\.doc") as refused:
        await files.read("acme", "a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    assert refused.value.reason == "UNSUPPORTED_TYPE"
    monkeypatch.setattr(unkept, "FILE_BYTES_MAX", 3)
    with pytest.raises(FileTooLarge):
        await files.read("acme", "a.txt", b"A text.")
