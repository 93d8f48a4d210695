"""The chunks of a document as the child wrote them, put aside: a worker holds a window of them in memory, however large it is."""

from array import array
from collections.abc import Sequence

from services.ingest.errors import DocumentRejected
from services.ingest.ports import Scratch
from services.ingest.reading.child import wire
from services.ingest.reading.models import Chunk

_LARGEST_CHUNK_BYTES = 16 * 1024
"""Of a chunk as JSON, on average over a document: with a box for each of its lines it has 3 to 8 KiB."""
_PIECE_BYTES = 256 * 1024
"""Lines are written in pieces of this size: each write to a disk costs a visit to a thread."""


class ChunkLines:
    """Chunks as lines of JSON. At most `limit` of them."""

    def __init__(self, scratch: Scratch, *, limit: int, name: str) -> None:
        self._scratch = scratch
        self._offset = scratch.size_bytes  # an earlier try may have left its lines
        self._limit = limit
        self._name = name
        self._starts = array("Q", [0])
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._few: Sequence[Chunk] | None = None

    def __len__(self) -> int:
        return len(self._starts) - 1

    def size_bytes(self, start: int, stop: int) -> int:
        return self._starts[stop] - self._starts[start]

    async def append(self, line: bytes) -> None:
        """Raises DocumentRejected when there are too many, SpoolFull when the disk is full."""
        if len(self) >= self._limit or self._starts[-1] > self._limit * _LARGEST_CHUNK_BYTES:
            raise DocumentRejected(
                "TOO_MANY_CHUNKS",
                f"{self._name} holds more than {self._limit} passages; split it into smaller files, or raise "
                "GROUNDWORK_INGEST_MAX_CHUNKS",
            )
        self._pending.append(line)
        self._pending_bytes += len(line)
        self._starts.append(self._starts[-1] + len(line))
        if self._pending_bytes > _PIECE_BYTES:
            await self._flush()

    async def read(self, start: int, stop: int) -> Sequence[Chunk]:
        """Decoded; those of a small document are remembered, since they are needed twice."""
        if self._few is not None:
            return self._few[start:stop]
        await self._flush()
        data = await self._scratch.read(self._offset + self._starts[start], self.size_bytes(start, stop))
        chunks = [wire.decode_chunk(line) for line in data.split(b"\n") if line]
        if len(chunks) == len(self) and self._starts[-1] <= _PIECE_BYTES:
            self._few = chunks
        return chunks

    async def _flush(self) -> None:
        data, self._pending, self._pending_bytes = b"".join(self._pending), [], 0
        if data:
            await self._scratch.append(data)
