"""Files on their way leave nothing behind."""

import asyncio
import errno
import hashlib
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import IO, Any
from unittest import mock

import pytest

from services.ingest.errors import SpoolFull
from services.ingest.spool import MEMORY_BYTES, ScratchFile, Spool, SpooledFile


async def test_folder_of_a_dead_process_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    dead = tmp_path / "spool-dead"
    dead.mkdir()
    (dead / "spool-file").write_text("left behind")
    with Spool.own(tmp_path) as living, Spool.own(tmp_path), Spool.own(tmp_path):
        async with living.file() as path:
            assert _is_there(path)
            assert not _is_there(dead)
            assert len(_names(tmp_path)) == 3
    assert _names(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory with a name")
@pytest.mark.parametrize("size_bytes", [0, MEMORY_BYTES, MEMORY_BYTES + 1, None])
async def test_only_a_file_that_is_not_small_is_on_disk_and_none_is_left(
    tmp_path: Path, size_bytes: int | None
) -> None:
    async with Spool(tmp_path).file(size_bytes) as path:
        assert _written_and_read(path, b"content") == b"content"
        assert bool(_names(tmp_path)) == (size_bytes is None or size_bytes > MEMORY_BYTES)
    assert not _is_there(path)
    assert _names(tmp_path) == []


@pytest.mark.parametrize("size_bytes", [0, 10, MEMORY_BYTES, MEMORY_BYTES + 1, 3 * MEMORY_BYTES])
async def test_file_is_received_whole_and_only_a_large_one_touches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    to_disk = mock.create_autospec(
        tempfile.SpooledTemporaryFile.rollover, side_effect=tempfile.SpooledTemporaryFile.rollover
    )
    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", to_disk)
    content = bytes(i % 251 for i in range(size_bytes))
    async with received(Spool(tmp_path), content, limit_bytes=size_bytes) as file:
        assert (file.size_bytes, file.sha256) == (size_bytes, hashlib.sha256(content).hexdigest())
        for _ in range(2):  # from the beginning each time
            pieces = [piece async for piece in file.pieces(100_000)]
            assert b"".join(pieces) == content
            assert all(len(piece) <= 100_000 for piece in pieces)
        assert await file.read_by(lambda it: it.seek(0, 2)) == size_bytes
        assert to_disk.called == (size_bytes > MEMORY_BYTES)


async def test_full_disk_refuses_the_upload_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", no_space)
    with pytest.raises(SpoolFull, match="No space left"):
        async with received(Spool(tmp_path), b"x" * (MEMORY_BYTES + 1), limit_bytes=10 * MEMORY_BYTES):
            pass


def _written_and_read(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    return path.read_bytes()


def _is_there(path: Path) -> bool:
    return path.exists()


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def received(spool: Spool, content: bytes, *, limit_bytes: int) -> AbstractAsyncContextManager[SpooledFile]:
    async def data() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 65_536):
            yield content[start : start + 65_536]

    return spool.received(data(), name="a.txt", limit_bytes=limit_bytes, idle_timeout_s=5.0)


class Held:
    """A file whose writes wait."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.begun = threading.Event()
        self.gate = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: bytes) -> int:
        self.begun.set()
        assert self.gate.wait(30)
        return self._file.write(data)


async def test_who_is_cancelled_while_writing_leaves_the_file_when_it_is_written(tmp_path: Path) -> None:
    scratch = ScratchFile(tmp_path)
    await scratch.append(b"a" * (MEMORY_BYTES + 1))
    held = Held(scratch._file)
    scratch._file = held  # type: ignore[assignment]
    writing = asyncio.create_task(scratch.write(0, b"b" * 100))
    await asyncio.to_thread(held.begun.wait, 30)
    for _ in range(2):  # whoever stops it may do so again
        writing.cancel()
        await asyncio.sleep(0)
    reading = asyncio.create_task(scratch.read(0, 200))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    assert not reading.done(), "the file was read while it was written to"
    held.gate.set()
    assert await reading == b"b" * 100 + b"a" * 100
    with pytest.raises(asyncio.CancelledError):
        await writing
    scratch.close()
