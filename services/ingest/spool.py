"""Files on their way: received piece by piece, small ones into memory and others to local disk, or fetched to disk; hashed as they
pass, gone when their block ends."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from services.ingest.errors import BadUpload, FileTooLarge, SpoolFull

ResultT = TypeVar("ResultT")

MEMORY_BYTES = 256 * 1024
"""A file up to this size is not worth a file on disk, nor a thread to write and read it."""


@dataclass(frozen=True)
class SpooledFile:
    """A complete file, in memory or on local disk."""

    file: IO[bytes]
    sha256: str
    size_bytes: int

    async def read_by(self, reader: Callable[[IO[bytes]], ResultT]) -> ResultT:
        """What a function makes of the file; called in a thread if the file is on disk."""
        return await off_loop_if_large(self.size_bytes, reader, self.file)

    async def pieces(self, piece_bytes: int) -> AsyncIterator[bytes]:
        """The file from its beginning, in pieces of at most so many bytes."""
        self.file.seek(0)
        while piece := await self.read_by(lambda file: file.read(piece_bytes)):
            yield piece


class ScratchFile:
    """Bytes that are put aside while a document is in hand: in memory while they are few, then in a file that goes with it."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(MEMORY_BYTES, dir=str(folder), prefix="spool-")  # noqa: SIM115
        self._turn = asyncio.Lock()
        self.size_bytes = 0

    async def append(self, data: bytes) -> int:
        """Returns where the data begins. Raises SpoolFull when the disk is."""
        start = self.size_bytes
        await self.write(start, data)
        return start

    async def write(self, offset: int, data: bytes) -> None:
        """Raises SpoolFull when the disk is."""
        async with self._turn:
            size_bytes = max(self.size_bytes, offset + len(data))
            await off_loop_if_large(size_bytes, self._write, offset, data)
            self.size_bytes = size_bytes

    async def read(self, offset: int, size_bytes: int) -> bytes:
        async with self._turn:
            return await off_loop_if_large(self.size_bytes, self._read, offset, size_bytes)

    def close(self) -> None:
        with suppress(OSError):  # nobody needs what is still buffered, and a full disk was reported before
            self._file.close()

    def _write(self, offset: int, data: bytes) -> None:
        with _translate_full_disk("what was read of a document"):
            self._file.seek(offset)
            self._file.write(data)

    def _read(self, offset: int, size_bytes: int) -> bytes:
        with _translate_full_disk("what was read of a document"):  # a read writes first what is still buffered
            self._file.seek(offset)
            return self._file.read(size_bytes)


class Spool:
    """A folder for files on their way, this process's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    @contextmanager
    def own(cls, parent: Path) -> "Iterator[Spool]":
        """A fresh folder in `parent`, locked while the block runs and removed after it. Those that killed processes left
        behind, known by their free locks, are removed first."""
        parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            with _locked(parent, wait=True):  # a folder just made and not yet locked must not look left behind
                for left in parent.glob("spool-*"):
                    with _locked(left) as free:
                        if free:
                            shutil.rmtree(left, ignore_errors=True)
                made = tempfile.TemporaryDirectory(dir=parent, prefix="spool-", ignore_cleanup_errors=True)
                folder = Path(stack.enter_context(made))
                stack.enter_context(_locked(folder))
            yield cls(folder)

    @asynccontextmanager
    async def file(self, size_bytes: int | None = None) -> AsyncIterator[Path]:
        """A fresh empty file that is to hold so many bytes, if that is known, removed with the block. A small one is in memory
        where the system can name such a file (Linux): removing one from a disk waits for whatever is being synced to that disk."""
        if size_bytes is not None and size_bytes <= MEMORY_BYTES and sys.platform == "linux":
            with _memory_file() as path:
                yield path
            return
        handle, name = await asyncio.to_thread(tempfile.mkstemp, dir=self._folder, prefix="spool-")
        os.close(handle)
        try:
            yield Path(name)
        finally:
            await asyncio.shield(asyncio.to_thread(Path(name).unlink, missing_ok=True))

    @contextmanager
    def scratch(self) -> Iterator[ScratchFile]:
        """Room for what is made of a document, given up with the block."""
        with closing(ScratchFile(self._folder)) as scratch:
            yield scratch

    @asynccontextmanager
    async def received(
        self, data: AsyncIterator[bytes], *, name: str, limit_bytes: int, idle_timeout_s: float
    ) -> AsyncIterator[SpooledFile]:
        """Takes all of `data`. Raises FileTooLarge as soon as it is, SpoolFull when the disk is."""
        with tempfile.SpooledTemporaryFile(MEMORY_BYTES, dir=str(self._folder), prefix="spool-") as file:
            digest = hashlib.sha256()
            size = 0
            async for piece in _unless_idle(data, idle_timeout_s):
                size += len(piece)
                if size > limit_bytes:
                    raise too_large(name, limit_bytes)
                await off_loop_if_large(size, _append, file, digest, piece)
            yield SpooledFile(file, digest.hexdigest(), size)


@contextmanager
def _memory_file() -> Iterator[Path]:
    handle = os.memfd_create("spool", os.MFD_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


@contextmanager
def _locked(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Locks a folder for the block; yields whether that was possible. The kernel frees the locks of the dead."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(handle)


async def _unless_idle(data: AsyncIterator[bytes], timeout_s: float) -> AsyncIterator[bytes]:
    iterator = aiter(data)
    while True:
        try:
            async with asyncio.timeout(timeout_s):
                piece = await anext(iterator)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise BadUpload(f"no bytes came for {timeout_s:.0f} seconds; send the file again") from error
        yield piece


def too_large(name: str, limit_bytes: int) -> FileTooLarge:
    """The refusal of a file over the limit."""
    return FileTooLarge(
        f"{name} is larger than {limit_bytes / 1024**2:.0f} MiB, the largest file accepted; split it or raise "
        "GROUNDWORK_UPLOAD_LIMIT_BYTES",
        limit_bytes=str(limit_bytes),
    )


async def off_loop_if_large(size_bytes: int, call: Callable[..., ResultT], *arguments: Any) -> ResultT:
    """Calls in a thread what works on a file of this size, if that is a file on disk. A thread cannot be cancelled: who is, leaves
    when it is done, and not before, so that nobody else works on the file meanwhile."""
    if size_bytes <= MEMORY_BYTES:
        return call(*arguments)
    done = asyncio.get_running_loop().run_in_executor(None, call, *arguments)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):  # it is raised in the end
                await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # nobody is left to hear of it
        raise


def _append(file: IO[bytes], digest: "hashlib._Hash", piece: bytes) -> None:
    with _translate_full_disk("the upload"):
        file.write(piece)
    digest.update(piece)


@contextmanager
def _translate_full_disk(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SpoolFull(
            f"{what} cannot be stored on local disk: {error.strerror}; free some space and try again"
        ) from error
