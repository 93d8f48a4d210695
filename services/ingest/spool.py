"""Files on their way: received or fetched piece by piece to local disk, hashed as they pass, gone when their block ends."""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.ingest.errors import BadUpload, FileTooLarge, SpoolFull


@dataclass(frozen=True)
class SpooledFile:
    """A complete file on local disk."""

    path: Path
    sha256: str
    size_bytes: int


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

    @contextmanager
    def file(self) -> Iterator[Path]:
        """A fresh empty file, removed with the block."""
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix="spool-") as file:
            yield Path(file.name)

    @asynccontextmanager
    async def received(
        self, data: AsyncIterator[bytes], *, name: str, limit_bytes: int, idle_timeout_s: float
    ) -> AsyncIterator[SpooledFile]:
        """Writes `data` to disk. Raises FileTooLarge as soon as it is, SpoolFull when the disk is."""
        with self.file() as path:
            digest = hashlib.sha256()
            size = 0
            with path.open("wb") as file:
                async for piece in _unless_idle(data, idle_timeout_s):
                    size += len(piece)
                    if size > limit_bytes:
                        raise too_large(name, limit_bytes)
                    await asyncio.to_thread(_append, file, digest, piece)
            yield SpooledFile(path, digest.hexdigest(), size)


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


def sha256_of(path: Path) -> str:
    """Hex digest of a file, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _append(file: BinaryIO, digest: "hashlib._Hash", piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        raise SpoolFull(
            f"the upload cannot be stored on local disk: {error.strerror}; free some space and try again"
        ) from error
    digest.update(piece)
