"""Reads files that nobody keeps, with the readers and in the sandbox of uploaded files."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Protocol

from services.ingest.errors import DocumentRejected, FileTooLarge, FileUnreadable, ReadersBusy
from services.ingest.ports import Preparer, Scratch
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import Chunk, ChunkFile, PrepareRequest
from services.ingest.reading.parsers.registry import check_readable

FILE_BYTES_MAX = 12 * 1024 * 1024
"""Leaves room below the largest message of gRPC."""
TEXT_CHARACTERS_MAX = 1_000_000
PASSAGE_TOKENS = 320
"""As long as chunks of documents usually are."""
_AT_ONCE = 4
"""Files whose bytes a worker holds for this: a person waits for each, so that none waits long for its turn."""
_AT_ONCE_OF_TENANT = 2
"""Leaves half of them to the others while files of one tenant take long."""
_CHUNKS_AT_ONCE = 200


class Room(Protocol):
    """Where a file lies while it is read."""

    def file(self, size_bytes: int | None = None) -> AbstractAsyncContextManager[Path]: ...

    def scratch(self) -> AbstractContextManager[Scratch]: ...


@dataclass(frozen=True)
class FileText:
    """What a file says."""

    title: str
    media_type: str
    chunks: Sequence[Chunk]
    """In reading order, up to TEXT_CHARACTERS_MAX together."""
    chunks_left: int
    """How many were left out at its end."""
    warnings: Sequence[str]


class UnkeptFiles:
    """Reads files for callers who wait."""

    def __init__(self, preparer: Preparer, room: Room) -> None:
        self._preparer, self._room = preparer, room
        self._reading: Counter[str] = Counter()
        """By tenant."""

    async def read(self, tenant_id: str, name: str, data: bytes) -> FileText:
        """Raises FileUnreadable with the reason, FileTooLarge, ReadersBusy, SpoolFull and Unavailable."""
        if len(data) > FILE_BYTES_MAX:
            raise FileTooLarge(f"{name} is larger than {FILE_BYTES_MAX // 1024**2} MiB; upload it as a document")
        if self._reading[tenant_id] >= _AT_ONCE_OF_TENANT or self._reading.total() >= _AT_ONCE:
            raise ReadersBusy("too many files are being read; try again in a few seconds", retry_after_s=2.0)
        self._reading[tenant_id] += 1
        try:
            return await self._read(tenant_id, name, data)
        except DocumentRejected as error:
            raise FileUnreadable(error.message, reason=error.reason) from error
        finally:
            self._reading[tenant_id] -= 1
            self._reading += Counter()  # forgets tenants of whom nothing is read

    async def _read(self, tenant_id: str, name: str, data: bytes) -> FileText:
        media_type = detect_media_type(BytesIO(data), name)
        check_readable(media_type, name)
        async with self._room.file(len(data)) as path:
            await asyncio.to_thread(path.write_bytes, data)
            request = PrepareRequest(str(path), media_type, name, "", PASSAGE_TOKENS)
            with self._room.scratch() as scratch:
                prepared = await self._preparer.prepare(tenant_id, request, _ignore_stage, scratch)
                chunks = await _first_chunks(prepared.chunks)
        left = len(prepared.chunks) - len(chunks)
        return FileText(prepared.title, media_type, chunks, left, prepared.warnings)


async def _first_chunks(file: ChunkFile) -> Sequence[Chunk]:
    """The first chunks of a file, up to TEXT_CHARACTERS_MAX together; at least one."""
    found: list[Chunk] = []
    characters = 0
    for start in range(0, len(file), _CHUNKS_AT_ONCE):
        for chunk in await file.read(start, min(start + _CHUNKS_AT_ONCE, len(file))):
            characters += len(chunk.text)
            if found and characters > TEXT_CHARACTERS_MAX:
                return found
            found.append(chunk)
    return found


def _ignore_stage(_: str) -> None:
    """Reports to nobody how far the reading is."""
