"""Files on their way: received or fetched piece by piece to local disk, hashed as they pass, gone when their block ends."""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
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
    """A folder for files on their way. What a killed process left in it is removed when the next one starts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self) -> None:
        """Makes the folder and empties it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            path.unlink(missing_ok=True)

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
